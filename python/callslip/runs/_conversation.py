"""Messages and decisions from outside of a run: to its driver, or into its log."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from callslip import _core
from callslip._base.json import ResultError, to_json
from callslip._base.options import check_known, check_text
from callslip.errors import Outdated, UnknownTicket, UsageError
from callslip.events._event import ticket_id
from callslip.parts import Content, Said, read_content
from callslip.runs._elsewhere import ResultElsewhere, Told, check_begun, naming, say, tell
from callslip.runs._feed import take_over_feed
from callslip.runs._refused import naming_ticket
from callslip.runs._ticket import Ticket
from callslip.tools._context import check_may_block

if TYPE_CHECKING:
    from callslip.runs._needs import AgentOfRun, StoreOfRun
    from callslip.runs._result import RunResult
    from callslip.runs._run import Driver, Run

__all__ = [
    "Decision",
    "agent_of",
    "append_message",
    "append_to_log",
    "cancel",
    "check_message",
    "check_seal",
    "checked_person",
    "decide",
    "edited_arguments",
    "find_ticket",
    "inject",
    "is_driven",
    "run_lock",
    "send",
    "send_sync",
    "send_to_driver",
]

Make = Callable[[float], "list[_core.Command]"]
Decision = Callable[["_core.Run", float], "list[_core.Command]"]


_LAST_TICKET = 2**32 - 1
_MOST_DIGITS = 10

_locks: WeakValueDictionary[tuple[str | int, str], threading.RLock] = WeakValueDictionary()
_lock_of_locks = threading.Lock()


def run_lock(store: StoreOfRun, run_id: str) -> threading.RLock:
    """Return the lock for claiming a run of a store in this process.

    A claim only to append a message to the log is short, so another one waits for it.
    """
    # Its `setdefault` is not one step.
    with _lock_of_locks:
        return _locks.setdefault((store._identity, run_id), threading.RLock())


def is_driven(store: StoreOfRun, run_id: str) -> bool:
    """Whether a driver of this process works on a run. A claim to append a message is none."""
    if not store._native.is_claimed(run_id):
        return False
    with run_lock(store, run_id):
        return store._native.is_claimed(run_id)


def send(run: Run, message: Content, deps: object, key: str | None = None) -> Awaitable[RunResult]:
    """Add a user message to a run. As `Run.send`."""
    said = check_message(message, key)
    if (shared := run._told_by) is not None:
        followed = ResultElsewhere(run)
        say(run, shared, said)
        return followed
    while True:
        driven = run._driven or run
        result = send_to_driver(driven, said, deps)
        if result is not None:
            return result
        commands = append_message(driven, said)
        if commands is not None:
            driven._replace_deps(deps)
            return _PendingResult(driven, commands)


def send_to_driver(run: Run, said: Said, deps: object) -> Awaitable[RunResult] | None:
    """Send a message to the driver of a run.

    Returns:
        An awaitable for the result that follows; `None` if no driver works on the run.

    Raises:
        UsageError: A driver works on the run and has its deps.
    """
    if deps is not None and run._driver is not None:
        raise UsageError(
            "the run is in progress, and its tools have their deps already: pass deps to a run "
            "that has finished, or to agent.run"
        )
    with naming(run):
        driver = inject(run, lambda now: run._core.send(said.text, now, said.parts, said.key))
    return None if driver is None else driver.result()


def send_sync(run: Run, message: Content, deps: object, key: str | None = None) -> RunResult:
    """Add a user message to a finished run, and continue it. As `Run.send_sync`."""
    said = check_message(message, key)
    check_may_block("send_sync", "send")
    if run._driver is not None:
        raise UsageError("the run is still in progress: call run.send(…), which does not block")
    check_begun(run)
    commands = append_message(run, said)
    if commands is None:
        raise UsageError("the run is in progress again: call run.send(…), which does not block")
    run._replace_deps(deps)
    return agent_of(run)._continue_sync(run, commands)


def edited_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments with which a person approves a call, as JSON text.

    Raises:
        UsageError: They are not a mapping, or have no JSON.
    """
    if not isinstance(arguments, Mapping):
        raise UsageError(f"expected arguments={{'name': value, …}}: got {type(arguments).__name__}")
    try:
        return to_json(dict(arguments))
    except ResultError as error:
        raise UsageError(f"expected arguments with values of JSON: {error}") from error


