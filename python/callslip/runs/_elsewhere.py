"""Messages and decisions for a run of a shared store, which any process may work on."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from weakref import WeakKeyDictionary

from callslip import _core
from callslip._base import _lazy
from callslip._threads import pool
from callslip._threads.shield import shielded
from callslip.errors import (
    DrivenElsewhere,
    KeyTaken,
    ModelError,
    NoLease,
    Outdated,
    RunCancelled,
    StoreError,
    TakenOver,
    UnknownRun,
    UsageError,
)
from callslip.events._event import ticket_id
from callslip.parts import Said
from callslip.runs._result import AnswerT, RunResult

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callslip.runs._run import Run

__all__ = [
    "ResultElsewhere",
    "Told",
    "catch_up",
    "check_begun",
    "driven_result",
    "from_text",
    "goes_on",
    "naming",
    "never_began",
    "result_of",
    "say",
    "set_heir",
    "tell",
    "to_text",
]


_NOT_HERE = (TakenOver, NoLease, DrivenElsewhere)
"""Why a run goes on that no driver of this process has."""


class Told(NamedTuple):
    """What a run is told.

    Attributes:
        kind: What it is. `"resume"` lets a run go on whose model has failed.
        ticket: The number of the ticket that is decided on.
        body: The message, the reason, or the arguments of a call, as text.
        by: The name of the person who decides.
    """

    kind: Literal["say", "approve", "deny", "answer", "cancel", "resume"]
    ticket: int | None = None
    body: str | None = None
    by: str | None = None


def tell(run: Run, shared: _core.SharedRuns, told: Told) -> None:
    """Tell a run something, wherever it is driven. It is durable once this returns.

    Raises:
        UsageError: There is nothing to decide on, or the tool does not take the arguments.
        StoreError: There is no such run, or the store cannot be written.
    """
    if never_began(run):
        # No store has it, and none will.
        check_begun(run)
    if told.kind == "approve" and told.ticket is not None and told.body is not None:
        _check_edited(run, told.ticket, told.body)
    answer = shared.tell(run.id, *told)
    if answer == "told" and run._store is not None and run._store._was_told is not None:
        run._store._was_told(run.id)
    if answer == "no run":
        raise UnknownRun(f"there is no run {run.id} in this store: it was deleted")
    if answer == "cancelled":
        assert told.ticket is not None  # only a decision or an answer comes too late
        waits = _waits_for(told.kind)
        raise Outdated(
            f"expected a ticket that awaits {waits}: got {ticket_id(told.ticket)}, and no ticket "
            f"awaits {waits}: run {run.id} was cancelled"
        )
    if answer in {"decided", "not parked"} and told.ticket is not None:
        first = _first_to_decide(run, shared, told.ticket) if answer == "decided" else None
        raise _refusal(run, told.kind, told.ticket, first)


def _first_to_decide(run: Run, shared: _core.SharedRuns, ticket: int) -> str:
    """Return who has decided on a ticket or answered it, as the inbox of the run has it."""
    for message in _inbox_of(run, shared):
        if message.by is not None and message.ticket == ticket:
            return message.by
    return "somebody"


def _inbox_of(run: Run, shared: _core.SharedRuns) -> Iterator[Told]:
    """Yield what waits for a run, in the inbox of whichever run has the driver of both."""
    holder = run.id
    while holder:
        for _, run_id, kind, ticket, body, by in shared.inbox(holder):
            if run_id == run.id:
                yield Told(cast("Any", kind), ticket, body, by)
        holder = holder.rpartition(".")[0]


def say(run: Run, shared: _core.SharedRuns, said: Said) -> None:
    """Tell a run a message of the user, once if it has a key. As `tell`.

    Raises:
        KeyTaken: Another message was said under this key.
    """
    if said.key is None or not _was_said(run, shared, said):
        tell(run, shared, Told("say", body=to_text(said)))
        if said.key is not None:
            # Of two that were told at the same moment, the first one counts.
            _was_said(run, shared, said)


def _was_said(run: Run, shared: _core.SharedRuns, said: Said) -> bool:
    """Whether a message was said under its key, by whoever.

    Raises:
        KeyTaken: It is another one.
    """
    key = said.key
    assert key is not None
    # What waits is in the log next: so the log is read last.
    waiting = [
        from_text(one.body) for one in _inbox_of(run, shared) if one.kind == "say" and one.body
    ]
    if not never_began(run):
        catch_up(run)
    with naming(run):
        if run._core.was_said(said.text, said.parts, key):
            return True
    first = next((one for one in waiting if one.key == key), None)
    if first is None:
        return False
    if _content(first) == _content(said):
        return True
    error = KeyTaken(
        f"run {run.id} has a message with the key {key!r}, and another text: use another key for "
        "another message, or pass the message that the run has"
    )
    error.run = run
    raise error


def _content(said: Said) -> tuple[str, list[str]]:
    text = said.text
    for number, part in enumerate(said.parts):
        text = text.replace(part.label, f"{_core.Part.MARK}{number}")
    return text, [part.sha256 for part in said.parts]


@contextmanager
def naming(run: Run) -> Iterator[None]:
    """Name the run in a `KeyTaken` of its messages."""
    try:
        yield
    except KeyTaken as error:
        error.run = run
        raise


def _refusal(run: Run, kind: str, ticket: int, first: str | None) -> UsageError:
    """Return why a ticket cannot be decided on or answered.

    Args:
        run: The run of the ticket.
        kind: As in `Told`.
        ticket: The number of the ticket.
        first: Who was first, if the inbox of the run has that; `None` if its log may.

    Raises:
        UsageError: The log says more.
    """
    waits = _waits_for(kind)
    if first is None:
        catch_up(run)
        if kind == "answer":
            run._core.check_awaits_result(ticket)
        else:
            run._core.check_awaits_approval(ticket)
        return UsageError(
            f"ticket {ticket_id(ticket)} of run {run.id} is not awaiting {waits} just now"
        )
    done = "answered it" if kind == "answer" else "decided"
    return Outdated(
        f"ticket {ticket_id(ticket)} of run {run.id} is not awaiting {waits}: {first} has {done} "
        "already"
    )


def _waits_for(kind: str) -> str:
    return "a result" if kind == "answer" else "approval"


def check_answer(run: Run, ticket: int, outcome: _core.Outcome) -> None:
    """Check a result for a ticket of a run that another process may drive.

    Raises:
        UsageError: The ticket awaits no result, or one of another type.
    """
    if not run._core.awaits_result(ticket):
        catch_up(run)
    run._core.check_answer(ticket, outcome)


def _check_edited(run: Run, ticket: int, arguments: str) -> None:
    if not run._core.is_open(ticket):
        catch_up(run)
    run._core.check_awaits_approval(ticket)
    run._core.check_edited(ticket, arguments)


def catch_up(run: Run) -> None:
    """Read what other processes have written of a run since it was read here."""
    assert run._store is not None
    run._core.catch_up(run._store._native)


def to_text(said: Said) -> str:
    """Return what a user says as JSON, with the bytes of its images and files."""
    parts = [
        {
            "mark": part.label,
            "media_type": part.media_type,
            "name": part.name,
            "base64": b64encode(part.data()).decode(),
        }
        for part in said.parts
    ]
    told = {"text": said.text, "parts": parts}
    return json.dumps(told | ({} if said.key is None else {"key": said.key}), ensure_ascii=False)


def from_text(text: str) -> Said:
    """Return what a user says, from `to_text`."""
    given = json.loads(text)
    parts = [
        _core.Part(b64decode(one["base64"]), one["media_type"], one["name"]).marked(one["mark"])
        for one in given["parts"]
    ]
    return Said(given["text"], parts, given.get("key"))


def never_began(run: Run) -> bool:
    """Whether the run was left for good before it began: no store has anything of it."""
    is_over = run._left is not None and not isinstance(run._left, _NOT_HERE)
    return is_over and not run._core.event_count


def was_cancelled_unstarted(run: Run) -> bool:
    """Whether the run was cancelled before it began."""
    return isinstance(run._left, RunCancelled) and never_began(run)


def check_begun(run: Run) -> None:
    """Check that a run that no driver works on has begun, so that its log takes what comes.

    Raises:
        UsageError: It has not.
    """
    if run._core.event_count or run._driver is not None:
        return
    if was_cancelled_unstarted(run):
        told = "was cancelled before it began, and nothing of it is kept: start its task again"
    elif never_began(run):
        told = "failed before it began, and nothing of it is kept: start its task again"
    else:
        told = "has not begun: enter its stream first, or take an item of stream_sync(…)"
    raise UsageError(f"run {run.id} {told}")


def goes_on(run: Run) -> bool:
    """Whether the run is not over for its store, though a driver has left it: it may be resumed."""
    if never_began(run):
        return False
    return run._store is not None and isinstance(run._left, (RunCancelled, *_NOT_HERE))


_heirs: WeakKeyDictionary[Run[Any], Future[RunResult[Any]]] = WeakKeyDictionary()


def set_heir(run: Run[Any], heir: Future[RunResult[Any]]) -> None:
    """Let somebody else have the result of a run, if its driver leaves it before its end.

    Or after a failure of its model, from which it goes on.
    """
    _heirs[run] = heir


async def result_of(run: Run[AnswerT]) -> RunResult[AnswerT]:
    """Wait for the result of a run. As `await run`."""
    heir = _heirs.get(run)
    if heir is None or run._driver is not None:
        try:
            return await driven_result(run)
        except (RunCancelled, ModelError):
            if heir is None:
                raise
    return await shielded(_lazy.asyncio.wrap_future(heir))


async def driven_result(run: Run[AnswerT]) -> RunResult[AnswerT]:
    """Wait for the result of a run, or until its driver leaves it."""
    driver, left = run._driver, run._left
    is_over = driver is None and left is None and run.finished
    # What a driver has left may have gone on since it was read here.
    is_elsewhere = isinstance(left, _NOT_HERE) or (left is None and not is_over)
    if run._told_by is not None and is_elsewhere:
        result: RunResult[AnswerT] = await ResultElsewhere(run)
        return result
    if driver is not None:
        return await driver.result()
    if left is not None:
        raise left
    if is_over:
        return RunResult._of(run)
    check_begun(run)
    raise UsageError(
        f"nothing works on this run: call agent.resume({run.id!r}), or read the run that is in "
        "progress with store.run(run_id)"
    )


class ResultElsewhere:
    """The result of a run that another process may work on, once it is awaited.

    Args:
        run: The run, as it was read, or before it was told a message.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._after = run._core.event_count - 1

    def __await__(self) -> Generator[Any, Any, RunResult]:
        return self._wait().__await__()

    async def _wait(self) -> RunResult:
        watch = self._run.watch(after=self._after)
        # It does not end before the message was read, and answered.
        async for _ in watch:
            pass
        if watch.run is not self._run and self._run._driver is None:
            # Whoever has this object reads the result with it.
            with suppress(StoreError):
                await pool.in_own_thread(catch_up, self._run)
        return RunResult._of(watch.run)
