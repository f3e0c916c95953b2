"""A fair bound for concurrent calls, across threads and event loops."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from callslip._base import _lazy
from callslip._base.options import check_whole
from callslip._threads.forks import after_in_child

if TYPE_CHECKING:
    import asyncio

__all__ = ["Gate"]


class Gate:
    """Bounds the number of concurrent calls; further calls wait.

    Groups take turns, and within a group the oldest call is next. So a group of many calls delays
    no other group for longer than one call. A waiting call that is cancelled or interrupted, or
    that has reached its timeout, leaves the line, and gives its slot back if it just got one.

    Use `held` and `held_sync`. Each `enter` or `enter_sync` needs a `leave`.

    Args:
        limit: Calls that may hold a slot at once, 1 or more.

    Raises:
        UsageError: `limit` is not a whole number, or is less than 1.
    """

    __slots__ = ("__weakref__", "_free", "_lock", "_waiting", "limit")

    def __init__(self, limit: int) -> None:
        check_whole("concurrency", limit, 1)
        self.limit: int = limit
        self.reset()
        _gates.add(self)

    def reset(self) -> None:
        """Free all slots and clear the lines: in a forked child there are no other threads."""
        # Re-entrant: a task may be collected while its thread is in here, and gives its slot back.
        self._lock = threading.RLock()
        self._free = self.limit
        # Groups in the order of their turns, each with its waiting calls, oldest first.
        self._waiting: OrderedDict[str, OrderedDict[_Waiter, None]] = OrderedDict()

    def held(self, group: str) -> _Held:
        """Return an async context manager that holds a slot.

        If the context already holds one, it does nothing: a call that waits for the slot of its own
        caller would wait forever.

        Args:
            group: The group in whose line the call waits, such as the id of its root run.
        """
        return _Held(self, group)

    def held_sync(self, group: str, timeout: float | None = None) -> _HeldSync:
        """Return a blocking context manager that holds a slot. As `held`.

        Entering it raises `TimeoutError` after `timeout` seconds; `None` is no timeout.
        """
        return _HeldSync(self, group, timeout)

    async def enter(self, group: str) -> None:
        """Wait for a slot."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
        loop = _lazy.asyncio.get_running_loop()
        admitted: asyncio.Future[None] = loop.create_future()
        waiter = _Waiter(group, partial(loop.call_soon_threadsafe, _resolve, admitted))
        try:
            self._join_line(waiter)
            if not waiter.admitted:
                await admitted
        except BaseException:
            self._leave_line(waiter)
            raise

    def enter_sync(self, group: str, timeout: float | None = None) -> None:
        """Block until there is a slot. Ctrl-C interrupts it.

        Raises:
            TimeoutError: There was no slot within `timeout` seconds; `None` is no timeout.
        """
        bell = threading.Lock()
        waiter = _Waiter(group, bell.release)
        seconds = -1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)
        bell.acquire()
        try:
            self._join_line(waiter)
            if not waiter.admitted and not bell.acquire(timeout=seconds):
                raise TimeoutError(f"no free slot within {timeout:g} seconds")  # noqa: TRY301
        except BaseException:
            self._leave_line(waiter)
            raise

    def leave(self) -> None:
        """Give a slot back."""
        with self._lock:
            # A forked child may leave a gate that was reset.
            if self._free < self.limit:
                self._free += 1
                self._admit()

    def share(self) -> Callable[[], object]:
        """Share the slot of this context, for a thread that may run on after its call is given up.

        Returns:
            A function that ends the sharing, from any thread.
        """
        hold = self._hold()
        if hold is None:
            return _nothing
        with self._lock:
            if not hold.inside:
                return _nothing
            hold.inside += 1
        return hold.drop

    def _hold(self) -> _Hold | None:
        """Return the hold by which this context has a slot; `None` if it has none."""
        hold = _holds.get()
        while hold is not None and not (hold.gate is self and hold.inside):
            hold = hold.outer
        return hold

    def _join_line(self, waiter: _Waiter) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                waiter.admitted = True
                return
            self._waiting.setdefault(waiter.group, OrderedDict())[waiter] = None

    def _leave_line(self, waiter: _Waiter) -> None:
        """Leave the line, or give the slot back."""
        with self._lock:
            if waiter.admitted:
                waiter.admitted = False
                self.leave()
                return
            line = self._waiting.get(waiter.group)
            if line is not None and waiter in line:
                del line[waiter]
                if not line:
                    del self._waiting[waiter.group]

    def _admit(self) -> None:
        """Give the free slots to the next calls."""
        waiting = self._waiting
        while self._free and waiting:
            self._free -= 1
            group, line = waiting.popitem(last=False)
            waiter, _ = line.popitem(last=False)
            if line:
                waiting[group] = line
            waiter.admitted = True
            try:
                waiter.wake()
            except RuntimeError:
                # Its event loop is closed, so the call does not wait any more.
                waiter.admitted = False
                self._free += 1

    def __repr__(self) -> str:
        waiting = sum(len(line) for line in self._waiting.values())
        return f"<Gate: {self.limit - self._free} of {self.limit} inside, {waiting} waiting>"


