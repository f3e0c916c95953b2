"""What is said to a run from outside of it: by users, and by those who approve."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from callslip._going import drive_async, drive_sync, go_on, not_in_a_tool
from callslip._options import check_text
from callslip.errors import UsageError
from callslip.runs import RunResult

if TYPE_CHECKING:
    from callslip import _core
    from callslip._session import Session
    from callslip.runs import Driver, Run
    from callslip.store import TicketStore

__all__ = ["reopened", "send", "send_sync", "taken", "told", "turn", "written_down"]

Make = Callable[[float], "list[_core.Command]"]


_turns: WeakValueDictionary[tuple[str | int, str], threading.Lock] = WeakValueDictionary()


def turn(store: TicketStore, run_id: str) -> threading.Lock:
    """Return what whoever takes a kept run up holds meanwhile.

    Who takes it up only to write a word into its log is gone at once, and is waited for.
    """
    return _turns.setdefault((store.path or id(store), run_id), threading.Lock())


def send(run: Run, message: str) -> Awaitable[RunResult]:
    """Say more to a run. As `Run.send`."""
    return told(run, message) or _Reply(run, _said(run, message))


def told(run: Run, message: str) -> Awaitable[RunResult] | None:
    """Say more to a run that somebody works on. Returns its end; `None` where nobody does."""
    _check(message)
    driver = taken(run, lambda now: run._core.send(message, now))  # noqa: SLF001
    return None if driver is None else driver.result()


def reopened(run: Run, message: str) -> Session:
    """Say more to a run that nobody works on. Returns what is to be driven."""
    return _session(run, _said(run, message))


def send_sync(run: Run, message: str) -> RunResult:
    """Say more to a run that is over, and go on with it. As `Run.send_sync`."""
    _check(message)
    not_in_a_tool("send_sync", "send")
    if run._driver is not None:  # noqa: SLF001
        raise UsageError("the run is under way: say run.send(…), which waits for nothing")
    return drive_sync(reopened(run, message))


def written_down(run: Run, store: TicketStore, make: Make) -> list[_core.Command]:
    """Write something into the log of a run that nobody works on."""
    core = run._core  # noqa: SLF001
    with turn(store, run.id), _claimed(core, store):
        commands = make(time.time())
        store.commits.wait(core.position)
    return commands


def taken(run: Run, make: Make) -> Driver | None:
    """Give something to whoever works on a run, and wait until it is written down.

    Returns:
        The driver, if it has taken it.
    """
    core, store = run._core, _store_of(run)  # noqa: SLF001  # two parts of one run
    position = 0

    def make_noted(now: float) -> list[_core.Command]:
        # The driver may leave the run before this thread goes on: then there is no position.
        nonlocal position
        commands = make(now)
        position = core.position
        return commands

    while (driver := run._driver) is not None:  # noqa: SLF001
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
        driver = self._run._driver  # noqa: SLF001
        if driver is not None:
            # It goes on already, with something else that was said.
            return driver.result().__await__()
        return self._wait().__await__()

    async def _wait(self) -> RunResult:
        session = _session(self._run, self._commands)
        if self._run.finished:
            with session:
                return RunResult.of(session)
        return await drive_async(session)


def _check(message: str) -> None:
    if not isinstance(message, str):
        raise UsageError(f"expected the message as a string: got {type(message).__name__}")
    if not message.strip():
        raise UsageError("expected a message: it is blank")
    check_text("the message", message)


def _said(run: Run, message: str) -> list[_core.Command]:
    """Write the message into the log of a run that nobody works on. Returns what is to be done."""
    core = run._core  # noqa: SLF001
    store = _store_of(run)
    if store is None:
        return core.send(message, time.time())
    return written_down(run, store, lambda now: core.send(message, now))


def _store_of(run: Run) -> TicketStore | None:
    return run._store  # noqa: SLF001


def _session(run: Run, commands: list[_core.Command]) -> Session:
    from callslip._session import Session

    agent = run._agent  # noqa: SLF001
    if agent is None:
        raise UsageError(
            "the message is written down, and this run was read from a store: go on with "
            f"agent.resume({run.id!r})"
        )
    store = _store_of(run)
    if store is not None:
        with turn(store, run.id):
            run._core.claim(store.native)  # noqa: SLF001
    # As when it was begun: a run below others has fewer than its agent.
    levels = run._levels  # noqa: SLF001
    run._core.attend()  # noqa: SLF001
    return Session(
        run,
        agent,
        agent._offer_at(levels),  # noqa: SLF001
        # What is to be done was told to whoever said something before, and waited for nothing.
        (lambda _: commands) if commands else go_on,
        store=store,
        levels=levels,
        root=run.id,
    )


@contextmanager
def _claimed(core: _core.Run, store: TicketStore) -> Iterator[None]:
    core.claim(store.native)
    try:
        yield
    finally:
        core.release()
