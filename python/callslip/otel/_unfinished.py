"""What a run had begun before it was resumed, and had not ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from callslip.events import (
    ApprovalChecked,
    Approved,
    ArgumentsFilled,
    Event,
    ModelAsked,
    ModelReplied,
    Noted,
    RunFinished,
    TicketCompleted,
    TicketOpened,
)

__all__ = ["Unfinished"]


@dataclass(slots=True)
class Unfinished:
    """The request to the model and the tickets of a run that are open.

    Attributes:
        asked: The request; `None` if there is none.
        waits: Since when tickets are awaiting approval, by their ids.
        approvals: How tickets were approved, by their ids.
        has_ended: Whether the run has ended after the request, which a resumed run repeats.
        is_over: Whether the last event was the end of the run.
    """

    asked: ModelAsked | None = None
    waits: dict[str, float] = field(default_factory=dict)
    approvals: dict[str, Approved] = field(default_factory=dict)
    has_ended: bool = False
    is_over: bool = False
    _open: dict[str, TicketOpened] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """Return what is open after these events of a log."""
        found = cls()
        for event in events:
            found.on_event(event)
        return found

    def begins_at(self, first: Event) -> float:
        """Return when the run was resumed.

        Args:
            first: The first event after that.
        """
        if isinstance(first, Noted):
            return first.at
        if self.has_ended:
            # A message asks the model anew.
            self.asked = None
        # Or it has asked the model before a driver worked on the run.
        return first.at if self.asked is None else self.asked.at

    @property
    def tickets(self) -> list[TicketOpened]:
        """The events that opened the tickets."""
        return list(self._open.values())

    def on_event(self, event: Event) -> None:
        """Take the next event of the log."""
        self.is_over = isinstance(event, RunFinished)
        match event:
            case ModelAsked():
                self.asked, self.has_ended = event, False
            case ModelReplied():
                self.asked = None
            case TicketOpened():
                self._open[event.ticket_id] = event
                self._wait(event)
            case ArgumentsFilled() | ApprovalChecked():
                self._wait(event)
            case TicketCompleted():
                self._open.pop(event.ticket_id, None)
            case Approved():
                self.approvals[event.ticket_id] = event
            case RunFinished():
                self.has_ended = True
            case _:
                pass

    def _wait(self, event: TicketOpened | ArgumentsFilled | ApprovalChecked) -> None:
        if event.needs_approval:
            self.waits[event.ticket_id] = event.at
