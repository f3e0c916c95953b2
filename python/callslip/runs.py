"""Runs and their tickets: an agent's work, to be looked at while it goes on and afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from callslip._json import from_json
from callslip._messages import Messages, Transcript
from callslip._options import check_text
from callslip.errors import (
    ContextFull,
    LimitExceeded,
    ModelError,
    ModelRefused,
    ProtocolError,
    RunCancelled,
    UsageError,
)
from callslip.events import Event

if TYPE_CHECKING:
    from callslip import _core
    from callslip._session import Session
    from callslip.agent import Agent
    from callslip.store import TicketStore

__all__ = ["Run", "RunResult", "StopReason", "Ticket", "TicketStatus", "Usage"]

StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]
TicketStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED"]
TicketKind: TypeAlias = Literal["tool_call", "task"]
Outcome: TypeAlias = Literal["ok", "error", "retry", "in_doubt", "denied", "cancelled"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run's replies cost, as the model client reports it.

    Attributes:
        input_tokens: Tokens of the messages.
        output_tokens: Tokens of the replies.
        cached_tokens: Those of the input that came from the client's cache.
        cost: In the client's own currency; 0.0 where it does not say.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float

    def __add__(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Ticket:
    """The record of one tool call, or of one task that was given to another run.

    Attributes:
        id: `T1`, `T2`, … in the order of opening.
        run_id: The run that made the call.
        kind: `"tool_call"` or `"task"`.
        description: What it is for, in the model's words, which need not be true; where it gave
            none, the call, cut to fit into a prompt. `call` is what is done.
        status: `"IN_PROGRESS"` or `"COMPLETED"`.
        tool: The tool called; `DELEGATE` for that move.
        arguments: What the call is made with, checked and whole. Where an argument refers to
            another call (chatty), the reference as it was written until that call has ended, then
            its result. A call waits for approval only once they are final. `None` where a version
            before 0.2 compacted the run.
        call_id: The model's own name for the call (chatty).
        parked: Whether it waits until a person approves it.
        outcome: `"ok"`, `"error"`, `"retry"` (the tool asked for another try), `"in_doubt"` (its
            process ended during the call), `"denied"` (by a person), `"cancelled"`, or `None` while
            it is in progress.
        result: The whole result as JSON values; `None` where there is none.
        error: What the model was told of a failure.
        opened_at: Unix seconds.
        completed_at: Unix seconds.
    """

    id: str
    run_id: str
    kind: TicketKind
    description: str
    status: TicketStatus
    tool: str
    call_id: str | None
    parked: bool
    outcome: Outcome | None
    result: Any
    error: str | None
    opened_at: float
    completed_at: float | None
    arguments: dict[str, Any] | None = None

    @property
    def call(self) -> str:
        """The call in one line, as the runtime writes it: the tool and its whole arguments.

        Of an operation, the method, the path with its values, and the other arguments. Characters
        that are not printable are escaped.
        """
        from callslip._call_line import call_line

        return call_line(self.tool, self.arguments)

    @classmethod
    def from_row(cls, row: _core.TicketRow) -> Ticket:
        """Read what the core says of a ticket."""
        run_id, ticket_id, kind, description, status, tool, call_id, parked = row[:8]
        outcome, opened, completed, arguments = row[8:]
        word, text = (None, None) if outcome is None else outcome
        result = None
        if word == "ok" and text is not None:
            result = from_json(text)
        return cls(
            id=ticket_id,
            run_id=run_id,
            kind=kind,
            description=description,
            status=status,
            tool=tool,
            call_id=call_id,
            parked=parked,
            outcome=word,
            result=result,
            error=None if word == "ok" else text,
            opened_at=opened,
            completed_at=completed,
            arguments=None if arguments is None else from_json(arguments),
        )


class Run:
    """One agent working on one task: its transcript, its tickets, its log.

    While it is under way it can be cancelled, told more, and its calls be approved or denied, from
    any thread, event loop or tool. In a store each of these returns once it is written down, and
    blocks for the moment that takes: what was decided stands, whatever happens next. A run that was
    read from a store and that nobody works on can be told, approved and denied too: `Agent.resume`
    goes on with it.

    Attributes:
        id: Unique among runs.
        task: What the user asked for.
    """

    __slots__ = (
        "__weakref__",
        "_agent",
        "_children",
        "_core",
        "_driver",
        "_levels",
        "_store",
        "_transcript",
        "id",
        "task",
    )

    id: str
    task: str

    def __init__(
        self,
        core: _core.Run,
        run_id: str,
        task: str,
        *,
        agent: Agent | None = None,
        store: TicketStore | None = None,
    ) -> None:
        self._core = core
        self._transcript: Transcript | None = None
        self._agent = agent
        self._store = store
        self._driver: Driver | None = None
        # How many levels of runs may be below it, for whoever goes on with it.
        self._levels: int | None = None
        self._children: list[Run] | None = None
        self.id = run_id
        self.task = task

    @property
    def messages(self) -> Messages:
        """The transcript as it is now: what the model is given, but for what `history` drops."""
        if self._transcript is None:
            self._transcript = Transcript(self._core)
        return self._transcript.now()

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets, oldest first."""
        return [Ticket.from_row(row) for row in self._core.tickets()]

    @property
    def children(self) -> list[Run]:
        """The runs of the tasks that this one has given to others, oldest first.

        Those that this process has worked on; of a kept run, also those of earlier processes, and
        runs that were started in its calls by hand.
        """
        seen = {child.id: child for child in self._children or ()}
        if self._store is None:
            return list(seen.values())
        rows = self._store.runs(parent=self.id)
        return [seen.get(row.run_id) or self._store.run(row.run_id) for row in reversed(rows)]

    @property
    def approvals(self) -> list[Ticket]:
        """The calls that wait for approval, of this run and of all below it."""
        parked = [ticket for ticket in self.tickets if ticket.parked]
        under_way = self.children if self._driver is None else self._children or ()
        for child in list(under_way):
            if not child.finished:
                parked += child.approvals
        return parked

    def approve(self, ticket: Ticket | str) -> None:
        """Have a call made that waits for approval.

        Args:
            ticket: Its ticket; or the ticket's id, of this run. A ticket may be one of a run below.

        Raises:
            UsageError: It does not wait for approval.
            StoreError: That can't be written down.
        """
        run, number = self._of_ticket(ticket)

        run._give(lambda now: run._core.approve(number, now))  # noqa: SLF001  # of this class

    def deny(self, ticket: Ticket | str, why: str = "") -> None:
        """Refuse a call that waits for approval. The model is told so, and why.

        Raises:
            UsageError: It does not wait for approval.
            StoreError: That can't be written down.
        """
        if not isinstance(why, str):
            raise UsageError(f"expected the reason as a string: got {type(why).__name__}")
        check_text("the reason", why)
        run, number = self._of_ticket(ticket)
        run._give(lambda now: run._core.deny(number, why, now))  # noqa: SLF001  # of this class

    def cancel(self) -> None:
        """End the run, all runs below it and all its calls; it does nothing where it is over.

        Whoever waits for the run gets `RunCancelled`. A sync tool can't be stopped: it finds
        `Context.cancelled` set.
        """
        if self.finished:
            return
        kept = self._store if self._driver is None else None
        self._give(self._core.cancel)
        if kept is not None:
            # Whoever works on a run ends those below it; nobody does.
            kept.end_children(self.id)

    def send(self, message: str) -> Awaitable[RunResult]:
        """Say more to the run. It is told with the next message to the model.

        A run that is over goes on with it when what this returns is awaited. One that is under way
        takes it up by itself, also where its model is just giving its answer: then it goes on.

        Returns:
            To be awaited for what comes of the run then; it raises as `Agent.run` does.

        Raises:
            UsageError: The message is no text, or the run has not begun.
            StoreError: It can't be written down.
        """
        from callslip import _conversation

        return _conversation.send(self, message)

    def send_sync(self, message: str) -> RunResult:
        """Say more to a run that is over and go on with it, in this thread. As `send`.

        Raises:
            UsageError: The run is under way, or was called inside a tool.
        """
        from callslip import _conversation

        return _conversation.send_sync(self, message)

    @property
    def log(self) -> list[Event]:
        """Everything that has happened: the run is the fold of these events."""
        return [Event.from_json(text, self.id) for text in self._core.records()]

    def export(self) -> str:
        """Return the log as JSON lines, one event a line: what `replay` and `import_run` read."""
        return "".join(f"{text}\n" for text in self._core.records())

    @property
    def usage(self) -> Usage:
        """What the replies cost so far."""
        return Usage(*self._core.usage)

    @property
    def total(self) -> Usage:
        """The same with all runs below it: those that have ended, and those under way."""
        usage = Usage(*self._core.spent[:4])
        ended = {f"{self.id}.{one.id}" for one in self.tickets if one.status == "COMPLETED"}
        for child in self._children or ():
            if child.id not in ended:
                usage += child.total
        return usage

    @property
    def turns(self) -> int:
        """How often the model was asked."""
        return self._core.counts[0]

    @property
    def violations(self) -> int:
        """How many replies broke the protocol."""
        return self._core.counts[1]

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._core.finished

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it ended; `None` while it goes on."""
        ending = self._core.ending
        return None if ending is None else ending[0]

    def drive_by(self, driver: Driver) -> None:
        """Say who works on it."""
        self._driver = driver
        if self._store is not None:
            from callslip.store import took_up

            took_up(self)

    def is_kept_in(self, store: TicketStore) -> bool:
        """Whether it is under way, and kept there."""
        kept = self._store
        if self._driver is None or kept is None:
            return False
        return kept is store or (kept.path is not None and kept.path == store.path)

    def left(self) -> None:
        """Say that nobody works on it any more."""
        self._driver = None

    def adopt(self, child: Run) -> None:
        """Take a run that was started for one of its tasks, or in one of its calls."""
        if self._children is None:
            self._children = []
        self._children.append(child)

    def _of_ticket(self, ticket: Ticket | str) -> tuple[Run, int]:
        if not isinstance(ticket, str | Ticket):
            raise UsageError(f"expected a Ticket or its id, such as 'T1': got {ticket!r}")
        run_id, ticket_id = (
            (self.id, ticket) if isinstance(ticket, str) else (ticket.run_id, ticket.id)
        )
        digits = ticket_id.removeprefix("T")
        if not digits.isdecimal():
            raise UsageError(f"expected a Ticket or its id, such as 'T1': got {ticket_id!r}")
        run = self._find(run_id)
        if run is None:
            raise UsageError(
                f"ticket {ticket_id} is one of run {run_id}, which is not below {self.id}"
            )
        return run, int(digits)

    def _find(self, run_id: str) -> Run | None:
        if run_id == self.id:
            return self
        found = (child._find(run_id) for child in self.children)  # noqa: SLF001  # of this class
        return next((run for run in found if run is not None), None)

    def _give(self, make: Callable[[float], list[_core.Command]]) -> None:
        """Give something in from outside: to whoever works on the run, or into its log."""
        from callslip._conversation import taken

        if taken(self, make) is not None:
            return
        if self._store is not None:
            from callslip._conversation import written_down

            written_down(self, self._store, make)
        elif self.finished:
            # Nothing of it waits for approval.
            make(0.0)
        else:
            raise UsageError(
                "nobody works on this run: watch it with agent.stream(…), or take it from its "
                "store with store.run(run_id)"
            )

    def __repr__(self) -> str:
        state = self.stop_reason or "running"
        return f"Run({self.id!r}, {state}, turns={self.turns}, tickets={len(self._core.tickets())})"


class Driver(Protocol):
    """Whoever works on a run."""

    def give(self, make: Callable[[float], list[_core.Command]]) -> bool:
        """Take what somebody else gives in, from any thread.

        Returns:
            Whether it was taken; else the driver is just leaving the run.
        """

    def result(self) -> Awaitable[RunResult]:
        """Return what is to be awaited for the end of the run."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Attributes:
        value: What the model finished with: any JSON value in the ticket protocol, text in the
            others.
        success: What a react reply said of its own success; `True` in the other protocols.
        stop_reason: `"finished"`, or `"limit"` where the model answered in its last turn.
        run: The run: transcript, tickets, log.
    """

    value: Any
    success: bool
    stop_reason: StopReason
    run: Run = field(repr=False)

    @classmethod
    def of(cls, session: Session) -> RunResult:
        """Return what came of a run that is over.

        Raises:
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ContextFull: The transcript is longer than the model can read.
            ModelRefused: The model, or its provider's filter, refused to answer.
            ModelError: The model client failed.
            RunCancelled: It was cancelled.
        """
        from callslip.models._failures import is_context_full, is_refusal

        run = session.run
        ending = session.core.ending
        assert ending is not None
        reason, value, success, error, limit = ending
        if error is None:
            return cls(value, success is not False, reason, run)
        match reason:
            case "limit":
                raise LimitExceeded(error, run, limit or "")
            case "violations":
                raise ProtocolError(f"{error}; the model's words: {_last_words(run)}", run)
            case "cancelled":
                raise RunCancelled(error, run)
        if is_context_full(session.error, error):
            raise ContextFull(
                f"the model's context is full in turn {run.turns}: {error}; {_to_make_room(run)}",
                run,
            ) from session.error
        if isinstance(session.error, ModelError) and session.error.run is None:
            session.error.run = run
            raise session.error
        if is_refusal(session.error, error):
            raise ModelRefused(f"the model refused to answer: {error}", run) from session.error
        raise ModelError(f"the model failed in turn {run.turns}: {error}", run) from session.error

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets of the run, oldest first."""
        return self.run.tickets

    @property
    def messages(self) -> Messages:
        """The transcript."""
        return self.run.messages

    @property
    def usage(self) -> Usage:
        """What the replies cost."""
        return self.run.usage

    @property
    def total(self) -> Usage:
        """The same with all runs below it."""
        return self.run.total


def _to_make_room(run: Run) -> str:
    if run._store is None:  # noqa: SLF001  # of this module
        return "what it has done is in the error's .run; pass history=KeepLast(…) to the agent"
    return f"pass history=KeepLast(…) to the agent and call resume({run.id!r}) to go on from there"


def _last_words(run: Run) -> str:
    from callslip.models._ends import quoted

    replies = (one["content"] for one in reversed(run.messages) if one["role"] == "assistant")
    return quoted(next(replies, "")) or "none"
