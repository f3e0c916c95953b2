"""What happens in a run: the events of its log, and the deltas of a reply still arriving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from callslip._core import Delta
from callslip._json import from_json

__all__ = ["Delta", "Event", "EventKind"]

EventKind: TypeAlias = Literal[
    "run_started",
    "model_asked",
    "model_replied",
    "violated",
    "moved",
    "user_said",
    "ticket_opened",
    "approved",
    "ticket_completed",
    "noted",
    "run_finished",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a run's log.

    Attributes:
        seq: Position in the log, from 0.
        at: Unix seconds.
        kind: What happened.
        data: The fields of that kind of event, JSON values throughout.
        run_id: The run it happened in.
    """

    seq: int
    at: float
    kind: EventKind
    data: Mapping[str, Any]
    run_id: str = ""

    @classmethod
    def from_json(cls, text: str, run_id: str = "") -> Event:
        """Read one line of a log."""
        record = from_json(text)
        ((kind, data),) = record["event"].items()
        return cls(record["seq"], record["at"], kind, data, run_id)
