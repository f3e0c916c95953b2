"""The line of requests before a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from callslip.gateway._refused import Refused

__all__ = ["Line"]

_WAIT = "1"
"""Seconds after which a client may ask again."""


class Line:
    """Lets a number of requests through at a time; the others wait, first come, first served.

    Args:
        slots: Requests at a time.
        queue: Requests that may wait.
    """

    def __init__(self, slots: int, queue: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self._queue = queue
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot, and hold it.

        Raises:
            Refused: Too many requests wait already.
        """
        if self._free.locked() and self._waiting >= self._queue:
            raise Refused(
                429,
                f"{self._waiting} requests wait for this model: try again later",
                "queue_full",
                None,
                _WAIT,
            )
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
