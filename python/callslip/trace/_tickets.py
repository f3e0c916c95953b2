"""Tickets of a trace: tool calls and delegated tasks, with the runs below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from callslip.origins import Origin

if TYPE_CHECKING:
    from callslip._base.usage import Usage
    from callslip.trace._trace import Trace

__all__ = ["Approval", "TicketSpan", "ToolAttempt", "UsedPlace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The decision of a person on a call, or the wait for it.

    Attributes:
        requested_at: The time from which the call has awaited approval, in Unix seconds. `None` if
            the log was compacted since.
        decided_at: The time of the decision; `None` without one.
        decision: `"approved"` or `"denied"`; `None` without a decision.
        by: The name of the person; `None` if the program has passed none.
        reason: The reason why the call needs approval, in the program's words; `None` without one.
        replaced_arguments: The arguments of the model, if the person has replaced them; else
            `None`.
    """

    requested_at: float | None = None
    decided_at: float | None = None
    decision: Literal["approved", "denied"] | None = None
    by: str | None = None
    reason: str | None = None
    replaced_arguments: Mapping[str, Any] | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds from the request to the decision; `None` without both times."""
        if self.requested_at is None or self.decided_at is None:
            return None
        return max(0.0, self.decided_at - self.requested_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAttempt:
    """An attempt at a call that failed.

    Attributes:
        at: The time of the failure, in Unix seconds.
        number: The number of the attempt, from 1.
        error: The error, as the model would read it.
        wait: Seconds until the next attempt; `None` if there is none.
    """

    at: float
    number: int
    error: str
    wait: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPlace:
    """A place of a result, or of an error, that the value of an argument comes from.

    Attributes:
        pointer: The JSON pointer of the text or number in the result that has the value; empty for
            a result without others in it, and for an error.
        start: The position of the first character in that text, or in the digits of that number.
        end: The position after the last character.
        ticket_id: The id of the ticket that uses the value.
        argument: The JSON pointer of its argument.
    """

    pointer: str
    start: int
    end: int
    ticket_id: str
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketSpan:
    """One tool call or one delegated task: a ticket with its times and the runs below it.

    Attributes:
        id: The id of the ticket, such as `"T1"`.
        kind: `"tool_call"` or `"task"`.
        tool: The name of the tool; `DELEGATE` for that move.
        call_id: The model's own id for the call (chatty); else `None`.
        description: As `Ticket.description`.
        arguments: The checked arguments, as the call is made; `None` if a version before 0.2 has
            compacted the run.
        written_arguments: The arguments as the model wrote them, if they refer to other calls; else
            `None`.
        needs: The ids of the tickets that the arguments refer to.
        coerced: JSON pointers of arguments that were read as another type than they were written
            in.
        detached: Whether the model continues without the outcome (chatty).
        opened_at: The time of the call, in Unix seconds.
        completed_at: The time of the outcome; `None` while it is in progress.
        outcome: As `Ticket.outcome`, or `"not_begun"` for a call that was given up before it began;
            `None` while it is in progress.
        result: The result as JSON values, with the line of each image and file in its place; `None`
            without one.
        error: The error, as the model reads it; `None` without one.
        transient: Whether the failure is transient, so that a retry may succeed.
        approval: The approval of the call; `None` if it needs none.
        attempts: The attempts that failed. The last attempt is not among them if it succeeded.
        parts: The labels of the images and files of the result: keys of `Trace.parts`.
        spent: The usage of the run below, with all runs below that one; `None` for a call.
        runs: The runs below: a child run for a task, and runs that the tool has started.
        seqs: The positions in the log of the events of the ticket.
        external: Whether its result comes from outside, and nothing is called.
        untrusted: As `Ticket.untrusted`.
        origins: As `Ticket.origins`. They are those of the model's arguments, even if a person has
            replaced them.
        influenced: As `Ticket.influenced`.
        used: The places of its result, or of its error, that values of calls come from. A value
            that stands in the key of an object has no place here.
    """

    id: str
    kind: Literal["tool_call", "task"]
    tool: str
    call_id: str | None = None
    description: str = ""
    arguments: Mapping[str, Any] | None = None
    written_arguments: Mapping[str, Any] | None = None
    needs: tuple[str, ...] = ()
    coerced: tuple[str, ...] = ()
    detached: bool = False
    opened_at: float = 0.0
    completed_at: float | None = None
    outcome: str | None = None
    result: Any = None
    error: str | None = None
    transient: bool = False
    approval: Approval | None = None
    attempts: tuple[ToolAttempt, ...] = ()
    parts: tuple[str, ...] = ()
    spent: Usage | None = None
    runs: tuple[Trace, ...] = ()
    seqs: tuple[int, ...] = ()
    external: bool = False
    untrusted: bool = False
    origins: Mapping[str, Origin] = field(default_factory=dict)
    influenced: tuple[str, ...] = ()
    used: tuple[UsedPlace, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Seconds from the call to the outcome; `None` while it is in progress."""
        return None if self.completed_at is None else max(0.0, self.completed_at - self.opened_at)

    @property
    def awaiting_approval(self) -> bool:
        """Whether the call waits until a person approves or denies it."""
        asked = self.approval
        return self.outcome is None and asked is not None and asked.decision is None

    @property
    def state(self) -> str:
        """Its state in words: what it waits for, or its outcome."""
        if self.awaiting_approval:
            return "awaiting approval"
        if self.outcome is None:
            return "awaiting a result" if self.external else "in progress"
        return self.outcome

    @property
    def is_waiting(self) -> bool:
        """Whether the call, or one of a run below it, is awaiting approval."""
        return self.awaiting_approval or any(run.is_waiting for run in self.runs)
