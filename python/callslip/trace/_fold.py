"""The fold of a log into a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from callslip._base.usage import Usage
from callslip.events import (
    Compacted,
    Event,
    Noted,
    RunFinished,
    RunStarted,
    TicketOpened,
    UserSaid,
    read_event,
)
from callslip.events._event import ticket_id
from callslip.parts import File
from callslip.trace._ticket_drafts import TicketDraft
from callslip.trace._tickets import UsedPlace
from callslip.trace._trace import NoteKind, Trace, TraceEnding, TraceMessage, TraceNote
from callslip.trace._turn_drafts import TurnDraft
from callslip.trace._used_places import ResultText, used_places

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["RunLog", "fold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLog:
    """A run at one moment.

    Attributes:
        run_id: The id of the run.
        agent: The name of its agent, for a run that has not begun; empty if it is not known.
        protocol: The protocol of that agent.
        task: The task.
        lines: The lines of its log, with the texts of replies and without the bytes of files.
        rows: Returns its tickets. Called only for a run with origins or untrusted results.
        messages: Its messages, as the model reads them.
        parts: Its images and files by their labels.
        usage: The usage of its own replies.
        total_usage: The usage of it and of all runs below it.
    """

    run_id: str
    agent: str
    protocol: str
    task: str
    lines: Sequence[str]
    rows: Callable[[], Sequence[_core.TicketRow]]
    messages: Sequence[Mapping[str, Any]]
    parts: Mapping[str, File]
    usage: Usage
    total_usage: Usage


def fold(log: RunLog, children: Iterable[Trace]) -> Trace:
    """Return the trace of a run.

    Args:
        log: The run.
        children: The traces of the runs directly below it.
    """
    reading = _Reading(log)
    for line in log.lines:
        reading.read(read_event(line, log.run_id))
    return reading.finish(log, children)


class _Reading:
    """A log, as far as it has been read."""

    def __init__(self, log: RunLog) -> None:
        # The log of a run that has begun says more.
        self.head: dict[str, Any] = {
            "agent": log.agent,
            "protocol": log.protocol,
            "task": log.task,
            "started_at": 0.0,
        }
        self.ending: TraceEnding | None = None
        self.turns: dict[int, TurnDraft] = {}
        self.tickets: dict[str, TicketDraft] = {}
        self.notes: list[TraceNote] = []
        self.seqs: list[int] = []
        self.unreported = 0
        self.violations = 0
        self.updated_at = 0.0
        # Whether it began with untrusted text.
        self.is_untrusted = False

    def read(self, event: Event) -> None:
        """Read the next event."""
        self.updated_at = max(self.updated_at, event.at)
        match event:
            case RunStarted():
                self.seqs.append(event.seq)
                self._start(event.at, _start_fields(event))
            case RunFinished():
                self.seqs.append(event.seq)
                self.ending = TraceEnding(
                    at=event.at,
                    reason=event.reason,
                    value=event.value,
                    success=event.success,
                    error=event.error,
                    limit=event.limit,
                )
            case Compacted():
                self._expand(event)
            case UserSaid():
                # A finished run continues with it.
                self.ending = None
                labels = tuple(part["label"] for part in event.parts)
                self._note(event, "user_said", text=event.text, parts=labels)
            case Noted():
                if event.note == "resumed":
                    self.ending = None
                if event.note != "paused":
                    self._note(event, event.note, limit=event.limit)
            case TicketOpened():
                draft = self.tickets[event.ticket_id] = TicketDraft.opened(event)
                self._turn(event.turn).tickets.append(draft)
            case _:
                self._read_inside(event)

    def _read_inside(self, event: Event) -> None:
        """Read an event of a turn or of a ticket."""
        ticket = getattr(event, "ticket_id", None)
        if ticket is not None:
            self.tickets[ticket].read(event)
            return
        self._turn(getattr(event, "turn", 0)).read(event)
        if event.kind == "violated":
            self.violations += 1
        elif event.kind == "model_replied" and getattr(event, "usage", None) is None:
            self.unreported += 1

    def _start(self, at: float, start: Mapping[str, Any]) -> None:
        self.is_untrusted = start.get("untrusted", False)
        protocol = start["setup"]["protocol"]
        self.head = {
            "agent": start["agent"],
            "protocol": protocol if isinstance(protocol, str) else next(iter(protocol)),
            "task": start["task"],
            "parent_run": start.get("parent_run"),
            "parent_ticket": start.get("parent_ticket"),
            "started_at": at,
        }

    def _note(self, event: Event, kind: NoteKind, **fields: Any) -> None:
        turn = max(self.turns, default=0)
        self.notes.append(TraceNote(kind=kind, at=event.at, turn=turn, seq=event.seq, **fields))

    def _turn(self, number: int) -> TurnDraft:
        if number not in self.turns:
            self.turns[number] = TurnDraft(number)
        return self.turns[number]

    def _expand(self, event: Compacted) -> None:
        """Read a state that was put in the place of all events before."""
        state = event.state
        self._start(state["started_at"], RunStarted._fields(dict(event.start)))
        asking = state["phase"] == "asking"
        for number in range(1, state["turn"] + 1):
            self._turn(number).is_compacted = number < state["turn"] or not asking
        for ticket in state["tickets"]["tickets"]:
            draft = TicketDraft.compacted(ticket)
            self.tickets[ticket_id(ticket["id"])] = draft
            self._turn(ticket["turn"]).tickets.append(draft)
        self.violations += state["violations_total"]
        ended = state.get("ending")
        if ended is not None:
            fields = RunFinished._fields({"limit": state.get("limit"), **ended})
            self.ending = TraceEnding(at=None, **fields)
        self._note(event, "compacted")

    def finish(self, log: RunLog, children: Iterable[Trace]) -> Trace:
        """Return what was read."""
        below: dict[str, list[Trace]] = {}
        for child in children:
            below.setdefault(child.parent_ticket or "", []).append(child)
        opening = self._place_messages(log.messages)
        influenced, used = self._origins(log)
        spans = {
            name: draft.finish(
                tuple(below.pop(name, ())), influenced.get(name, ()), used.get(name, ())
            )
            for name, draft in self.tickets.items()
        }
        names = {id(draft): name for name, draft in self.tickets.items()}
        return Trace(
            run_id=log.run_id,
            **self.head,
            updated_at=self.updated_at,
            ending=self.ending,
            opening=opening,
            turns=tuple(
                turn.finish(
                    tuple(spans[names[id(draft)]] for draft in turn.tickets), self.head["protocol"]
                )
                for _, turn in sorted(self.turns.items())
            ),
            notes=tuple(self.notes),
            other_runs=tuple(run for runs in below.values() for run in runs),
            parts=MappingProxyType(dict(log.parts)),
            usage=log.usage,
            total_usage=log.total_usage,
            unreported=self.unreported,
            violations=self.violations,
            seqs=tuple(self.seqs),
            events=len(log.lines),
        )

    def _origins(
        self, log: RunLog
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[UsedPlace, ...]]]:
        """Return `influenced` and `used` of each ticket that has any."""
        drafts = self.tickets.values()
        has_untrusted = self.is_untrusted or any(draft.is_untrusted for draft in drafts)
        if not has_untrusted and not any(draft.origins for draft in drafts):
            return {}, {}
        rows = log.rows()
        outcomes = {
            row.id: ResultText(row.text, row.outcome == "ok")
            for row in rows
            if row.text is not None
        }
        origins = {name: draft.origins for name, draft in self.tickets.items()}
        influenced = {row.id: tuple(row.influenced) for row in rows}
        return influenced, used_places(origins, outcomes)

    def _place_messages(self, messages: Sequence[Mapping[str, Any]]) -> tuple[TraceMessage, ...]:
        """Give each turn its messages, and return those before the first reply.

        Every reply is a message of the assistant, and only examples and an earlier conversation are
        before the first one.
        """
        written = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
        replied = [
            turn for _, turn in sorted(self.turns.items()) if turn.has_reply or turn.is_compacted
        ]
        places = written[len(written) - len(replied) :] if replied else []
        for turn, place in zip(replied, places, strict=False):
            after = messages[place + 1]["content"] if place + 1 < len(messages) else None
            turn.set_messages(messages[place]["content"], after)
        before = messages[: places[0]] if places else messages
        return tuple(TraceMessage(role=one["role"], content=one["content"]) for one in before)


def _start_fields(event: RunStarted) -> dict[str, Any]:
    names = ("agent", "task", "setup", "parent_run", "parent_ticket", "untrusted")
    return {name: getattr(event, name) for name in names}
