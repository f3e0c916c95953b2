"""Events of a run, each in a line for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callslip._base.call_line import call_line, printable
from callslip._base.json import to_json
from callslip.events import (
    ApprovalChecked,
    Approved,
    ArgumentsFilled,
    Compacted,
    Event,
    HistoryShortened,
    ModelAsked,
    ModelAttemptFailed,
    Moved,
    Noted,
    RunFinished,
    RunStarted,
    TicketCompleted,
    TicketOpened,
    TicketPending,
    ToolAttemptFailed,
    UserSaid,
    Violated,
)
from callslip.origins._words import few, words_of

__all__ = ["event_line"]

_LONGEST = 200
_WAITING = ", awaiting approval"


def event_line(event: Event) -> str | None:
    """Return the line of an event; `None` for an event that says nothing which others do not."""
    text = _of_ticket(event) if hasattr(event, "ticket_id") else _of_run(event)
    return None if text is None else printable(text)


def _of_run(event: Event) -> str | None:
    match event:
        case RunStarted():
            return f"run {event.run_id} of {event.agent} started: {_short(event.task)}"
        case UserSaid():
            return f"message of the user: {_short(event.text)}"
        case Noted():
            about = event.limit or ", ".join(event.approval)
            return event.note.replace("_", " ") + (f": {about}" if about else "")
        case Compacted():
            return "the log so far was compacted"
        case RunFinished():
            return _ending(event)
        case _:
            return _of_turn(event)


def _of_turn(event: Event) -> str | None:
    match event:
        case ModelAsked():
            name = f" {event.model}" if event.model else ""
            return f"turn {event.turn}: the model{name} is asked"
        case ModelAttemptFailed():
            return f"turn {event.turn}: the request failed: {_short(event.error)}"
        case HistoryShortened():
            return f"turn {event.turn}: the history was shortened"
        case Violated():
            found = event.violation
            return f"turn {event.turn}: violation {found['code']}: {_short(found['message'])}"
        case Moved():
            return _move(event.turn, event.move)
        case _:
            return None


def _move(turn: int, move: Mapping[str, Any]) -> str | None:
    ((name, content),) = move.items()
    return f"turn {turn}: {name} {content['ticket_id']}" if name in {"await", "load"} else None


def _of_ticket(event: Event) -> str | None:
    match event:
        case TicketOpened():
            waits = "" if event.external is None else ", awaiting a result"
            waits = _WAITING if event.needs_approval else waits
            call = call_line(event.tool, event.arguments)
            return f"{event.ticket_id} {call}{_origins(event)}{waits}"
        case ArgumentsFilled(needs_approval=True) | ApprovalChecked(needs_approval=True):
            return f"{event.ticket_id}{_WAITING}"
        case TicketPending():
            return f"{event.ticket_id} has begun, and awaits a result"
        case Approved():
            changed = "" if event.arguments is None else f": {call_line('', event.arguments)}"
            return f"{event.ticket_id} approved{_person(event.by)}{changed}"
        case ToolAttemptFailed():
            return f"{event.ticket_id} attempt {event.attempt} failed: {_short(event.error)}"
        case TicketCompleted():
            text = event.result if event.error is None else event.error
            outcome = f"{event.outcome.replace('_', ' ')}{_person(event.by)}"
            return f"{event.ticket_id} {outcome}: {_short(text)}"
        case _:
            return None


def _origins(event: TicketOpened) -> str:
    """Return the origins other than the task, in brackets."""
    found = [f"{few(one.names)}: {one.text}" for one in words_of(event.origins) if not one.is_task]
    return f" ({'; '.join(found)})" if found else ""


def _person(by: str | None) -> str:
    return "" if by is None else f" by {by}"


def _ending(event: RunFinished) -> str:
    if event.error is not None:
        return f"run ended, {event.reason.replace('_', ' ')}: {_short(event.error)}"
    return f"run ended, {event.reason.replace('_', ' ')}: {_short(event.value)}"


def _short(value: object) -> str:
    """Return a text in one line. Calls are never cut; texts are, since the log has them."""
    text = value if isinstance(value, str) else to_json(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