def find_ticket(run: Run, ticket: Ticket | str) -> tuple[Run, int]:
    """Return the run and the number of a ticket of a run or of one of its child runs.

    Raises:
        UnknownTicket: It is no ticket of them.
        UsageError: It is neither a ticket nor text.
    """
    if not isinstance(ticket, str | Ticket):
        raise UsageError(f"expected a Ticket or its id, such as 'T1': got {ticket!r}")
    run_id, ticket_id = (run.id, ticket) if isinstance(ticket, str) else (ticket.run_id, ticket.id)
    digits = ticket_id.removeprefix("T")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
    if not is_number or int(digits) > _LAST_TICKET:
        raise UnknownTicket(f"expected a Ticket or its id, such as 'T1': got {ticket_id!r}")
    found = _find(run, run_id)
    if found is None:
        raise UnknownTicket(
            f"ticket {ticket_id} is of run {run_id}, which is not a child run of {run.id}"
        )
    return found, int(digits)


def _find(run: Run, run_id: str) -> Run | None:
    if run_id == run.id:
        return run
    found = (_find(child, run_id) for child in run.children)
    return next((one for one in found if one is not None), None)


def append_to_log(run: Run, store: StoreOfRun, make: Make) -> list[_core.Command]:
    """Append a message or a decision to the log of a run that no driver works on.

    Raises:
        StoreError: Another process works on the run, or the log cannot be written down.
    """
    core = run._core
    with run_lock(store, run.id), _claim(core, store):
        published = core.event_count
        commands = make(time.time())
        store._commits.written(core)
    _tell(run, published)
    return commands


def _tell(run: Run, published: int) -> None:
    """Tell those who watch the run, or another object of it, what was appended to the log."""
    take_over_feed(run, published)
    if run._feed is not None:
        run._feed.publish()


def checked_person(by: object) -> str | None:
    """Return the name of the person who decides, as the log keeps it.

    Raises:
        UsageError: It is not text, or blank.
    """
    if by is None:
        return None
    check_text("by", by)
    name = str(by).strip()
    if not name:
        raise UsageError("expected by to be a name: got a blank text; pass no by=")
    return name


def check_seal(run: Run, number: int, seal: object) -> None:
    """Check that a call is the one that was shown. One that does not wait any more is let pass.

    Raises:
        Outdated: It is another one.
    """
    check_text("seal", seal)
    own = next((one.seal for one in run.tickets if one.id == ticket_id(number)), None)
    # Its arguments stay as they are from here on.
    if own is not None and not hmac.compare_digest(own.encode(), str(seal).encode()):
        raise Outdated(
            f"the call of ticket {ticket_id(number)} is not the one with this seal, which was "
            "shown: look at it again, and pass its own seal"
        )


def decide(run: Run, told: Told, make: Decision) -> None:
    """Pass a decision on a call to the driver of its run; without one, append it to the log.

    Raises:
        UnknownTicket: The run has no such ticket.
        Outdated: The ticket does not await this any more.
        UsageError: The ticket does not take the arguments or the result.
        StoreError: Another process works on the run, or the log cannot be written down.
    """
    assert told.ticket is not None  # only messages and ends have none
    with naming_ticket(run, told.ticket, awaits="result" if told.kind == "answer" else "approval"):
        _decide(run, told, make)


def _decide(run: Run, told: Told, make: Decision) -> None:
    if (shared := run._told_by) is not None:
        return tell(run, shared, told)
    check_begun(run)
    while (driven := run._driven) is None and run._store is not None and not run.finished:
        if _append_at_rest(run, run._store, make) is not None:
            return None
    return (driven or run)._inject(make)


def _append_at_rest(run: Run, store: StoreOfRun, make: Decision) -> list[_core.Command] | None:
    """Append a message or a decision to the log of a run that no driver works on, as it is now.

    Somebody else may have decided, or another driver have resumed the run, since it was read.

    Returns:
        The commands that follow; `None` if the run was resumed in this process meanwhile: nothing
        is appended then.

    Raises:
        UsageError: There is nothing to decide on.
        StoreError: Another process works on the run, or the log cannot be written down.
    """
    with run_lock(store, run.id):
        if run._driven is not None:
            return None
        core = _core.Run.open(store._native, run.id)
        try:
            run._replace_core(core)
            published = core.event_count
            commands = make(core, time.time())
            store._commits.written(core)
        finally:
            core.release()
    _tell(run, published)
    return commands


