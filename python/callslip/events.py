"""What happens in a run: the events of its log, and what passes by without being kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from callslip._core import Delta
from callslip._json import from_json

__all__ = ["Delta", "Event", "EventKind", "Progress"]

EventKind: TypeAlias = Literal[
    "run_started",
    "model_asked",
    "model_replied",
    "violated",
    "moved",
    "user_said",
    "ticket_opened",
    "arguments_filled",
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come, as its tool says. Told to whoever watches, and not kept.

    Attributes:
        run_id: The run that calls.
        ticket: The id of the call's ticket.
        tool: The tool's name.
        done: How much is done, in the tool's own unit.
        total: How much there is to do; `None` where that is not known.
        message: What the tool is at; `None` where it does not say.
    """

    run_id: str
    ticket: str
    tool: str
    done: float
    total: float | None = None
    message: str | None = None
