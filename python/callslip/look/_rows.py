"""The rows of a page: turns, tickets, and the runs below them, on one axis of time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from callslip.look._numbers import count, duration, usage_rows
from callslip.look._parts import Parts
from callslip.look._selection import Selection, has_failed
from callslip.look._text import Texts
from callslip.trace import TicketSpan, Trace, TraceNote, Turn

__all__ = ["Opened", "Rows"]

Opened: TypeAlias = Literal["failed", "all", "none"]
"""The rows that are unfolded at first: failures and what awaits approval, all, or none."""

_BLOCK = 50

_NOTES = {
    "resumed": "The run was resumed",
    "more_approval": "Tools ask for more approval from here on",
    "last_turn": "A limit was reached: the next turn was the last one",
    "exhausted": "A limit was reached: no turn could follow",
    "compacted": "The log before this point was compacted: times and replies are missing",
}


class Rows:
    """The rows of one page.

    Args:
        trace: The run, whose times are the axis.
        texts: How texts are shown.
        opened: The rows that are unfolded at first.
        selection: The rows that are shown.
        images: Whether images are shown.
        seconds: The length of the axis of time; default that of the run.
        ids: Whether each row has an id, so that its page can be updated.
    """

    def __init__(
        self,
        trace: Trace,
        texts: Texts,
        opened: Opened,
        *,
        selection: Selection,
        images: bool,
        seconds: float | None = None,
        ids: bool = False,
    ) -> None:
        self._texts = texts
        self._opened = opened
        self._selection = selection
        self._images = images
        self._start = trace.started_at
        self._length = max(trace.seconds if seconds is None else seconds, 1e-6)
        self._ids = ids

    def task(self, run: Trace, heading: str = "h2") -> str:
        """Return the task of a run and its answer, or why it has none."""
        told = [label for note in run.notes for label in note.parts]
        task = (
            f"<{heading}>Task</{heading}>{self._texts.block(run.task)}"
            f"{self._parts(run).of_task(told)}"
        )
        end = run.ending
        if end is None:
            return task
        if end.error is None and (end.reason == "finished" or end.value is not None):
            failed = " (not successful, according to the model)" if end.success is False else ""
            answer = f"<{heading}>Answer{failed}</{heading}>"
            return f"{task}{answer}{self._texts.value(end.value)}"
        limit = f" of {end.limit}" if end.limit else ""
        why = f"{end.reason}{limit}: {end.error}" if end.error else f"{end.reason}{limit}"
        return f"{task}<{heading}>No answer</{heading}>{self._texts.error(why)}"

    def run(self, run: Trace) -> str:
        """Return the rows of a run, with what came between its turns."""
        return "".join(_blocks(self.pieces(run)))

    def pieces(self, run: Trace) -> list[str]:
        """Return the rows of a run one by one: each turn with its tickets, and notes between."""
        between: dict[int, list[str]] = {}
        own = _Own(self._parts(run), self._key(run.run_id))
        for note in run.notes:
            between.setdefault(note.turn, []).append(self._note(note, own.parts))
        rows = between.pop(0, [])
        for is_shown, group in groupby(run.turns, self._selection.has):
            turns = list(group)
            if not is_shown:
                rows.append(f"<p>{count(len(turns), 'turn')} left out</p>")
            for turn in turns:
                row = self._turn(turn, own) if is_shown else ""
                rows.append(row + "".join(between.pop(turn.number, ())))
        rows += (note for notes in between.values() for note in notes)
        rows += (self._below(below) for below in run.other_runs)
        return rows

    def _key(self, run_id: str) -> str:
        """Return what the ids of the rows of a run begin with; an import may have any id."""
        return hashlib.sha256(run_id.encode()).hexdigest()[:12] if self._ids else ""

    def _parts(self, run: Trace) -> Parts:
        return Parts(run.parts, self._texts, images=self._images)

    def _note(self, note: TraceNote, parts: Parts) -> str:
        if note.kind == "user_said":
            said = self._texts.block(note.text or "")
            return f'<section class="note"><h3>User</h3>{said}{parts.named(note.parts)}</section>'
        limit = f" ({note.limit})" if note.limit else ""
        return f'<p class="note">{self._texts.line(_NOTES[note.kind] + limit)}</p>'

    def _below(self, run: Trace) -> str:
        state = "awaiting approval" if run.is_waiting else run.status
        head = self._texts.line(f"Run {run.run_id} of {run.agent}: {state}")
        return (
            f'<section class="run"><h3>{head}</h3>{self.task(run, "h4")}{self.run(run)}</section>'
        )

    def _turn(self, turn: Turn, own: _Own) -> str:
        badges = ""
        if turn.violation is not None:
            badges += f' <span class="badge bad">{self._texts.line(turn.violation.code)}</span>'
        if turn.repairs:
            badges += f' <span class="badge">{count(sum(turn.repairs.values()), "repair")}</span>'
        if turn.finish_reason == "length":
            badges += ' <span class="badge bad">cut off</span>'
        says = _says(turn, quotes=self._may_quote(turn))
        line = f"<strong>Turn {turn.number}</strong> {self._texts.line(says)}{badges}"
        row = self._row(
            line,
            self._bar(turn.asked_at, turn.replied_at, 0),
            duration(turn.seconds),
            self._inside_turn(turn),
            row_id=own.id_of(f"turn{turn.number}"),
            opened=has_failed(turn),
        )
        tickets = "".join(self._tickets(turn.tickets, own))
        return f'{row}<div class="calls">{tickets}</div>' if tickets else row

    def _inside_turn(self, turn: Turn) -> str:
        repairs = ", ".join(f"{code} ({times})" for code, times in turn.repairs.items())
        rows = [("model", turn.model), ("repairs", repairs)]
        if turn.usage is not None:
            rows += usage_rows(turn.usage, "")
        inside = self._violation(turn) + self._facts(rows)
        for cut in turn.shortened:
            inside += (
                f"<p>The model was shown less: {count(cut.exchanges, 'exchange')} left out</p>"
            )
            inside += "" if cut.summary is None else self._texts.block(cut.summary)
        for attempt in turn.attempts:
            inside += self._texts.error(f"{attempt.model}: {attempt.error}")
        if turn.reply is not None:
            marks = [mark for mark in turn.marks if mark.kind != "call"]
            inside += f"<h4>Reply</h4>{self._texts.marked(turn.reply, marks)}"
        if turn.violation and turn.next_message is not None and self._may_quote(turn):
            inside += f"<h4>Next message to the model</h4>{self._texts.block(turn.next_message)}"
        return inside or "<p>No reply yet</p>"

    def _violation(self, turn: Turn) -> str:
        broken = turn.violation
        if broken is None:
            return ""
        names = ["code", "message", "found", "expected", "hint", "pointer"]
        if not self._may_quote(turn):
            names = ["code", "expected", "pointer"]
        return self._facts((name, getattr(broken, name)) for name in names)

    def _may_quote(self, turn: Turn) -> bool:
        """Return whether texts that quote a piece of the reply are shown.

        A piece of a secret cannot be recognised, so they are not if the reply has a secret.
        """
        return turn.reply is None or self._texts.redacted(turn.reply) == turn.reply

    def _facts(self, rows: Iterable[tuple[str, str | None]]) -> str:
        shown = [
            f"<dt>{name}</dt><dd>{self._texts.block(text)}</dd>" for name, text in rows if text
        ]
        return f'<dl class="fields">{"".join(shown)}</dl>' if shown else ""

    def _tickets(self, tickets: Iterable[TicketSpan], own: _Own) -> Iterator[str]:
        for is_shown, group in groupby(tickets, self._selection.has):
            rows = list(group)
            if is_shown:
                yield from (self._ticket(ticket, own) for ticket in rows)
            else:
                yield f"<p>{count(len(rows), 'ticket')} left out</p>"

    def _ticket(self, ticket: TicketSpan, own: _Own) -> str:
        state = ticket.state.replace("_", " ")
        kind = "wait" if ticket.awaiting_approval else "bad" if has_failed(ticket) else "soft"
        line = (
            f"<strong>{self._texts.line(f'{ticket.id} {ticket.tool}')}</strong> "
            f'<span class="badge {kind}">{self._texts.line(state)}</span> '
            f"{self._arguments_line(ticket)}"
        )
        asked = ticket.approval
        pause = 0.0 if asked is None else asked.seconds or 0.0
        row = self._row(
            line,
            self._bar(ticket.opened_at, ticket.completed_at, pause),
            duration(ticket.seconds),
            self._inside_ticket(ticket) + own.parts.named(ticket.parts),
            row_id=own.id_of(ticket.id),
            opened=has_failed(ticket) or ticket.awaiting_approval,
        )
        return row + "".join(self._below(run) for run in ticket.runs)

    def _arguments_line(self, ticket: TicketSpan) -> str:
        return self._texts.line_of_value(ticket.arguments or ticket.description)

    def _inside_ticket(self, ticket: TicketSpan) -> str:
        text, value = self._texts.block, self._texts.value
        inside = f"<h4>Arguments</h4>{value(ticket.arguments or {})}"
        asked = ticket.approval
        if asked is not None:
            inside += "" if asked.reason is None else f"<h4>Approval</h4>{text(asked.reason)}"
            if asked.replaced_arguments is not None:
                inside += f"<h4>Arguments of the model</h4>{value(asked.replaced_arguments)}"
            if asked.decision is not None:
                by = f" by {asked.by}" if asked.by else ""
                after = "" if asked.seconds is None else f" after {duration(asked.seconds)}"
                inside += f"<p>{self._texts.line(f'{asked.decision}{by}{after}')}</p>"
        for attempt in ticket.attempts:
            inside += self._texts.error(f"attempt {attempt.number}: {attempt.error}")
        if ticket.error is not None:
            inside += f"<h4>Error</h4>{self._texts.error(ticket.error)}"
        elif ticket.outcome == "ok":
            inside += f"<h4>Result</h4>{value(ticket.result)}"
        return inside

    def _row(
        self, line: str, bar: str, time: str, inside: str, *, row_id: str, opened: bool
    ) -> str:
        is_open = self._opened == "all" or (self._opened == "failed" and opened)
        return (
            f"<details{row_id}{' open' if is_open else ''}><summary><span>{line}</span>{bar}"
            f'<span>{time}</span></summary><div class="inside">{inside}</div></details>'
        )

    def _bar(self, start: float | None, end: float | None, pause: float) -> str:
        if start is None or end is None:
            return "<span></span>"
        left = min(99.5, 100 * max(0.0, start - self._start) / self._length)
        width = min(100 - left, max(0.5, 100 * max(0.0, end - start) / self._length))
        waited = min(width, 100 * pause / self._length)
        paused = f'<rect class="pause" x="{left:.2f}" width="{waited:.2f}" height="10"/>'
        return (
            '<svg aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none">'
            '<rect class="track" width="100" height="10"/>'
            f'<rect class="work" x="{left:.2f}" width="{width:.2f}" height="10"/>'
            f"{paused if waited else ''}</svg>"
        )


class _Own(NamedTuple):
    """What the rows of one run share.

    Attributes:
        parts: Its images and files.
        key: What the ids of its rows begin with; empty for rows without one.
    """

    parts: Parts
    key: str

    def id_of(self, row: str) -> str:
        """Return the attribute of a row. A hostile import may name its ticket as it likes."""
        safe = "".join(one for one in row if one.isascii() and one.isalnum())
        return f' id="{self.key}-{safe}"' if self.key else ""


def _says(turn: Turn, *, quotes: bool) -> str:
    """Return what a turn says, for one line."""
    if turn.violation is not None:
        return turn.violation.message if quotes else ""
    said = turn.narration or turn.thoughts
    if said:
        return said
    if turn.tickets:
        return ", ".join(ticket.tool for ticket in turn.tickets)
    if turn.move is None:
        return "in progress" if turn.reply is None else ""
    return f"{turn.move} {turn.target}" if turn.target else turn.move


def _blocks(rows: list[str]) -> Iterator[str]:
    """Yield the rows; many of them in blocks that a browser lays out only when they are seen."""
    if len(rows) <= _BLOCK:
        yield from rows
        return
    for start in range(0, len(rows), _BLOCK):
        yield f'<div class="block">{"".join(rows[start : start + _BLOCK])}</div>'
