"""The grace of calls: how long the model waits for them before it continues (ticket)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["GraceTimer"]


class GraceTimer:
    """Calls a function once the grace of the latest call is over.

    One timer serves all calls: most of them end first, and a timer for each would cost more than
    they do.

    Args:
        loop: The event loop of the run.
        on_end: Called on the loop.
    """

    __slots__ = ("_ends_at", "_loop", "_on_end", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], object]) -> None:
        self._loop = loop
        self._on_end = on_end
        self._ends_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Start the grace of a call, in place of that of the call before it."""
        self._ends_at = self._loop.time() + seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._ends_at, self._look)

    def clear(self) -> None:
        """End the grace without calling the function. The timer stays for the next call."""
        self._ends_at = None

    def cancel(self) -> None:
        """End the grace without calling the function, and the timer."""
        self._ends_at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._ends_at is None:
            return
        if self._ends_at > self._loop.time():
            # A later call has its grace now.
            self._timer = self._loop.call_at(self._ends_at, self._look)
            return
        self._ends_at = None
        self._on_end()
