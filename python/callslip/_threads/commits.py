"""Waiting until a store has written down what a run did."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from callslip.errors import StoreError

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Commits"]


class Commits:
    """The commits of one store, for those who wait for them."""

    def __init__(self, store: _core.Store) -> None:
        self._store = store
        self._on_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _OnLoop] = WeakKeyDictionary()
        self._idle: deque[_core.Waker] = deque()

    async def written(self, position: int) -> None:
        """Return when everything up to a position is written down.

        Raises:
            StoreError: It can't be.
        """
        if position <= self._store.durable():
            return
        loop = asyncio.get_running_loop()
        on_loop = self._on_loops.get(loop)
        if on_loop is None:
            on_loop = self._on_loops[loop] = _OnLoop(self._store, self._idle)
        await on_loop.written(position, loop)

    def wait(self, position: int) -> None:
        """Wait in this thread. As `written`; Ctrl-C is answered."""
        if position > self._store.durable():
            self._store.wait(position)


class _OnLoop:
    """Those who wait on one event loop.

    The writer's thread makes a descriptor readable after each commit, and the loop looks what is
    done: no thread of the store ever runs Python. A loop has a descriptor only while somebody waits
    on it: whoever keeps a loop alive keeps no descriptor open, and none is left with a loop that
    closes.
    """

    def __init__(self, store: _core.Store, idle: deque[_core.Waker]) -> None:
        self._store = store
        self._idle = idle
        self._waker: _core.Waker | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._given_up = 0
        self._order = count()

    async def written(self, position: int, loop: asyncio.AbstractEventLoop) -> None:
        future = loop.create_future()
        if self._waker is None:
            try:
                waker = self._idle.pop()
            except IndexError:
                waker = self._store.waker()
            loop.add_reader(waker.fileno(), self._committed)
            self._waker = waker
        heapq.heappush(self._waiting, (position, next(self._order), future))
        self._settle(loop)
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._given_up += 1
                self._rest(loop)
            raise

    def _committed(self) -> None:
        if self._waker is not None:
            self._waker.drain()
            self._settle(asyncio.get_running_loop())

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting
        try:
            durable = self._store.durable()
        except StoreError as error:
            for _, _, future in waiting:
                if not future.done():
                    # Each gets its own: an exception that is raised many times gathers tracebacks.
                    future.set_exception(StoreError(str(error)))
            waiting.clear()
        else:
            while waiting and waiting[0][0] <= durable:
                future = heapq.heappop(waiting)[2]
                if future.done():
                    self._given_up -= 1
                else:
                    future.set_result(None)
        self._rest(loop)

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch no longer where nobody waits."""
        if len(self._waiting) > self._given_up:
            return
        self._waiting.clear()
        self._given_up = 0
        if self._waker is not None:
            loop.remove_reader(self._waker.fileno())
            self._idle.append(self._waker)
            self._waker = None
