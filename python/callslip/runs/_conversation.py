"""What is said to a run from outside of it: by users, and by those who approve."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from callslip._options import check_text
from callslip.errors import UsageError
from callslip.tools._context import not_in_a_tool

if TYPE_CHECKING:
    from callslip import _core
    from callslip.agent import Agent
    from callslip.runs._result import RunResult
    from callslip.runs._run import Driver, Run
    from callslip.store import TicketStore

__all__ = ["said", "send", "send_sync", "taken", "told", "turn", "worker", "written_down"]

Make = Callable[[float], "list[_core.Command]"]


_turns: WeakValueDictionary[tuple[str | int, str], threading.Lock] = WeakValueDictionary()


def turn(store: TicketStore, run_id: str) -> threading.Lock:
    """Return what whoever takes a kept run up holds meanwhile.

    Who takes it up only to write a word into its log is gone at once, and is waited for.
    """
    return _turns.setdefault((store.path or id(store), run_id), threading.Lock())


def send(run: Run, message: str) -> Awaitable[RunResult]:
    """Say more to a run. As `Run.send`."""
    return told(run, message) or _Reply(run, said(run, message))


def told(run: Run, message: str) -> Awaitable[RunResult] | None:
    """Say more to a run that somebody works on. Returns its end; `None` where nobody does."""
    _check(message)
    driver = taken(run, lambda now: run._core.send(message, now))
    return None if driver is None else driver.result()


def send_sync(run: Run, message: str) -> RunResult:
    """Say more to a run that is over, and go on with it. As `Run.send_sync`."""
    _check(message)
    not_in_a_tool("send_sync", "send")
    if run._driver is not None:
        raise UsageError("the run is still in progress: call run.send(…), which does not block")
    commands = said(run, message)
    return worker(run)._continue_sync(run, commands)


def written_down(run: Run, store: TicketStore, make: Make) -> list[_core.Command]:
    """Write something into the log of a run that nobody works on."""
    core = run._core
    with turn(store, run.id), _claimed(core, store):
        commands = make(time.time())
        store.commits.wait(core.position)
    return commands


def taken(run: Run, make: Make) -> Driver | None:
    """Give something to whoever works on a run, and wait until it is written down.

    Returns:
        The driver, if it has taken it.
    """
    core, store = run._core, _store_of(run)
    position = 0

    def make_noted(now: float) -> list[_core.Command]:
        # The driver may leave the run before this thread goes on: then there is no position.
        nonlocal position
        commands = make(now)
        position = core.position
        return commands

    while (driver := run._driver) is not None:
        if driver.give(make_noted):
            if store is not None:
                # The store's own thread writes: it waits for no loop and no thread of Python.
                store.commits.wait(position)
            return driver
        # It is of another thread, and will have left the run at once.
        time.sleep(0.001)
    return None


class _Reply:
    """What comes of a run that was over and is told more, once somebody waits for it."""

    def __init__(self, run: Run, commands: list[_core.Command]) -> None:
        self._run = run
        self._commands = commands

    def __await__(self) -> Generator[Any, Any, RunResult]:
        driver = self._run._driver
        if driver is not None:
            # It goes on already, with something else that was said.
            return driver.result().__await__()
        return worker(self._run)._continue(self._run, self._commands).__await__()


def _check(message: str) -> None:
    if not isinstance(message, str):
        raise UsageError(f"expected the message as a string: got {type(message).__name__}")
    if not message.strip():
        raise UsageError("expected a message: it is blank")
    check_text("the message", message)


def said(run: Run, message: str) -> list[_core.Command]:
    """Write the message into the log of a run that nobody works on. Returns what is to be done."""
    core = run._core
    store = _store_of(run)
    if store is None:
        return core.send(message, time.time())
    return written_down(run, store, lambda now: core.send(message, now))


def _store_of(run: Run) -> TicketStore | None:
    return run._store


def worker(run: Run) -> Agent:
    """Return the agent that can continue a run."""
    agent = run._agent
    if agent is None:
        raise UsageError(
            "the message is written down, and this run was read from a store: go on with "
            f"agent.resume({run.id!r})"
        )
    return agent


@contextmanager
def _claimed(core: _core.Run, store: TicketStore) -> Iterator[None]:
    core.claim(store._native)
    try:
        yield
    finally:
        core.release()
