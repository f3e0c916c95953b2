"""Tickets of a trace while the log is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callslip._base.usage import Usage
from callslip.events import (
    ApprovalChecked,
    Approved,
    ArgumentsFilled,
    Event,
    TicketCompleted,
    TicketOpened,
    ToolAttemptFailed,
)
from callslip.events._event import ticket_id
from callslip.origins import Origin
from callslip.origins._read import origins_of
from callslip.trace._tickets import Approval, TicketSpan, ToolAttempt, UsedPlace
from callslip.trace._trace import Trace

__all__ = ["TicketDraft"]


class TicketDraft:
    """One ticket, as far as the log has been read."""

    __slots__ = ("_approval", "_attempts", "_fields", "_seqs")

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self._approval: dict[str, Any] | None = None
        self._attempts: list[ToolAttempt] = []
        self._seqs: list[int] = []

    @classmethod
    def opened(cls, event: TicketOpened) -> TicketDraft:
        """Return the ticket that the event opens."""
        needs = tuple(event.needs)
        draft = cls(
            {
                "id": event.ticket_id,
                "kind": event.ticket_kind,
                "tool": event.tool,
                "call_id": event.call_id,
                "description": event.description,
                "arguments": event.arguments,
                "written_arguments": event.arguments if needs else None,
                "needs": needs,
                "coerced": tuple(event.coerced),
                "detached": event.detached,
                "opened_at": event.at,
                "external": event.external is not None,
                "untrusted": event.untrusted,
                "origins": event.origins,
            }
        )
        draft._seqs.append(event.seq)
        if event.needs_approval:
            draft._approval = {"requested_at": event.at}
        return draft

    @classmethod
    def compacted(cls, state: Mapping[str, Any]) -> TicketDraft:
        """Return a ticket of the state of a compacted run."""
        draft = cls(
            {
                "id": ticket_id(state["id"]),
                "kind": state.get("kind", "tool_call"),
                "tool": state["tool"],
                "call_id": state.get("call_id"),
                "description": state["description"],
                "arguments": state.get("arguments"),
                "detached": state.get("detached", False),
                "opened_at": state["opened_at"],
                "external": state.get("external") is not None,
                "untrusted": state.get("untrusted", False),
                "origins": origins_of(state.get("origins", {})),
                "completed_at": state.get("completed_at"),
                "parts": _labels(state.get("parts", ())),
            }
        )
        outcome = state.get("outcome")
        read: dict[str, Any] = {}
        if outcome is not None:
            read = TicketCompleted._fields({"outcome": outcome})
            draft._fields.update(
                {name: read.get(name) for name in ("outcome", "result", "error")},
                transient=read.get("transient", False),
            )
        decision = state.get("decision") and "approved"
        if draft._fields.get("outcome") == "denied":
            decision = "denied"
        if state.get("parked") or decision:
            draft._approval = {
                "decision": decision,
                "reason": state.get("approval_reason"),
                "by": read.get("by") if decision == "denied" else state.get("approved_by"),
            }
        return draft

    def read(self, event: Event) -> None:
        """Read an event of the ticket."""
        self._seqs.append(event.seq)
        match event:
            case ArgumentsFilled():
                self._fields["arguments"] = event.arguments
                self._fields["untrusted"] |= event.untrusted
                if event.needs_approval:
                    self._approval = {"requested_at": event.at}
            case ApprovalChecked():
                if event.needs_approval:
                    self._approval = {"requested_at": event.at, "reason": event.reason}
            case Approved():
                self._decide(event, "approved")
                if event.arguments is not None:
                    approval = self._approval or {}
                    approval["replaced_arguments"] = self._fields["arguments"]
                    self._fields["arguments"] = event.arguments
            case ToolAttemptFailed():
                self._attempts.append(
                    ToolAttempt(
                        at=event.at, number=event.attempt, error=event.error, wait=event.wait
                    )
                )
            case TicketCompleted():
                self._complete(event)
            case _:
                pass

    def _decide(self, event: Approved | TicketCompleted, decision: str) -> None:
        approval = self._approval = self._approval or {}
        approval.update(decided_at=event.at, decision=decision, by=event.by)

    def _complete(self, event: TicketCompleted) -> None:
        self._fields["untrusted"] |= event.untrusted
        self._fields.update(
            completed_at=event.at,
            outcome=event.outcome,
            result=event.result,
            error=event.error,
            transient=event.transient,
            parts=_labels(event.parts),
            spent=None if event.spent is None else _usage(event.spent["usage"]),
        )
        if event.outcome == "denied":
            self._decide(event, "denied")

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The origins of its values, by the JSON pointers of its arguments."""
        found: Mapping[str, Origin] = self._fields["origins"]
        return found

    @property
    def is_untrusted(self) -> bool:
        """Whether its result is untrusted."""
        return bool(self._fields["untrusted"])

    def finish(
        self,
        runs: tuple[Trace, ...],
        influenced: tuple[str, ...],
        used: tuple[UsedPlace, ...],
    ) -> TicketSpan:
        """Return the ticket.

        Args:
            runs: The runs below it.
            influenced: As in `TicketSpan`.
            used: As in `TicketSpan`.
        """
        return TicketSpan(
            **self._fields,
            influenced=influenced,
            used=used,
            approval=None if self._approval is None else Approval(**self._approval),
            attempts=tuple(self._attempts),
            runs=runs,
            seqs=tuple(self._seqs),
        )


def _labels(parts: Any) -> tuple[str, ...]:
    return tuple(part["label"] for part in parts)


def _usage(data: Mapping[str, Any]) -> Usage:
    known = {name: count for name, count in data.items() if name != "unpriced"}
    return Usage(**known)
