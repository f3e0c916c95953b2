"""The events of runs as records of the logger `callslip.run`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from callslip._base import _lazy
from callslip._base.call_line import printable
from callslip._base.json import to_json
from callslip._base.log import GuardedLogger
from callslip.events import (
    ApprovalChecked,
    Approved,
    ArgumentsFilled,
    Event,
    ModelAsked,
    ModelAttemptFailed,
    ModelReplied,
    Noted,
    RunFinished,
    RunStarted,
    TicketCompleted,
    TicketOpened,
    ToolAttemptFailed,
    Violated,
)
from callslip.runs._observer import Observer

if TYPE_CHECKING:
    from logging import Logger

    from callslip.runs._run import Run

__all__ = ["EventLog", "logger_if_heard"]

_NAME = "callslip.run"
_MOST = 200
"""Characters of a text that the program has not written."""

_DEBUG, _INFO, _WARNING = 10, 20, 30
_FAILED = ("error", "retry", "in_doubt")


class _Line(NamedTuple):
    """One record: its level, the message for people, and the fields for machines."""

    level: int
    message: str
    fields: dict[str, Any]


def logger_if_heard() -> EventLog | None:
    """Return the log of events; `None` if no handler would receive a record of it."""
    logger = _lazy.logging.getLogger(_NAME)
    if not logger.handlers:
        # Without a handler, logging would write warnings to the program's standard error.
        logger.addHandler(_lazy.logging.NullHandler())
    return EventLog() if _has_handler(logger) else None


def _has_handler(logger: Logger) -> bool:
    if not logger.isEnabledFor(_WARNING):
        return False
    null = _lazy.logging.NullHandler
    above: Logger | None = logger
    while above is not None:
        if any(not isinstance(handler, null) for handler in above.handlers):
            return True
        above = above.parent if above.propagate else None
    return False


class EventLog(Observer):
    """Writes a record for each event that a reader of a log would look for."""

    __slots__ = ("_began", "_logger", "_tools")

    def __init__(self) -> None:
        self._logger = GuardedLogger(_NAME)
        # The time of the first event that was received.
        self._began: float | None = None
        # The tools of the open tickets: only the event that opens a ticket names its tool.
        self._tools: dict[str, str] = {}

    def on_event(self, run: Run, event: Event) -> None:
        """Write the record of an event, if it has one and its level is enabled."""
        logger = self._logger
        if self._began is None:
            self._began = event.at
        if isinstance(event, TicketOpened):
            self._tools[event.ticket_id] = event.tool
        line = self._line(run, event)
        if isinstance(event, TicketCompleted):
            self._tools.pop(event.ticket_id, None)
        if line is not None and logger.is_enabled_for(line.level):
            place = {"event": event.kind, "run_id": event.run_id, "seq": event.seq, "at": event.at}
            message = f"run {_shown(event.run_id)} {line.message}"
            logger.log(line.level, message, extra={"callslip": {**place, **line.fields}})

    def _line(self, run: Run, event: Event) -> _Line | None:
        match event:
            case RunFinished():
                return _finished(run, event, event.at - (self._began or event.at))
            case ToolAttemptFailed() | TicketCompleted() | Approved():
                return _ticket_line(event, self._tool(run, event.ticket_id))
            case ArgumentsFilled() | ApprovalChecked() if event.needs_approval:
                return _waits(event.ticket_id, self._tool(run, event.ticket_id))
            case TicketOpened() if event.needs_approval:
                return _waits(event.ticket_id, event.tool)
            case TicketOpened() if event.external is not None:
                return _waits(event.ticket_id, event.tool, "a result")
            case _ if self._logger.is_enabled_for(_DEBUG):
                return _line(event) or _detail(event)
            case _:
                return _line(event)

    def _tool(self, run: Run, ticket: str) -> str:
        if ticket not in self._tools:
            # It was opened before the events were received.
            self._tools |= {one.id: one.tool for one in run.tickets}
        return self._tools[ticket]


def _line(event: Event) -> _Line | None:
    match event:
        case RunStarted():
            agent = _shown(event.agent)
            fields = {"agent": event.agent, "parent_run": event.parent_run}
            return _Line(_INFO, f"of '{agent}' started", fields)
        case Noted(note="resumed"):
            return _Line(_INFO, "resumed", {})
        case Violated() | ModelAttemptFailed():
            return _failed_turn(event)
        case _:
            return None


def _finished(run: Run, event: RunFinished, seconds: float) -> _Line:
    usage = run.usage
    turns, tickets, violations = run.turns, run._core.ticket_count, run.violations
    fields = {
        "reason": event.reason,
        "limit": event.limit,
        "turns": turns,
        "tickets": tickets,
        "violations": violations,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
        "seconds": seconds,
    }
    end = "finished" if event.reason == "finished" else f"ended ({event.reason})"
    counts = f"{_count(turns, 'turn')}, {_count(tickets, 'ticket')}"
    counts += f", {_count(violations, 'violation')}"
    tokens = f"{usage.input_tokens}+{usage.output_tokens} tokens"
    return _Line(_INFO, f"{end}: {counts}, {tokens}, {seconds:.1f} s", fields)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _failed_turn(event: Violated | ModelAttemptFailed) -> _Line:
    if isinstance(event, Violated):
        code, text = str(event.violation["code"]), _shown(str(event.violation["message"]))
        fields = {"turn": event.turn, "code": code, "message": text}
        return _Line(_WARNING, f"turn {event.turn}: {code}: {text}", fields)
    model = _shown(event.model)
    message = f"turn {event.turn}: a request to {model} failed"
    fields = {"turn": event.turn, "model": model, "wait": event.wait, **_content(error=event.error)}
    return _Line(_WARNING, message, fields)


def _ticket_line(event: ToolAttemptFailed | TicketCompleted | Approved, tool: str) -> _Line:
    ticket = event.ticket_id
    fields: dict[str, Any] = {"ticket_id": ticket, "tool": tool}
    start = f"{ticket} {_shown(tool)}"
    if isinstance(event, Approved):
        return _Line(_INFO, f"{start} was approved", fields | _person(event.by))
    if isinstance(event, ToolAttemptFailed):
        fields |= {"attempt": event.attempt, "wait": event.wait, **_content(error=event.error)}
        return _Line(_WARNING, f"{start}: attempt {event.attempt} failed", fields)
    fields["outcome"] = event.outcome
    if event.outcome == "denied":
        return _Line(_INFO, f"{start} was denied", fields | _person(event.by))
    if event.outcome in _FAILED:
        fields |= _content(error=event.error)
        return _Line(_WARNING, f"{start} failed: {event.outcome}", fields)
    return _Line(_DEBUG, f"{start} ended: {event.outcome}", fields | _content(result=event.result))


def _person(by: str | None) -> dict[str, str]:
    return {} if by is None else _content(by=by)


def _waits(ticket: str, tool: str, what: str = "approval") -> _Line:
    fields = {"ticket_id": ticket, "tool": tool}
    return _Line(_INFO, f"{ticket} {_shown(tool)} waits for {what}", fields)


def _detail(event: Event) -> _Line | None:
    match event:
        case ModelAsked():
            return _Line(_DEBUG, f"turn {event.turn}: the model is asked", {"turn": event.turn})
        case ModelReplied():
            fields = {"turn": event.turn, **_content(text=event.text)}
            return _Line(_DEBUG, f"turn {event.turn}: the model replied", fields)
        case TicketOpened():
            fields = {"turn": event.turn, "ticket_id": event.ticket_id, "tool": event.tool}
            fields |= _content(arguments=event.arguments)
            return _Line(_DEBUG, f"{event.ticket_id} {_shown(event.tool)} opened", fields)
        case _:
            return None


def _content(**texts: Any) -> dict[str, str]:
    """Return texts of the run, which are only written where the program's environment asks."""
    if os.environ.get("CALLSLIP_LOG_CONTENT") != "1":
        return {}
    return {
        name: _shown(value if isinstance(value, str) else to_json(value))
        for name, value in texts.items()
    }


def _shown(text: str) -> str:
    """Return a text in one line, so that it cannot forge another record, truncated."""
    shown = printable(text[:_MOST])
    return shown if len(shown) <= _MOST and len(text) <= _MOST else f"{shown[: _MOST - 1]}…"
