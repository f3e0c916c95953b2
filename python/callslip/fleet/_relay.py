"""What of a run is not in its log, given to a function of the program: the parts of replies."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from callslip._base.log import GuardedLogger
from callslip._core import Delta
from callslip.events import Progress
from callslip.runs._feed import merged

__all__ = ["Relay", "RelayFunction"]

_log = GuardedLogger("callslip.fleet")

_KEPT = 1000
"""Items that wait for the function, at most. The oldest ones are dropped."""

_FLUSH = 1.0
"""Seconds that the function has for what is left when the worker ends."""

RelayFunction: TypeAlias = "Callable[[str, Delta | Progress], Awaitable[object]]"


class Relay:
    """Gives items on, in order, in a task of its own that no run waits for.

    Args:
        function: The function of the program.
        loop: The event loop on which it is called.
    """

    def __init__(self, function: RelayFunction, loop: asyncio.AbstractEventLoop) -> None:
        self._function = function
        self._loop = loop
        self._items: deque[tuple[str, Delta | Progress]] = deque(maxlen=_KEPT)
        # Tools report progress in other threads.
        self._lock = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        self._is_called = False
        self._has_dropped = False
        self._has_failed = False

    def put(self, run_id: str, item: Delta | Progress) -> None:
        """Add an item. From any thread; it never blocks."""
        with self._lock:
            drops = len(self._items) == _KEPT and not self._has_dropped
            self._has_dropped |= drops
            self._items.append((run_id, item))
        if drops:
            _log.warning(
                "the relay is slower than the replies: of more than %s parts that wait for it the "
                "oldest are dropped",
                _KEPT,
            )
        if not self._is_called:
            self._is_called = True
            # A closed loop has no runs any more: a thread of a tool reports too late.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._is_called = False
        if self._items and (self._task is None or self._task.done()):
            self._task = self._loop.create_task(self._give_on(), name="relay")

    async def _give_on(self) -> None:
        while True:
            with self._lock:
                if not self._items:
                    return
                run_id, item = self._take()
            try:
                await self._function(run_id, item)
            except Exception:  # noqa: BLE001  # of the program's own function; runs go on
                if not self._has_failed:
                    self._has_failed = True
                    _log.exception("the relay failed; later failures of it are not logged")

    def _take(self) -> tuple[str, Delta | Progress]:
        """Take the oldest item, with all that follows of the same text."""
        run_id, item = self._items.popleft()
        if not isinstance(item, Delta):
            return run_id, item
        deltas = [item]
        while self._items and self._items[0][0] == run_id:
            following = self._items[0][1]
            if not isinstance(following, Delta) or len(merged([item, following])) > 1:
                break
            deltas.append(following)
            self._items.popleft()
        (whole,) = merged(deltas)
        return run_id, whole

    async def close(self) -> None:
        """Give on what is left, if that is quick, and end."""
        self._begin()
        if self._task is not None:
            _, pending = await asyncio.wait([self._task], timeout=_FLUSH)
            for task in pending:
                task.cancel()