def cancel(run: Run) -> None:
    """Cancel a run and the runs below it, as `Run.cancel`, unless its shared store tells it.

    Raises:
        UsageError: The run has not begun.
        StoreError: As for `decide`.
    """
    store = run._store
    check_begun(run)
    while (driven := run._driven) is None and store is not None:
        if run._agent is not None and run.finished and run.stop_reason != "cancelled":
            return None
        if _append_at_rest(run, store, _core.Run.cancel) is not None:
            if run.stop_reason == "cancelled":
                # A driver would have cancelled them. A process may have ended before it did.
                store._end_children(run.id)
            return None
    if driven is not None and driven is not run:
        return driven.cancel()
    return None if run.finished else run._inject(_core.Run.cancel)


def inject(run: Run, make: Make) -> Driver | None:
    """Pass a message or a decision to the driver of a run, and wait until it is written down.

    Returns:
        The driver; `None` if no driver works on the run.

    Raises:
        UsageError: The run has not begun.
    """
    core, store = run._core, run._store
    # Of this moment: after a failure, another thread may open the file again meanwhile.
    commits = None if store is None else store._commits
    position = 0

    def make_and_note_position(now: float) -> list[_core.Command]:
        # The position is read here, because the driver may leave the run right after.
        nonlocal position
        commands = make(now)
        position = core.position
        return commands

    while (driver := run._driver) is not None:
        if driver.inject(make_and_note_position):
            if commits is not None:
                # This cannot deadlock: the thread that writes depends on no loop and no Python.
                commits.wait(position)
            return driver
        # The driver is in another thread, and is about to leave the run.
        time.sleep(0.001)
    check_begun(run)
    return None


class _PendingResult:
    """The result of a finished run that continues with a message once this is awaited."""

    def __init__(self, run: Run, commands: list[_core.Command]) -> None:
        self._run = run
        self._commands = commands

    def __await__(self) -> Generator[Any, Any, RunResult]:
        driver = self._run._driver
        if driver is not None:
            # The run continues already, with another message.
            return driver.result().__await__()
        return agent_of(self._run)._continue(self._run, self._commands).__await__()


def check_message(message: Content, key: str | None = None) -> Said:
    """Return the text and the parts of a user message, with its key.

    Raises:
        UsageError: It is blank, or neither text nor a list of texts, images and files; or the key
            is not valid.
    """
    return read_content("the message", message)._replace(key=check_known("key", key))


def append_message(run: Run, said: Said) -> list[_core.Command] | None:
    """Append a user message to the log of a run that no driver works on.

    Returns:
        The commands that follow from it; `None` if a driver of this process works on the run by
        now.

    Raises:
        UsageError: The run is a copy, or its agent cannot continue it.
        StoreError: As for `append_to_log`.
    """
    core, store, agent = run._core, run._store, run._agent
    if agent is not None:
        agent._check_continues(run)
    if store is None:
        if agent is None:
            raise UsageError(
                f"run {run.id} is a copy without an agent, and the message would be lost: call "
                "agent.hand_over(run, say=…), or send it to the run itself"
            )
        with naming(run):
            return core.send(said.text, time.time(), said.parts, said.key)

    def make(core: _core.Run, now: float) -> list[_core.Command]:
        with naming(run):
            return core.send(said.text, now, said.parts, said.key)

    if agent is None:
        # Others may have said something since it was read.
        return _append_at_rest(run, store, make)
    with run_lock(store, run.id):
        return None if run._driven is not None else append_to_log(run, store, partial(make, core))


def agent_of(run: Run) -> AgentOfRun:
    """Return the agent of a run.

    Raises:
        UsageError: The run was read from a store, without an agent.
    """
    agent = run._agent
    if agent is None:
        raise UsageError(
            "the message is written down, but a run that was read from a store has no agent: call "
            f"agent.resume({run.id!r})"
        )
    return agent


@contextmanager
def _claim(core: _core.Run, store: StoreOfRun) -> Iterator[None]:
    core.claim(store._native)
    try:
        yield
    finally:
        core.release()
