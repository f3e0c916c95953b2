"""Waiting until a store has written down what a run did."""

from __future__ import annotations

import asyncio
import heapq
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
            on_loop = self._on_loops[loop] = _OnLoop(self._store)
        await on_loop.written(position, loop)

    def wait(self, position: int) -> None:
        """Wait in this thread. As `written`; Ctrl-C is answered."""
        if position > self._store.durable():
            self._store.wait(position)


class _OnLoop:
    """Those who wait on one event loop.

    The writer's thread makes a descriptor readable after each commit, and the loop looks what is
    done: no thread of the store ever runs Python. It does not hold the loop, with which it goes.
    """

    def __init__(self, store: _core.Store) -> None:
        self._store = store
        self._waker = store.waker()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    async def written(self, position: int, loop: asyncio.AbstractEventLoop) -> None:
        future = loop.create_future()
        if not self._waiting:
            # Only while somebody waits: a descriptor left behind would be found by its successor.
            loop.add_reader(self._waker.fileno(), self._committed)
        heapq.heappush(self._waiting, (position, next(self._order), future))
        self._settle(loop)
        await future

    def _committed(self) -> None:
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
                if not future.done():
                    future.set_result(None)
        if not waiting:
            loop.remove_reader(self._waker.fileno())
