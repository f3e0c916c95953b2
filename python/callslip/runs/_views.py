"""Runs as they are shown: their traces and pages. Imported at the first use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip._base.json import to_json
from callslip.look import runs_to_html, to_html
from callslip.look._numbers import duration
from callslip.look._outputs import Bundle, bundle_of_facts, bundle_of_table, bundle_of_trace
from callslip.look._terminal import run_lines
from callslip.origins._words import few, influence_words, words_of
from callslip.trace import Trace
from callslip.trace._fold import RunLog, fold

if TYPE_CHECKING:
    from callslip.runs._run import Run
    from callslip.runs._ticket import Ticket

__all__ = [
    "bundle_of_table",
    "bundle_of_ticket",
    "bundle_of_trace",
    "lines_for_rich",
    "runs_to_html",
    "to_html",
    "trace_of",
]

# How often a run is read again because it has continued meanwhile.
_READINGS = 5


def trace_of(run: Run[Any]) -> Trace:
    """Return the trace of a run, with those of the runs below it."""
    core, agent = run._core, run._agent
    for _ in range(_READINGS):
        count = core.event_count
        log = RunLog(
            run_id=run.id,
            agent="" if agent is None else agent.name,
            protocol="" if agent is None else agent.protocol.name,
            task=run.task,
            lines=core.records(texts=True),
            rows=lambda: core.ticket_news(0, 0)[0],
            messages=list(run.messages),
            parts=run.parts,
            usage=run.usage,
            total_usage=run.total_usage,
        )
        if core.event_count == count:
            break
    return fold(log, [trace_of(child) for child in run.children])


def bundle_of_ticket(ticket: Ticket) -> Bundle:
    """Return a ticket as a notebook shows it."""
    outcome = (ticket.outcome or "in progress").replace("_", " ")
    waits = {"approval": "awaiting approval", "result": "awaiting a result"}
    state = outcome if ticket.awaiting is None else waits[ticket.awaiting]
    result = ticket.result
    facts = [
        ("call", ticket.call),
        ("arguments", None if not ticket.arguments else _indented(ticket.arguments)),
        ("approval", ticket.approval_reason),
        ("answers", None if ticket.answers is None else _indented(ticket.answers)),
        ("result", None if ticket.outcome != "ok" else _indented(result)),
        ("error", ticket.error),
        ("origins", "\n".join(f"{few(one.names)}: {one.text}" for one in words_of(ticket.origins))),
        ("untrusted texts read before", influence_words(ticket.influenced)),
        ("untrusted", "the result comes from others" if ticket.untrusted else None),
        ("attempts", None if ticket.attempts == 1 else str(ticket.attempts)),
        ("duration", None if ticket.seconds is None else duration(ticket.seconds)),
    ]
    plain = f"{ticket.id} {state}: {ticket.call}"
    return bundle_of_facts(f"{ticket.id} {ticket.tool}: {state}", facts, plain)


def lines_for_rich(trace: Trace) -> Iterator[object]:
    """Yield the lines of a run for rich, which takes no markup from them."""
    for line in run_lines(trace):
        is_title = line != "" and not line.startswith(" ")
        yield _lazy.rich_text.Text(line, style="bold" if is_title else "")


def _indented(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError):  # an integer of thousands of digits
        return to_json(value)
