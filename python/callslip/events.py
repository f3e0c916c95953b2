"""Events of a run's log, and progress, which is not logged."""

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
    "ticket_completed",
    "noted",
    "run_finished",
    "compacted",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a run's log.

    Attributes:
        seq: The position in the log, from 0.
        at: The time in Unix seconds.
        kind: The kind of event.
        data: The fields of that kind, as JSON values.
        run_id: The id of the run.
    """

    seq: int
    at: float
    kind: EventKind
    data: Mapping[str, Any]
    run_id: str = ""

    @classmethod
    def from_json(cls, text: str, run_id: str = "") -> Event:
        """Return the event of one line of a log."""
        record = from_json(text)
        ((kind, data),) = record["event"].items()
        return cls(record["seq"], record["at"], kind, data, run_id)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a tool call, as its tool reports it. It is streamed, and not logged.

    Attributes:
        run_id: The id of the run.
        ticket_id: The id of the call's ticket, such as `"T1"`.
        tool: The name of the tool.
        done: The amount of work done, in the tool's own unit.
        total: The whole amount of work; `None` if it is not known.
        message: The step that the tool is at; `None` if it does not report one.
    """

    run_id: str
    ticket_id: str
    tool: str
    done: float
    total: float | None = None
    message: str | None = None
