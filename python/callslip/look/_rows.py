"""The rows of a page: turns, tickets, and the runs below them, on one axis of time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from callslip.look._markup import Content, Markup, el, joined
from callslip.look._numbers import count, duration, usage_rows
from callslip.look._origins import influence_line, origin_labels, origins_as_json, used_marks
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

    def task(self, run: Trace, heading: str = "h2") -> Markup:
        """Return the task of a run and its answer, or why it has none."""
        told = [label for note in run.notes for label in note.parts]
        parts = self._parts(run).of_task(told)
        task = joined(el(heading, "Task"), self._texts.block(run.task), parts)
        end = run.ending
        if end is None:
            return task
        if end.error is None and (end.reason == "finished" or end.value is not None):
            failed = " (not successful, according to the model)" if end.success is False else ""
            return joined(task, el(heading, f"Answer{failed}"), self._texts.value(end.value))
        limit = f" of {end.limit}" if end.limit else ""
        why = f"{end.reason}{limit}: {end.error}" if end.error else f"{end.reason}{limit}"
        return joined(task, el(heading, "No answer"), self._texts.error(why))

    def run(self, run: Trace) -> Markup:
        """Return the rows of a run, with what came between its turns."""
        return joined(_blocks(self.pieces(run)))

    def pieces(self, run: Trace) -> list[Markup]:
        """Return the rows of a run one by one: each turn with its tickets, and notes between."""
        between: dict[int, list[Markup]] = {}
        tools = {ticket.id: ticket.tool for ticket in run.tickets}
        own = _Own(self._parts(run), self._key(run.run_id), tools)
        for note in run.notes:
            between.setdefault(note.turn, []).append(self._note(note, own.parts))
        rows = between.pop(0, [])
        for is_shown, group in groupby(run.turns, self._selection.has):
            turns = list(group)
            if not is_shown:
                rows.append(el("p", f"{count(len(turns), 'turn')} left out"))
            for turn in turns:
                row = self._turn(turn, own) if is_shown else None
                rows.append(joined(row, between.pop(turn.number, ())))
        rows += (note for notes in between.values() for note in notes)
        rows += (self._below(below) for below in run.other_runs)
        return rows

    def _key(self, run_id: str) -> str:
        """Return what the ids of the rows of a run begin with; an import may have any id."""
        return hashlib.sha256(run_id.encode()).hexdigest()[:12] if self._ids else ""

    def _parts(self, run: Trace) -> Parts:
        return Parts(run.parts, self._texts, images=self._images)

    def _note(self, note: TraceNote, parts: Parts) -> Markup:
        if note.kind == "user_said":
            said = self._texts.block(note.text or "")
            return el("section", el("h3", "User"), said, parts.named(note.parts), class_="note")
        limit = f" ({note.limit})" if note.limit else ""
        return el("p", self._texts.line(_NOTES[note.kind] + limit), class_="note")

    def _below(self, run: Trace) -> Markup:
        state = "awaiting approval" if run.is_waiting else run.status
        head = self._texts.line(f"Run {run.run_id} of {run.agent}: {state}")
        return el("section", el("h3", head), self.task(run, "h4"), self.run(run), class_="run")

    def _turn(self, turn: Turn, own: _Own) -> Markup:
        badges: list[str] = []
        if turn.violation is not None:
            code = self._texts.line(turn.violation.code)
            badges += [" ", el("span", code, class_="badge bad")]
        if turn.repairs:
            repairs = count(sum(turn.repairs.values()), "repair")
            badges += [" ", el("span", repairs, class_="badge")]
        ends = {"length": "cut off", "unknown": "not known to be whole"}
        if (end := ends.get(turn.finish_reason or "")) is not None:
            badges += [" ", el("span", end, class_="badge bad")]
        says = _says(turn, quotes=self._may_quote(turn))
        title = el("strong", f"Turn {turn.number}")
        line = joined(title, " ", self._texts.line(says), badges)
        row = self._row(
            line,
            self._bar(turn.asked_at, turn.replied_at, 0),
            duration(turn.seconds),
            self._inside_turn(turn),
            row_id=own.id_of(f"turn{turn.number}"),
            opened=has_failed(turn),
        )
        tickets = joined(self._tickets(turn.tickets, own))
        return joined(row, el("div", tickets, class_="calls")) if tickets else row

    def _inside_turn(self, turn: Turn) -> Markup:
        repairs = ", ".join(f"{code} ({times})" for code, times in turn.repairs.items())
        rows = [("model", turn.model), ("repairs", repairs)]
        if turn.usage is not None:
            rows += usage_rows(turn.usage, "")
        inside: list[Content] = [self._violation(turn), self._facts(rows)]
        for cut in turn.shortened:
            left = count(cut.exchanges, "exchange")
            inside.append(el("p", f"The model was shown less: {left} left out"))
            inside.append(None if cut.summary is None else self._texts.block(cut.summary))
        failed = (f"{attempt.model}: {attempt.error}" for attempt in turn.attempts)
        inside.append(map(self._texts.error, failed))
        if turn.reply is not None:
            marks = [mark for mark in turn.marks if mark.kind != "call"]
            inside += [el("h4", "Reply"), self._texts.block(turn.reply, marks)]
        if turn.violation and turn.next_message is not None and self._may_quote(turn):
            told = self._texts.block(turn.next_message)
            inside += [el("h4", "Next message to the model"), told]
        return joined(inside) or el("p", "No reply yet")

    def _violation(self, turn: Turn) -> Markup | None:
        broken = turn.violation
        if broken is None:
            return None
        names = ["code", "message", "found", "expected", "hint", "pointer"]
        if not self._may_quote(turn):
            names = ["code", "expected", "pointer"]
        return self._facts((name, getattr(broken, name)) for name in names)

    def _may_quote(self, turn: Turn) -> bool:
        """Return whether texts that quote a piece of the reply are shown.

        A piece of a secret cannot be recognised, so they are not if the reply has a secret.
        """
        return turn.reply is None or self._texts.redacted(turn.reply) == turn.reply

    def _facts(self, rows: Iterable[tuple[str, str | None]]) -> Markup | None:
        shown = [(el("dt", name), el("dd", self._texts.block(text))) for name, text in rows if text]
        return el("dl", shown, class_="fields") if shown else None

    def _tickets(self, tickets: Iterable[TicketSpan], own: _Own) -> Iterator[Markup]:
        for is_shown, group in groupby(tickets, self._selection.has):
            rows = list(group)
            if is_shown:
                yield from (self._ticket(ticket, own) for ticket in rows)
            else:
                yield el("p", f"{count(len(rows), 'ticket')} left out")

    def _ticket(self, ticket: TicketSpan, own: _Own) -> Markup:
        state = ticket.state.replace("_", " ")
        kind = "wait" if ticket.awaiting_approval else "bad" if has_failed(ticket) else "soft"
        title = el("strong", self._texts.line(f"{ticket.id} {ticket.tool}"))
        badge = el("span", self._texts.line(state), class_=f"badge {kind}")
        badges: list[Content] = [badge, " "]
        if ticket.untrusted:
            badges += [el("span", "untrusted", class_="badge"), " "]
        line = joined(title, " ", badges, self._arguments_line(ticket))
        asked = ticket.approval
        pause = 0.0 if asked is None else asked.seconds or 0.0
        row = self._row(
            line,
            self._bar(ticket.opened_at, ticket.completed_at, pause),
            duration(ticket.seconds),
            joined(self._inside_ticket(ticket, own), own.parts.named(ticket.parts)),
            row_id=own.id_of(ticket.id),
            opened=has_failed(ticket) or ticket.awaiting_approval,
        )
        return joined(row, (self._below(run) for run in ticket.runs))

    def _arguments_line(self, ticket: TicketSpan) -> str:
        return self._texts.line_of_value(ticket.arguments or ticket.description)

    def _inside_ticket(self, ticket: TicketSpan, own: _Own) -> Markup:
        texts, asked = self._texts, ticket.approval
        labels = origin_labels(ticket, texts, own.tools)
        replaced = None if asked is None else asked.replaced_arguments
        own_labels = labels if replaced is None else {}
        inside: list[Content] = [
            el("h4", "Arguments"),
            texts.value(ticket.arguments or {}, labels=own_labels),
        ]
        if asked is not None and asked.reason is not None:
            inside += [el("h4", "Approval"), texts.block(asked.reason)]
        if replaced is not None:
            inside += [el("h4", "Arguments of the model"), texts.value(replaced, labels=labels)]
        if asked is not None and asked.decision is not None:
            by = f" by {asked.by}" if asked.by else ""
            after = "" if asked.seconds is None else f" after {duration(asked.seconds)}"
            inside.append(el("p", texts.line(f"{asked.decision}{by}{after}")))
        inside.append(influence_line(ticket.influenced, texts.line, own.tools))
        inside.append(origins_as_json(ticket, texts, own.id_of(f"{ticket.id}origins")))
        failed = (f"attempt {attempt.number}: {attempt.error}" for attempt in ticket.attempts)
        inside.append(map(texts.error, failed))
        marks = used_marks(ticket, own.tools)
        if ticket.error is not None:
            inside += [el("h4", "Error"), texts.error(ticket.error, marks)]
        elif ticket.outcome == "ok":
            inside += [el("h4", "Result"), texts.value(ticket.result, marks)]
        return joined(inside)

    def _row(
        self,
        line: Markup,
        bar: Markup,
        time: str,
        inside: Markup,
        *,
        row_id: str | None,
        opened: bool,
    ) -> Markup:
        is_open = self._opened == "all" or (self._opened == "failed" and opened)
        summary = el("summary", el("span", line), bar, el("span", time))
        return el("details", summary, el("div", inside, class_="inside"), id=row_id, open=is_open)

    def _bar(self, start: float | None, end: float | None, pause: float) -> Markup:
        if start is None or end is None:
            return el("span")
        left = min(99.5, 100 * max(0.0, start - self._start) / self._length)
        width = min(100 - left, max(0.5, 100 * max(0.0, end - start) / self._length))
        waited = min(width, 100 * pause / self._length)
        place = f"{left:.2f}"
        bars = [
            el("rect", class_="track", width="100", height="10"),
            el("rect", class_="work", x=place, width=f"{width:.2f}", height="10"),
        ]
        if waited:
            bars.append(el("rect", class_="pause", x=place, width=f"{waited:.2f}", height="10"))
        shape = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none"}
        return el("svg", bars, aria_hidden="true", **shape)


class _Own(NamedTuple):
    """What the rows of one run share.

    Attributes:
        parts: Its images and files.
        key: What the ids of its rows begin with; empty for rows without one.
        tools: The tools of its tickets by their ids.
    """

    parts: Parts
    key: str
    tools: Mapping[str, str]

    def id_of(self, row: str) -> str | None:
        """Return the id of a row. A hostile import may name its ticket as it likes."""
        safe = "".join(one for one in row if one.isascii() and one.isalnum())
        return f"{self.key}-{safe}" if self.key else None


def _says(turn: Turn, *, quotes: bool) -> str:
    """Return what a turn says, for one line."""
    if turn.violation is not None:
        return turn.violation.message if quotes else ""
    said = turn.narration or turn.thoughts
    if said and quotes:
        return said
    if turn.tickets:
        return ", ".join(ticket.tool for ticket in turn.tickets)
    if turn.move is None:
        return "in progress" if turn.reply is None else ""
    return f"{turn.move} {turn.target}" if turn.target else turn.move


def _blocks(rows: list[Markup]) -> Iterator[Markup]:
    """Yield the rows; many of them in blocks that a browser lays out only when they are seen."""
    if len(rows) <= _BLOCK:
        yield from rows
        return
    for start in range(0, len(rows), _BLOCK):
        yield el("div", rows[start : start + _BLOCK], class_="block")
