"""Watching descriptors on an event loop, also on one that can't: the default loop of Windows."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from callslip._base import _lazy
from callslip._threads.forks import after_in_child

if TYPE_CHECKING:
    import asyncio

__all__ = ["unwatch", "watch"]


def watch(
    loop: asyncio.AbstractEventLoop, descriptor: int, callback: Callable[..., object], *args: object
) -> None:
    """Have a loop call a function while a descriptor is readable; on Windows it is a socket."""
    try:
        loop.add_reader(descriptor, callback, *args)
    except NotImplementedError:
        _selector().add(descriptor, _Watched(loop, partial(callback, *args)))


def unwatch(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    """End that, before the descriptor is closed."""
    try:
        loop.remove_reader(descriptor)
    except NotImplementedError:
        _selector().remove(descriptor)


class _Watched(NamedTuple):
    loop: asyncio.AbstractEventLoop
    callback: Callable[[], object]


class _Selector:
    """A thread that waits for all descriptors, and has their loops call the functions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[int, _Watched] = {}
        # Those that are waited for: not those whose functions are about to be called.
        self._quiet: set[int] = set()
        self._bell, self._rung = _lazy.socket.socketpair()
        self._bell.settimeout(0)
        self._rung.settimeout(0)
        threading.Thread(target=self._run, name="callslip-selector", daemon=True).start()

    def add(self, descriptor: int, watched: _Watched) -> None:
        with self._lock:
            self._watched[descriptor] = watched
            self._quiet.add(descriptor)
        self._ring()

    def remove(self, descriptor: int) -> None:
        with self._lock:
            self._watched.pop(descriptor, None)
            self._quiet.discard(descriptor)
        self._ring()

    def _ring(self) -> None:
        # If it is full, the thread will wake up anyway.
        with suppress(BlockingIOError):
            self._bell.send(b"\0")

    def _run(self) -> None:
        own = self._rung.fileno()
        while True:
            with self._lock:
                waited_for = [own, *self._quiet]
            try:
                readable = select.select(waited_for, [], [])[0]
            except (OSError, ValueError):
                self._drop_closed()
                continue
            for descriptor in readable:
                if descriptor == own:
                    with suppress(BlockingIOError):
                        self._rung.recv(4096)
                else:
                    self._announce(descriptor)

    def _announce(self, descriptor: int) -> None:
        with self._lock:
            watched = self._watched.get(descriptor)
            self._quiet.discard(descriptor)
        if watched is not None:
            try:
                watched.loop.call_soon_threadsafe(self._call, descriptor, watched)
            except RuntimeError:  # the loop is closed
                self._forget(descriptor, watched)

    def _call(self, descriptor: int, watched: _Watched) -> None:
        """On the loop: call the function, and wait for the descriptor again."""
        if self._watched.get(descriptor) is not watched:
            return
        try:
            watched.callback()
        finally:
            with self._lock:
                if self._watched.get(descriptor) is watched:
                    self._quiet.add(descriptor)
            self._ring()

    def _forget(self, descriptor: int, watched: _Watched) -> None:
        with self._lock:
            if self._watched.get(descriptor) is watched:
                del self._watched[descriptor]

    def _drop_closed(self) -> None:
        """Forget descriptors that were closed while they were watched, by a loop that has ended."""
        with self._lock:
            waited_for = list(self._quiet)
        for descriptor in waited_for:
            try:
                select.select([descriptor], [], [], 0)
            except (OSError, ValueError):
                self.remove(descriptor)


_lock = threading.Lock()
_only: _Selector | None = None


def _selector() -> _Selector:
    global _only  # noqa: PLW0603  # one thread for all loops
    with _lock:
        if _only is None:
            _only = _Selector()
        return _only


def _reset() -> None:
    global _lock, _only  # noqa: PLW0603
    _lock = threading.Lock()
    _only = None


after_in_child(_reset)