class _Waiter:
    __slots__ = ("admitted", "group", "wake")

    def __init__(self, group: str, wake: Callable[[], object]) -> None:
        self.group = group
        self.wake = wake
        self.admitted = False


class _Hold:
    """A slot of a gate, as a context and the work started in it see it.

    Contexts are copied, and may outlive their call. So a hold in a context counts only while it
    still has its slot.

    Attributes:
        gate: The gate.
        inside: The number of users of the slot: the call, and the threads that share it.
        outer: The hold of the context around it.
    """

    __slots__ = ("_group", "_token", "gate", "inside", "outer")

    def __init__(self, gate: Gate, group: str) -> None:
        self.gate: Gate = gate
        self._group = group
        self.inside: int = 0

    def _begin(self) -> bool:
        """Put the hold into the context. Returns whether to enter the gate."""
        if self.gate._hold() is not None:
            return False
        self.outer: _Hold | None = _holds.get()
        self._token: Token[_Hold | None] = _holds.set(self)
        return True

    def _remove(self) -> None:
        # Not `suppress`, which costs more than all the rest of this.
        try:  # noqa: SIM105
            _holds.reset(self._token)
        except ValueError:
            # A driver that is never closed properly is collected in another context, without holds.
            pass

    def _end(self) -> None:
        if self.inside:
            try:
                self._remove()
            finally:
                self.drop()

    def drop(self) -> None:
        """Remove a user of the slot; the last one gives it back."""
        with self.gate._lock:
            self.inside -= 1
            if not self.inside:
                self.gate.leave()


class _Held(_Hold):
    __slots__ = ()

    async def __aenter__(self) -> None:
        if self._begin():
            try:
                await self.gate.enter(self._group)
            except BaseException:
                self._remove()
                raise
            self.inside = 1

    async def __aexit__(self, *_: object) -> None:
        self._end()


class _HeldSync(_Hold):
    __slots__ = ("_timeout",)

    def __init__(self, gate: Gate, group: str, timeout: float | None) -> None:
        super().__init__(gate, group)
        self._timeout = timeout

    def __enter__(self) -> None:
        if self._begin():
            try:
                self.gate.enter_sync(self._group, self._timeout)
            except BaseException:
                self._remove()
                raise
            # No call may come between this and the body: an interrupt in it would lose the slot.
            self.inside = 1

    def __exit__(self, *_: object) -> None:
        self._end()


def _nothing() -> None:
    pass


def _resolve(admitted: asyncio.Future[None]) -> None:
    if not admitted.done():
        admitted.set_result(None)


def _reset_all() -> None:
    for gate in _gates:
        gate.reset()


_holds: ContextVar[_Hold | None] = ContextVar("callslip_holds", default=None)
_gates: WeakSet[Gate] = WeakSet()
after_in_child(_reset_all)
