"""The document of a page: it stands alone, loads nothing, and runs no script."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from callslip.look._numbers import count, duration, moment, usage_rows
from callslip.look._rows import Opened, Rows
from callslip.look._selection import Selection
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["page_of"]

_FOOTER = (
    "This file contains the prompts and results of the run. Do not pass it to anybody who must not "
    "read them."
)


def page_of(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> str:
    """Return the page of a trace.

    Args:
        trace: The run, with those below it.
        texts: How texts are shown.
        opened: The rows that are unfolded at first.
        images: Whether images are shown.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    selection = Selection(trace)
    rows = Rows(trace, texts, opened, selection=selection, images=images)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{texts.line(trace.agent)}</title><style>{style}</style></head>\n"
        f"<body><main>{_head(trace, texts)}{rows.task(trace)}<h2>Turns</h2>"
        f"{_left_out(selection)}{_legend()}{rows.run(trace)}</main>\n"
        f"<footer>{_FOOTER}</footer></body></html>\n"
    )


def _style() -> str:
    text = resources.files("callslip.look").joinpath("trace.css").read_text("utf-8")
    # A browser reads the ends of lines so, and takes the hash of what it has read.
    return text.replace("\r\n", "\n")


def _head(trace: Trace, texts: Texts) -> str:
    runs = list(trace.walk())
    turns = [turn for run in runs for turn in run.turns]
    more = "+" if any(run.unreported for run in runs) else ""
    rows = [
        ("protocol", trace.protocol),
        ("started", moment(trace.started_at)),
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
    state = "awaiting approval" if trace.is_waiting else _ending(trace)
    return f'<h1>{texts.line(f"{trace.agent}: {state}")}</h1><dl class="facts">{facts}</dl>'


def _ending(trace: Trace) -> str:
    if trace.ending is None:
        return "in progress"
    return trace.ending.reason.replace("_", " ")


def _left_out(selection: Selection) -> str:
    if not selection.left_out:
        return ""
    rows = count(selection.left_out, "more row")
    return (
        f"<p>The run has {selection.events:,} events. The page shows the first and the last 5,000 "
        f"rows and all failures. The log contains {rows}.</p>"
    )


def _legend() -> str:
    swatches = "".join(
        f'<span><svg class="swatch" viewBox="0 0 10 10"><rect class="{kind}" width="10" '
        f'height="10"/></svg> {name}</span>'
        for kind, name in (("work", "work"), ("pause", "awaiting approval"))
    )
    return f'<p class="legend" aria-hidden="true">{swatches}</p>'
