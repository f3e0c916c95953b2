"""Waiting until a store has written down the events of a run."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from callslip._threads.descriptors import unwatch, watch
from callslip.errors import StoreError

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Commits"]


_UNCONFIRMED = 0.02
"""Seconds between two looks at a claim that was not confirmed for a while."""


class Commits:
    """The commits of one store.

    Args:
        store: The core's store.
        is_shared: Whether other processes may take over its runs.
    """

    def __init__(self, store: _core.Store, *, is_shared: bool = False) -> None:
        self._store = store
        self._is_shared = is_shared
        self._on_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _OnLoop] = WeakKeyDictionary()
        self._idle: deque[_core.Waker] = deque()

    async def written_async(self, run: _core.Run) -> None:
        """Wait until all events of a run are written down, and nobody else may write to it.

        Raises:
            StoreError: They cannot be written down.
            TakenOver: Another worker has the run.
            NoLease: The store was away for longer than the lease of the run.
        """
        # The store of the run: after a failure, another thread may have opened the file again.
        if not run.is_durable():
            await self._wait_async(run.position)
        if self._is_shared:
            # Rarely: nothing of a store runs Python, and so it cannot set an event.
            while not run.check_claim():  # noqa: ASYNC110
                await asyncio.sleep(_UNCONFIRMED)

    def written(self, run: _core.Run) -> None:
        """Wait in this thread. As `written_async`; Ctrl-C interrupts it."""
        if not run.is_durable():
            self.wait(run.position)
        if self._is_shared:
            while not run.check_claim():
                time.sleep(_UNCONFIRMED)

    async def _wait_async(self, position: int) -> None:
        loop = asyncio.get_running_loop()
        on_loop = self._on_loops.get(loop)
        if on_loop is None:
            on_loop = self._on_loops[loop] = _OnLoop(self._store, self._idle)
        await on_loop.wait_async(position, loop)

    def wait(self, position: int) -> None:
        """Wait in this thread until all events up to a position are written down.

        Raises:
            StoreError: They cannot be written down.
        """
        if position > self._store.durable():
            self._store.wait(position)


class _OnLoop:
    """The tasks of one event loop that wait for commits.

    The thread that writes makes a descriptor readable after each commit, and the loop looks how far
    the store is: no thread of the store ever runs Python. A loop has a descriptor only while a task
    waits on it, so an idle loop keeps none open, and a closed loop leaves none behind.
    """

    def __init__(self, store: _core.Store, idle: deque[_core.Waker]) -> None:
        self._store = store
        self._idle = idle
        self._waker: _core.Waker | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._given_up = 0
        self._order = count()

    async def wait_async(self, position: int, loop: asyncio.AbstractEventLoop) -> None:
        future = loop.create_future()
        if self._waker is None:
            try:
                waker = self._idle.pop()
            except IndexError:
                waker = self._store.waker()
            watch(loop, waker.fileno(), self._on_commit)
            self._waker = waker
        heapq.heappush(self._waiting, (position, next(self._order), future))
        self._wake(loop)
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._given_up += 1
                self._stop_if_idle(loop)
            raise

    def _on_commit(self) -> None:
        if self._waker is not None:
            self._waker.drain()
            self._wake(asyncio.get_running_loop())

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting
        try:
            durable = self._store.durable()
        except StoreError as error:
            for _, _, future in waiting:
                if not future.done():
                    # Each task gets its own: an exception raised many times collects tracebacks.
                    future.set_exception(StoreError(str(error)))
            waiting.clear()
        else:
            while waiting and waiting[0][0] <= durable:
                future = heapq.heappop(waiting)[2]
                if future.done():
                    self._given_up -= 1
                else:
                    future.set_result(None)
        self._stop_if_idle(loop)

    def _stop_if_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop watching the descriptor if no task waits."""
        if len(self._waiting) > self._given_up:
            return
        self._waiting.clear()
        self._given_up = 0
        if self._waker is not None:
            unwatch(loop, self._waker.fileno())
            self._idle.append(self._waker)
            self._waker = None
