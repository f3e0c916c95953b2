"""What stands above the rows of a trace: its facts, what was left out, and the legend."""

from __future__ import annotations

from callslip.look._numbers import count, duration, moment, usage_rows
from callslip.look._selection import Selection
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["head_of", "left_out", "legend", "state_of"]


def head_of(trace: Trace, texts: Texts) -> str:
    """Return the title and the facts of a run."""
    runs = list(trace.walk())
    turns = [turn for run in runs for turn in run.turns]
    more = "+" if any(run.unreported for run in runs) else ""
    rows = [
        ("protocol", trace.protocol),
        ("started", moment(trace.started_at) if trace.events else "not yet"),
        ("duration", duration(trace.seconds)),
        ("run", trace.run_id),
        ("runs", f"{len(runs):,}"),
        ("turns", f"{len(turns):,}"),
        ("tickets", f"{sum(len(turn.tickets) for turn in turns):,}"),
        ("violations", f"{sum(run.violations for run in runs):,}"),
        ("repairs", f"{sum(sum(turn.repairs.values()) for turn in turns):,}"),
        *usage_rows(trace.total_usage, more),
    ]
    facts = "".join(f"<div><dt>{name}</dt><dd>{texts.line(text)}</dd></div>" for name, text in rows)
    name = trace.agent or "run"
    return f'<h1>{texts.line(f"{name}: {state_of(trace)}")}</h1><dl class="facts">{facts}</dl>'


def state_of(trace: Trace) -> str:
    """Return the state of a run, in words."""
    if trace.is_waiting:
        return "awaiting approval"
    if trace.ending is None:
        return "in progress" if trace.events else "not begun"
    return trace.ending.reason.replace("_", " ")


def left_out(selection: Selection) -> str:
    """Return the line that says how many rows are not shown."""
    if not selection.left_out:
        return ""
    rows = count(selection.left_out, "more row")
    return (
        f"<p>The run has {selection.events:,} events. The first and the last "
        f"{selection.at_an_end:,} rows and all failures are shown. The log contains {rows}.</p>"
    )


def legend() -> str:
    """Return the legend of the bars."""
    swatches = "".join(
        f'<span><svg class="swatch" viewBox="0 0 10 10"><rect class="{kind}" width="10" '
        f'height="10"/></svg> {name}</span>'
        for kind, name in (("work", "work"), ("pause", "awaiting approval"))
    )
    return f'<p class="legend" aria-hidden="true">{swatches}</p>'
