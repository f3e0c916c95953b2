"""The queue between a run that is being streamed and the reader of the stream."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from callslip.events import Delta, Event, Progress
from callslip.runs._feed import is_wanted

__all__ = ["EventQueue"]

Item: TypeAlias = Event | Delta | Progress

_AHEAD = 256
"""Items that a run may be ahead of its reader."""


class EventQueue:
    """Items of one stream, in the order in which they happened.

    `backpressure` and `next` may only be called in the thread of the event loop, the others in any.

    Args:
        loop: The event loop of the stream.
        run_id: The id of the run.
        children: Whether all events of child runs are wanted.
    """

    __slots__ = (
        "_children",
        "_has_room",
        "_items",
        "_loop",
        "_news",
        "_progress",
        "_run_id",
        "_waiters",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, run_id: str, *, children: bool) -> None:
        self._loop = loop
        self._run_id = run_id
        self._children = children
        self._items: deque[Item] = deque()
        self._progress = _Progress()
        self._news = asyncio.Event()
        self._has_room = asyncio.Event()
        # Tasks that wait for the end of the run, and read nothing meanwhile.
        self._waiters: set[object] = set()

    def on_event(self, item: Event | Delta) -> None:
        """Add an event or a delta, if it is wanted."""
        if is_wanted(item, self._run_id, children=self._children):
            self._items.append(item)
            self.wake()

    def on_progress(self, progress: Progress) -> None:
        """Add progress. Events that the call causes afterwards come after it."""
        if not is_wanted(progress, self._run_id, children=self._children):
            return
        is_scheduled = self._progress.add(progress)
        if self.is_here():
            self._move_progress()
        elif not is_scheduled:
            # A closed loop has no reader.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._move_progress)

    def is_here(self) -> bool:
        """Whether this code runs on the event loop of the stream."""
        return asyncio._get_running_loop() is self._loop

    def _move_progress(self) -> None:
        progress = self._progress.take()
        # Progress never fills the queue, because then the run would wait for a slow reader.
        room = max(0, _AHEAD // 2 - len(self._items))
        if progress and room:
            self._items.extend(progress[-room:])
            self._news.set()

    async def backpressure(self) -> None:
        """Wait until the reader has caught up."""
        while len(self._items) >= _AHEAD and not self._waiters:
            self._has_room.clear()
            await self._has_room.wait()

    async def next(self, is_over: Callable[[], bool]) -> Item | None:
        """Wait for the next item.

        Args:
            is_over: Whether no further items come; asked again after each `wake`.

        Returns:
            The item; `None` after the last one.
        """
        while not self._items:
            if is_over():
                return None
            self._news.clear()
            await self._news.wait()
        item = self._items.popleft()
        self._has_room.set()
        return item

    @property
    def is_empty(self) -> bool:
        """Whether no item is left for the reader."""
        return not self._items

    def wake(self) -> None:
        """Have the reader look whether further items come."""
        if self.is_here():
            self._news.set()
        else:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._news.set)

    def add_waiter(self) -> object:
        """Let the run continue without a reader. Returns a token for `remove_waiter`."""
        waiter = object()
        self._waiters.add(waiter)
        self._loop.call_soon_threadsafe(self._has_room.set)
        return waiter

    def remove_waiter(self, waiter: object) -> None:
        """Take an `add_waiter` back."""
        self._waiters.discard(waiter)


class _Progress:
    """Progress from other threads, on its way to the event loop."""

    __slots__ = ("_is_scheduled", "_lock", "_reports")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: deque[Progress] = deque(maxlen=_AHEAD)
        self._is_scheduled = False

    def add(self, progress: Progress) -> bool:
        """Add a report. Returns whether the loop is to take the reports already."""
        with self._lock:
            self._reports.append(progress)
            is_scheduled, self._is_scheduled = self._is_scheduled, True
        return is_scheduled

    def take(self) -> list[Progress]:
        with self._lock:
            reports = list(self._reports)
            self._reports.clear()
            self._is_scheduled = False
        return reports
