"""The page of a run: what waits for a person, and the trace as it grows."""

from __future__ import annotations

import math

from callslip.console._addresses import key_of
from callslip.console._boxes import box_of
from callslip.look._head import head_of, left_out, legend
from callslip.look._rows import Rows
from callslip.look._selection import Selection
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["run_sections"]

_TEXTS = Texts(limit=20_000, redact=None)


def run_sections(trace: Trace, base: str, owner: str | None) -> dict[str, list[str]]:
    """Return the parts of the page, each with its pieces. `asks` are the boxes of calls that wait.

    Args:
        trace: The run, with the runs below it.
        base: The beginning of the addresses of all pages.
        owner: Who takes decisions; `None` for this console.
    """
    selection = Selection(trace)
    rows = Rows(
        trace,
        _TEXTS,
        "failed",
        selection=selection,
        images=True,
        # While the run goes on, the bars of earlier rows stay as they are.
        seconds=None if trace.ending is not None else _axis(trace.seconds),
        ids=True,
    )
    key = key_of(trace.run_id)
    files = (
        f'<p><a href="{base}/runs/{key}.html">Page of this run</a> · '
        f'<a href="{base}/runs/{key}.jsonl">Log</a></p>'
    )
    asks = [
        box_of(run, ticket, f"{base}/runs/{key_of(run.run_id)}/decide", owner)
        for run, ticket in trace.awaiting_approval
    ]
    return {
        "head": [head_of(trace, _TEXTS), files],
        "asks": asks,
        "task": [rows.task(trace)],
        "legend": [f"<h2>Turns</h2>{left_out(selection)}{legend()}"],
        "rows": rows.pieces(trace),
    }


def _axis(seconds: float) -> float:
    """Return a power of 2 that is at least as long."""
    return 2.0 ** math.ceil(math.log2(max(seconds, 1.0)))
