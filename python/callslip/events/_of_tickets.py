"""Events of tool calls and delegated tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from callslip.events._event import Event, EventKind, Json, ticket_id
from callslip.origins import Origin
from callslip.origins._read import origins_of

__all__ = [
    "ApprovalChecked",
    "Approved",
    "ArgumentsFilled",
    "TicketCompleted",
    "TicketOpened",
    "TicketPending",
    "ToolAttemptFailed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketOpened(Event):
    """A call is made, or a task is given to a child run.

    Attributes:
        ticket_id: The id of the ticket, such as `"T1"`.
        ticket_kind: `"tool_call"` or `"task"`.
        script: Whether the task is a script that calls tools.
        turn: The number of the turn whose reply asks for it.
        call: Its position among the calls of that reply, from 0.
        call_id: The model's own id for the call (chatty).
        description: As `Ticket.description`.
        tool: The name of the tool.
        arguments: The checked arguments. References to other calls are as they were written.
        needs: The ids of the tickets that the arguments refer to.
        detached: Whether the model continues without its outcome (chatty).
        needs_approval: Whether it awaits approval now.
        checks_approval: Whether a function decides first if it needs approval.
        coerced: JSON pointers of the arguments that were read as another type than they were
            written in.
        external: Set for a call that is never made, because its result comes from outside:
            `returns`, the JSON Schema of the result, `timeout` in seconds, and `asks` for a
            question of `ask_user`, each if there is one. `None` for other calls.
        untrusted: Whether its result will be untrusted, as far as is known; see `Ticket.untrusted`.
        origins: As `Ticket.origins`.
        reason: Why it needs approval, if its values are the reason; else `None`.
    """

    kind: ClassVar[EventKind] = "ticket_opened"
    ticket_id: str
    ticket_kind: Literal["tool_call", "task"] = "tool_call"
    script: bool = False
    turn: int
    call: int
    call_id: str | None
    description: str
    tool: str
    arguments: Json
    needs: list[str]
    detached: bool = False
    needs_approval: bool = False
    checks_approval: bool = False
    coerced: list[str] = field(default_factory=list)
    external: Json | None = None
    untrusted: bool = False
    origins: dict[str, Origin] = field(default_factory=dict)
    reason: str | None = None

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        if "origins" in data:
            data["origins"] = origins_of(data["origins"])
        if "kind" in data:
            data["ticket_kind"] = data.pop("kind")
        data["needs"] = [ticket_id(number) for number in data["needs"]]
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsFilled(Event):
    """The results that a call refers to have arrived.

    Attributes:
        ticket_id: The id of the ticket.
        arguments: The checked arguments, final.
        needs_approval: Whether it awaits approval now.
        checks_approval: Whether a function decides first if it needs approval.
        untrusted: Whether it is a task or a script that uses an untrusted result.
    """

    kind: ClassVar[EventKind] = "arguments_filled"
    ticket_id: str
    arguments: Json
    needs_approval: bool = False
    checks_approval: bool = False
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalChecked(Event):
    """The function in `needs_approval` decided on a call.

    Attributes:
        ticket_id: The id of the ticket.
        needs_approval: Whether it awaits approval now.
        reason: The reason, in the program's words; `None` without one.
    """

    kind: ClassVar[EventKind] = "approval_checked"
    ticket_id: str
    needs_approval: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(Event):
    """A person approved a call.

    Attributes:
        ticket_id: The id of the ticket.
        arguments: The arguments with which the person has replaced those of the call; `None` if the
            call is made as it was.
        at_rest: Whether no driver worked on the run, so that the call has not begun.
        by: The name of the person; `None` if the program has passed none.
    """

    kind: ClassVar[EventKind] = "approved"
    ticket_id: str
    arguments: Json | None = None
    at_rest: bool = False
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketPending(Event):
    """A call has begun, and awaits its result from outside: its function has returned `Pending`.

    Attributes:
        ticket_id: The id of the ticket.
        external: What is known of the result: `returns`, its JSON Schema, and `timeout`, seconds
            from the opening of the ticket.
        key: By what others know the call; `None` without a key.
    """

    kind: ClassVar[EventKind] = "ticket_pending"
    ticket_id: str
    external: dict[str, Any]
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAttemptFailed(Event):
    """An attempt at a call failed. Another one follows, or the call ends with this failure.

    It is only written if a call has several attempts.

    Attributes:
        ticket_id: The id of the ticket.
        attempt: The number of the attempt, from 1.
        error: The error, as the model would read it.
        wait: Seconds until the next attempt; `None` if there is none.
    """

    kind: ClassVar[EventKind] = "tool_attempt_failed"
    ticket_id: str
    attempt: int
    error: str
    wait: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketCompleted(Event):
    """A call or a task ended.

    Attributes:
        ticket_id: The id of the ticket.
        outcome: As `Ticket.outcome`; `"not_begun"` for a call that was given up before it began.
        result: The whole result as JSON values, with the line of each image and file in its place;
            `None` without one.
        error: The error, as the model reads it; `None` without one.
        transient: Whether the failure is transient, so that a retry may succeed.
        spent: The usage, tickets and runs of a child run with all runs below it, as JSON; `None`
            for a call.
        parts: The images and files of the result, as in `RunStarted`.
        by: The name of the person who has denied the call, or of the person or system that has
            answered it; `None` if the program has passed none.
        untrusted: Whether a child run or a script has read an untrusted result.
    """

    kind: ClassVar[EventKind] = "ticket_completed"
    ticket_id: str
    outcome: Literal["ok", "error", "retry", "in_doubt", "denied", "cancelled", "not_begun"]
    result: Any = None
    error: str | None = None
    transient: bool = False
    spent: Json | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)
    by: str | None = None
    untrusted: bool = False

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        outcome = data["outcome"]
        if isinstance(outcome, dict):
            ((data["outcome"], content),) = outcome.items()
            if data["outcome"] == "run_cancelled":
                data["outcome"] = "cancelled"
            if data["outcome"] == "ok":
                data["result"] = content
            else:
                data["error"] = content["message"]
                data["transient"] = content.get("transient", False)
                data["by"] = content.get("by", data.get("by"))
        return data
