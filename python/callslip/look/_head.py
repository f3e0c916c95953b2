"""What stands above the rows of a trace: its facts, what was left out, and the legend."""

from __future__ import annotations

from callslip.look._markup import Markup, el, joined
from callslip.look._numbers import count, duration, moment, usage_rows
from callslip.look._selection import Selection
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["head_of", "left_out", "legend", "state_of"]


def head_of(trace: Trace, texts: Texts) -> Markup:
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
    facts = (el("div", el("dt", name), el("dd", texts.line(text))) for name, text in rows)
    title = texts.line(f"{trace.agent or 'run'}: {state_of(trace)}")
    return joined(el("h1", title), el("dl", facts, class_="facts"))


def state_of(trace: Trace) -> str:
    """Return the state of a run, in words."""
    if trace.is_waiting:
        return "awaiting approval"
    if trace.ending is None:
        return "in progress" if trace.events else "not begun"
    return trace.ending.reason.replace("_", " ")


def left_out(selection: Selection) -> Markup:
    """Return the line that says how many rows are not shown."""
    if not selection.left_out:
        return joined()
    rows = count(selection.left_out, "more row")
    return el(
        "p",
        f"The run has {selection.events:,} events. The first and the last "
        f"{selection.at_an_end:,} rows and all failures are shown. The log contains {rows}.",
    )


def legend() -> Markup:
    """Return the legend of the bars."""
    swatches = []
    for kind, name in (("work", "work"), ("pause", "awaiting approval")):
        box = el("rect", class_=kind, width="10", height="10")
        swatches.append(el("span", el("svg", box, class_="swatch", viewBox="0 0 10 10"), " ", name))
    return el("p", swatches, class_="legend", aria_hidden="true")
