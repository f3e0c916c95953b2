"""Runs and their tickets: an agent's work, to be looked at while it goes on and afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip._json import from_json
from callslip._messages import Messages, Transcript
from callslip.errors import (
    LimitExceeded,
    ModelError,
    ProtocolError,
    RunCancelled,
)
from callslip.events import Event
from callslip.tools import Context

if TYPE_CHECKING:
    from callslip import _core
    from callslip._session import Session

__all__ = ["Run", "RunResult", "StopReason", "Ticket", "TicketStatus", "Usage"]

StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]
TicketStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED"]
Outcome: TypeAlias = Literal["ok", "error", "retry", "in_doubt", "cancelled"]


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


@dataclass(frozen=True, slots=True)
class Ticket:
    """The record of one tool call.

    Attributes:
        id: `T1`, `T2`, … in the order of opening.
        run_id: The run that made the call.
        kind: `"tool_call"`.
        description: What it is for: the model's words, or the call itself.
        status: `"IN_PROGRESS"` or `"COMPLETED"`.
        tool: The tool called.
        call_id: The model's own name for the call (chatty).
        outcome: `"ok"`, `"error"`, `"retry"` (the tool asked for another try), `"in_doubt"` (its
            process ended during the call), `"cancelled"`, or `None` while it is in progress.
        result: The whole result as JSON values; `None` where there is none.
        error: What the model was told of a failure.
        opened_at: Unix seconds.
        completed_at: Unix seconds.
    """

    id: str
    run_id: str
    kind: Literal["tool_call"]
    description: str
    status: TicketStatus
    tool: str
    call_id: str | None
    outcome: Outcome | None
    result: Any
    error: str | None
    opened_at: float
    completed_at: float | None

    @classmethod
    def from_row(cls, row: _core.TicketRow) -> Ticket:
        """Read what the core says of a ticket."""
        run_id, ticket_id, description, status, tool, call_id, outcome, opened, completed = row
        word, text = (None, None) if outcome is None else outcome
        result = None
        if word == "ok" and text is not None:
            result = from_json(text)
        return cls(
            id=ticket_id,
            run_id=run_id,
            kind="tool_call",
            description=description,
            status=status,
            tool=tool,
            call_id=call_id,
            outcome=word,
            result=result,
            error=None if word == "ok" else text,
            opened_at=opened,
            completed_at=completed,
        )


class Run:
    """One agent working on one task: its transcript, its tickets, its log.

    Attributes:
        id: Unique among runs.
        task: What the user asked for.
    """

    id: str
    task: str

    def __init__(self, core: _core.Run, run_id: str, task: str) -> None:
        self._core = core
        self._transcript = Transcript(core)
        self.id = run_id
        self.task = task

    @property
    def messages(self) -> Messages:
        """The transcript as it is now; the model is given the same."""
        return self._transcript.now()

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets, oldest first."""
        return [Ticket.from_row(row) for row in self._core.tickets()]

    @property
    def log(self) -> list[Event]:
        """Everything that has happened: the run is the fold of these events."""
        return [Event.from_json(text) for text in self._core.records()]

    def export(self) -> str:
        """Return the log as JSON lines, one event a line: what `replay` and `import_run` read."""
        return "".join(f"{text}\n" for text in self._core.records())

    @property
    def usage(self) -> Usage:
        """What the replies cost so far."""
        return Usage(*self._core.usage)

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

    def context(self, ticket: int, tool: str) -> Context:
        """Return what a tool of this run is told about its call."""
        return Context(run_id=self.id, ticket_id=f"T{ticket}", tool=tool)

    def __repr__(self) -> str:
        state = self.stop_reason or "running"
        return f"Run({self.id!r}, {state}, turns={self.turns}, tickets={len(self._core.tickets())})"


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
            ModelError: The model client failed.
            RunCancelled: It was cancelled.
        """
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
                raise ProtocolError(error, run)
            case "cancelled":
                raise RunCancelled(error, run)
        if isinstance(session.error, ModelError) and session.error.run is None:
            session.error.run = run
            raise session.error
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
