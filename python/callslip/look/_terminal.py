"""Traces as text, for a terminal: nothing in a line can move the cursor or hide text."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from callslip._base.call_line import call_line, printable
from callslip._base.usage import Usage
from callslip.origins._words import few, influence_words, words_of
from callslip.trace import TicketSpan, Trace, TraceMessage, TraceNote, Turn

__all__ = ["messages_of", "run_lines", "summary_lines", "turn_lines"]

_LONGEST = 2000
"""Characters of a text in the view of a whole run."""

_LINE = 100
"""Characters of a text in the summary of a run."""

_NOTES = {
    "resumed": "the run was resumed",
    "more_approval": "tools ask for more approval from here on",
    "last_turn": "the last turn, since a limit was reached",
    "exhausted": "a limit was reached by the runs below",
    "compacted": "the log before this was compacted",
}


def run_lines(trace: Trace) -> Iterator[str]:
    """Yield the lines of a run and of the runs below it. Long texts are cut, and calls never are.

    Args:
        trace: The run.
    """
    yield from _head(trace)
    # A note comes after the turn of its number; sorting keeps the order of what is equal.
    ended = trace.ending is not None and trace.ending.reason == "finished"
    parts: list[Turn | TraceNote] = [*trace.turns, *trace.notes]
    for part in sorted(parts, key=lambda one: one.number if isinstance(one, Turn) else one.turn):
        yield ""
        if isinstance(part, Turn):
            yield from turn_lines(part)
            # The answer of the last turn comes at the end.
            if part.move == "finish" and (part is not parts[len(trace.turns) - 1] or not ended):
                yield from _titled("answer", _text(part.answer), whole=False)
        else:
            yield from _note_lines(part)
    for run in trace.other_runs:
        yield ""
        yield from _indented(run_lines(run))
    yield ""
    yield from _ending_lines(trace)


def summary_lines(trace: Trace) -> Iterator[str]:
    """Yield what a run is in six lines: its state, its counts, its task and how it ended."""
    *facts, _ = takewhile(lambda line: not line.startswith("  "), _head(trace))
    yield from facts
    yield f"task: {_one_line(trace.task)}"
    ending = trace.ending
    if ending is None:
        waiting = ", ".join(f"{ticket.id} {ticket.tool}" for _, ticket in trace.awaiting_approval)
        yield f"awaiting approval: {_one_line(waiting)}" if waiting else "no answer yet"
    elif ending.error is not None:
        yield f"error: {_one_line(ending.error)}"
    else:
        yield f"answer: {_one_line(_text(ending.value))}"


def turn_lines(turn: Turn, *, whole: bool = False) -> Iterator[str]:
    """Yield the lines of one turn.

    Args:
        turn: The turn.
        whole: Whether texts are whole, with the reply and the next message too.
    """
    yield ", ".join(_turn_facts(turn))
    yield from _asking_lines(turn)
    for name, text in (("thoughts", turn.thoughts), ("narration", turn.narration)):
        yield from _titled(name, text, whole=whole)
    for code, count in turn.repairs.items():
        yield f"  repair {printable(code)}" + (f" ({count} times)" if count > 1 else "")
    yield from _violation_lines(turn, whole=whole)
    if turn.target is not None:
        yield f"  {turn.move} {printable(turn.target)}"
    for ticket in turn.tickets:
        yield from _ticket_lines(ticket, whole=whole)
    if whole:
        yield from _titled("reply", turn.reply, whole=True)
        yield from _titled("next message", turn.next_message, whole=True)


def messages_of(trace: Trace, number: int | None = None) -> list[TraceMessage]:
    """Return the messages of a run, or the reply of one turn and the message after it.

    Args:
        trace: The run.
        number: The number of the turn; default all.
    """
    messages = list(trace.opening) if number is None else []
    for turn in trace.turns:
        if number in (None, turn.number):
            for role, content in (("assistant", turn.reply), ("user", turn.next_message)):
                if content is not None:
                    messages.append(TraceMessage(role=role, content=content))
    return messages


def _head(trace: Trace) -> Iterator[str]:
    reason = "in progress" if trace.ending is None else _stated(trace.ending.reason)
    yield f"run {printable(trace.run_id)}: {reason if trace.events else 'not begun'}"
    if trace.agent:
        yield f"agent {printable(trace.agent)}, protocol {trace.protocol}"
    if trace.events:
        yield f"started {_moment(trace.started_at)} UTC, {_duration(trace.seconds)}"
    counts = (
        _count(len(trace.turns), "turn"),
        _count(len(trace.tickets), "ticket"),
        _count(trace.violations, "violation"),
        _usage(trace.total_usage, at_least=trace.unreported > 0),
    )
    yield ", ".join(counts)
    yield "task"
    yield from _block(trace.task, depth=1)


def _turn_facts(turn: Turn) -> Iterator[str]:
    yield f"turn {turn.number}"
    if turn.seconds is not None:
        yield _duration(turn.seconds)
    if turn.model is not None:
        yield printable(turn.model)
    if turn.usage is not None:
        yield _usage(turn.usage)
    if turn.finish_reason not in (None, "stop"):
        yield f"ended by {printable(str(turn.finish_reason))}"
    if turn.reply is None and turn.replied_at is None:
        yield "no reply yet"


def _asking_lines(turn: Turn) -> Iterator[str]:
    for attempt in turn.attempts:
        yield f"  request to {printable(attempt.model)} failed: {printable(attempt.error)}"
    for less in turn.shortened:
        yield f"  history shortened by {_count(less.exchanges, 'exchange')}"


def _violation_lines(turn: Turn, *, whole: bool) -> Iterator[str]:
    violation = turn.violation
    if violation is None:
        return
    yield f"  violation {printable(violation.code)}: {printable(violation.message)}"
    for name in ("found", "expected", "hint"):
        text = getattr(violation, name)
        if text is not None:
            yield f"    {name}: {printable(_cut(text, whole=whole))}"


def _ticket_lines(ticket: TicketSpan, *, whole: bool) -> Iterator[str]:
    yield f"  {ticket.id} {call_line(ticket.tool, ticket.arguments)}"
    yield (
        f"    {_stated(ticket.state)}"
        + ("" if ticket.seconds is None else f", {_duration(ticket.seconds)}")
        + (", untrusted" if ticket.untrusted else "")
    )
    yield from _origin_lines(ticket)
    yield from _approval_lines(ticket)
    for attempt in ticket.attempts:
        yield f"    attempt {attempt.number} failed: {printable(attempt.error)}"
    if ticket.error is not None:
        yield from _block(ticket.error, whole=whole, depth=3)
    elif ticket.outcome is not None and ticket.result is not None:
        yield from _block(_text(ticket.result), whole=whole, depth=3)
    for run in ticket.runs:
        yield from _indented(run_lines(run), depth=3)


def _origin_lines(ticket: TicketSpan) -> Iterator[str]:
    for one in words_of(ticket.origins):
        if not one.is_task:
            yield f"    {printable(few(one.names))}: {printable(one.text)}"
    if ticket.influenced:
        names = printable(influence_words(ticket.influenced))
        yield f"    untrusted texts that the model had read: {names}"


def _approval_lines(ticket: TicketSpan) -> Iterator[str]:
    asked = ticket.approval
    if asked is None:
        return
    if asked.reason is not None:
        yield f"    needs approval: {printable(asked.reason)}"
    if asked.decision is not None:
        after = "" if asked.seconds is None else f" after {_duration(asked.seconds)}"
        person = "" if asked.by is None else f" by {printable(asked.by)}"
        yield f"    {asked.decision}{person}{after}"
    if asked.replaced_arguments is not None:
        yield f"    in place of {call_line(ticket.tool, asked.replaced_arguments)}"


def _note_lines(note: TraceNote) -> Iterator[str]:
    if note.kind == "user_said":
        yield "message of the user"
        yield from _block(note.text or "", depth=1)
    else:
        limit = "" if note.limit is None else f": {note.limit}"
        yield f"{_NOTES[note.kind]}{limit}"


def _ending_lines(trace: Trace) -> Iterator[str]:
    ending = trace.ending
    if ending is None:
        for run, ticket in trace.awaiting_approval:
            yield f"awaiting approval: {ticket.id} of run {printable(run.run_id)}"
        return
    if ending.error is not None:
        yield f"error: {printable(ending.error)}"
    if ending.success is False:
        yield "not successful, according to the model"
    if ending.reason == "finished":
        yield "answer"
        yield from _block(_text(ending.value), whole=True, depth=1)


def _titled(title: str, text: str | None, *, whole: bool) -> Iterator[str]:
    if text:
        yield f"  {title}"
        yield from _block(text, whole=whole)


def _block(text: str, *, whole: bool = False, depth: int = 2) -> Iterator[str]:
    yield from _indented(map(printable, _cut(text, whole=whole).split("\n")), depth=depth)


def _cut(text: str, *, whole: bool) -> str:
    left = len(text) - _LONGEST
    if whole or left <= 0:
        return text
    return f"{text[:_LONGEST]}\n… {left} more characters"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return printable(line if len(line) <= _LINE else f"{line[: _LINE - 1]}…")


def _indented(lines: Iterator[str], *, depth: int = 1) -> Iterator[str]:
    for line in lines:
        yield "  " * depth + line if line else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _stated(state: str) -> str:
    return state.replace("_", " ")


def _moment(at: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
    except (OverflowError, ValueError, OSError):
        return f"at {at!r}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s"


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _usage(usage: Usage, *, at_least: bool = False) -> str:
    more = "+" if at_least else ""
    text = f"{usage.input_tokens}{more} tokens in, {usage.output_tokens}{more} out"
    return f"{text}, cost {usage.cost:.4f}" if usage.cost else text
