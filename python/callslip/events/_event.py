"""What all events have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from callslip._base.attribute_names import knows_attributes
from callslip._base.json import to_json
from callslip._base.usage import Usage
from callslip.events._json import fields_of

__all__ = ["Event", "EventKind", "Json", "common_fields", "ticket_id"]

EventKind: TypeAlias = Literal[
    "run_started",
    "model_asked",
    "model_attempt_failed",
    "history_shortened",
    "model_replied",
    "violated",
    "answer_offered",
    "moved",
    "user_said",
    "ticket_opened",
    "arguments_filled",
    "approval_checked",
    "approved",
    "ticket_pending",
    "tool_attempt_failed",
    "ticket_completed",
    "noted",
    "run_finished",
    "compacted",
]

Json: TypeAlias = Mapping[str, Any]
"""A part of an event as JSON values."""


_ELSEWHERE = {
    "event name type": "event.kind",
    "id index": "event.seq",
    "run": "event.run_id",
    "ticket": "event.ticket_id of the events of a ticket",
    "content delta text": "case Delta.Answer(text=text), an item of a stream beside the events",
    "created_at time timestamp": "event.at",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of a run's log: an object of one of the classes of this module.

    Attributes:
        kind: The kind of event, one for each class. A constant of the class.
        seq: The position in the log, from 0.
        at: The time in Unix seconds.
        run_id: The id of the run.
    """

    kind: ClassVar[EventKind]
    seq: int
    at: float
    run_id: str

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the class for those of the log, after `common_fields`."""
        return data

    def to_json(self) -> str:
        """Return the event as a JSON object: `kind` and the fields of the class.

        This is the public form. The lines of `Run.export` are those of the log.
        """
        return to_json({"kind": self.kind, **fields_of(self)})


def ticket_id(number: int) -> str:
    """Return the id of the ticket of this number."""
    return f"T{number}"


def common_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a log with the id of their ticket, and their usage as an object.

    The places of narration, thoughts and answer are removed. `read_event` adds the texts.
    """
    for name in ("narration", "thoughts", "answer"):
        data.pop(name, None)
    if "ticket" in data:
        data["ticket_id"] = ticket_id(data.pop("ticket"))
    usage = data.get("usage")
    if usage is not None:
        usage.pop("unpriced", None)
        data["usage"] = Usage(**usage)
    return data
