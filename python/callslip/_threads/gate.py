"""A fair bound on how many calls run at once, across threads and event loops."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from callslip import _lazy
from callslip.errors import UsageError

if TYPE_CHECKING:
    import asyncio

__all__ = ["Gate"]


class Gate:
    """Lets so many calls in at once; the others wait for their turn.

    The groups take turns, and within a group who came first goes first: so a group of many calls
    holds no other one up for longer than a call takes. A waiter that is cancelled or interrupted,
    or whose time is over, gives its place up, and the slot too if that has just become its own.

    Use `held` and `held_sync`; whoever calls `enter` or `enter_sync` owes a `leave`.

    Args:
        limit: Calls that may be inside at once, 1 or more.

    Raises:
        UsageError: `limit` is no whole number, or less than 1.
    """

    __slots__ = ("__weakref__", "_free", "_lock", "_waiting", "limit")

    def __init__(self, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise UsageError(
                f"concurrency must be a whole number of calls, 1 or more: got {limit!r}"
            )
        self.limit = limit
        self.reset()
        _gates.add(self)

    def reset(self) -> None:
        """Forget who is inside and who waits: in a forked child there is none of them."""
        # Re-entrant: a task that is collected while its own thread is in here gives its slot back.
        self._lock = threading.RLock()
        self._free = self.limit
        # Groups in the order of their turns, each with its waiters in the order of their coming.
        self._waiting: OrderedDict[str, OrderedDict[_Waiter, None]] = OrderedDict()

    def held(self, group: str) -> _Held:
        """Return an async context manager that is inside of the gate.

        It does nothing where the context is inside already: a call that waited for the slot of the
        very call that it was made by would wait for ever.
        """
        return _Held(self, group)

    def held_sync(self, group: str, timeout: float | None = None) -> _HeldSync:
        """Return a context manager that is inside of the gate. As `held`, blocking.

        Entering it raises `TimeoutError` after `timeout` seconds; `None` waits for ever.
        """
        return _HeldSync(self, group, timeout)

    async def enter(self, group: str) -> None:
        """Wait for a slot and take it."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
        loop = _lazy.asyncio.get_running_loop()
        admitted: asyncio.Future[None] = loop.create_future()
        waiter = _Waiter(group, partial(loop.call_soon_threadsafe, _resolve, admitted))
        try:
            self._line_up(waiter)
            if not waiter.admitted:
                await admitted
        except BaseException:
            self._forsake(waiter)
            raise

    def enter_sync(self, group: str, timeout: float | None = None) -> None:
        """Block until there is a slot and take it. Answers Ctrl-C.

        Raises:
            TimeoutError: There was none for `timeout` seconds; `None` waits for ever.
        """
        bell = threading.Lock()
        waiter = _Waiter(group, bell.release)
        seconds = -1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)
        bell.acquire()
        try:
            self._line_up(waiter)
            if not waiter.admitted and not bell.acquire(timeout=seconds):
                raise TimeoutError(f"no free slot within {timeout:g} seconds")  # noqa: TRY301
        except BaseException:
            self._forsake(waiter)
            raise

    def leave(self) -> None:
        """Give a slot back."""
        with self._lock:
            # A forked child may leave what it had entered before it was one.
            if self._free < self.limit:
                self._free += 1
                self._admit()

    def share(self) -> Callable[[], object]:
        """Stay inside, where this context is, until what is returned is called, from any thread.

        For a thread that can't be stopped and may go on after its call was given up.
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
        """Return by what this context is inside."""
        hold = _holds.get()
        while hold is not None and not (hold.gate is self and hold.inside):
            hold = hold.outer
        return hold

    def _line_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                waiter.admitted = True
                return
            self._waiting.setdefault(waiter.group, OrderedDict())[waiter] = None

    def _forsake(self, waiter: _Waiter) -> None:
        """Give up a place, or the slot that it has led to."""
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
        """Let in who is next, while there is room."""
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
                # Its event loop is closed: nobody waits there any more.
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
    """Being inside of a gate, as far as a context and what it starts know of it.

    Contexts are copied and outlive the call that they were copied in. So what counts is whether
    this hold is still inside, not whether it is there.

    Attributes:
        gate: The gate.
        inside: How many are inside by it: its call, and threads that it shares its slot with.
        outer: The hold that it was made in.
    """

    __slots__ = ("_group", "_token", "gate", "inside", "outer")

    def __init__(self, gate: Gate, group: str) -> None:
        self.gate = gate
        self._group = group
        self.inside = 0

    def _begin(self) -> bool:
        """Note the hold in the context. Returns whether the gate is to be entered."""
        if self.gate._hold() is not None:
            return False
        self.outer: _Hold | None = _holds.get()
        self._token: Token[_Hold | None] = _holds.set(self)
        return True

    def _forget(self) -> None:
        # Not `suppress`, which costs more than all the rest of this.
        try:  # noqa: SIM105
            _holds.reset(self._token)
        except ValueError:
            # A driver that nobody ends properly is closed in another context, which knows no holds.
            pass

    def _end(self) -> None:
        if self.inside:
            try:
                self._forget()
            finally:
                self.drop()

    def drop(self) -> None:
        """Be one less inside; the last one gives the slot back."""
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
                self._forget()
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
                self._forget()
                raise
            # Nothing is called from here to the body: an interrupt would lose the slot.
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
os.register_at_fork(after_in_child=_reset_all)
