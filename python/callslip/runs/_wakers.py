"""Watchers that wait for news of a run, each on its own event loop."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from callslip._base import _lazy
from callslip.runs._readers import Readers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

__all__ = ["Wakers"]


class Wakers:
    """The watchers that are waiting.

    Attributes:
        version: Changes with each notice.
        readers: Those whom the failure of the driver is raised to, these watchers among them.
    """

    __slots__ = ("_has_woken", "_lock", "_waiting", "readers", "version")

    def __init__(self) -> None:
        self.version = 0
        self.readers = Readers()
        self._lock = threading.Lock()
        self._waiting: list[_Waker] = []
        self._has_woken = False

    def notify(self) -> None:
        """Wake all watchers that are waiting, from any thread."""
        with self._lock:
            self.version += 1
            if not self._waiting:
                return
            waiting, self._waiting = self._waiting, []
        self._has_woken = True
        for waker in waiting:
            waker.wake()

    def take_woken(self) -> bool:
        """Whether a watcher was woken since the last call."""
        has_woken, self._has_woken = self._has_woken, False
        return has_woken

    async def wait(self, version: int) -> None:
        """Wait until something is newer than this version."""
        waker = _Waker(_lazy.asyncio.get_running_loop())
        with self._lock:
            if self.version != version:
                return
            self._waiting.append(waker)
        try:
            await waker.future
        finally:
            with self._lock, suppress(ValueError):
                self._waiting.remove(waker)


class _Waker:
    """A watcher that is waiting on its event loop."""

    __slots__ = ("_loop", "future")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self.future: Future[None] = loop.create_future()

    def wake(self) -> None:
        if _lazy.asyncio._get_running_loop() is self._loop:
            self._set()
            return
        # A closed loop has no watcher any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        if not self.future.done():
            self.future.set_result(None)
