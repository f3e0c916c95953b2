"""Tickets: the record of each tool call and of each task given to another run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip._json import from_json
from callslip.runs._call_line import call_line

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Outcome", "Ticket", "TicketKind", "TicketStatus"]

TicketStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED"]
TicketKind: TypeAlias = Literal["tool_call", "task"]
Outcome: TypeAlias = Literal["ok", "error", "retry", "in_doubt", "denied", "cancelled"]


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
