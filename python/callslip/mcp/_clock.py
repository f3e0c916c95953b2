"""Time limits of the calls of a session, which stop while the server waits for the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

__all__ = ["Clock"]


class Clock:
    """Limits the time of calls. The clock stops for all of them while a question is answered.

    It stops for all, because a question of the server does not name its call.
    """

    def __init__(self) -> None:
        self._left: dict[asyncio.Timeout, float] = {}
        self._questions = 0

    @asynccontextmanager
    async def bound(self, seconds: float | None) -> AsyncIterator[None]:
        """Limit the time of this block, in seconds; `None` for no limit.

        Raises:
            TimeoutError: The block took longer.
        """
        if seconds is None:
            yield
            return
        async with asyncio.timeout(None if self._questions else seconds) as scope:
            self._left[scope] = seconds
            try:
                yield
            finally:
                del self._left[scope]

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock while this block is open."""
        self._questions += 1
        if self._questions == 1:
            for scope in self._running():
                self._left[scope] = (scope.when() or 0.0) - _now()
                scope.reschedule(None)
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                for scope in self._running():
                    scope.reschedule(_now() + self._left[scope])

    def _running(self) -> list[asyncio.Timeout]:
        return [scope for scope in self._left if not scope.expired()]


def _now() -> float:
    return asyncio.get_running_loop().time()
