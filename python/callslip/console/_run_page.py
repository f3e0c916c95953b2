"""The page of a run: what waits for a person, and the trace as it grows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from callslip.console._addresses import key_of
from callslip.console._boxes import box_of
from callslip.console._files import links_to_files
from callslip.look._head import head_of, left_out, legend
from callslip.look._markup import Markup, el, joined
from callslip.look._rows import Rows
from callslip.look._selection import Selection
from callslip.look._text import Texts
from callslip.runs import Ticket
from callslip.trace import Trace

__all__ = ["run_sections"]

_TEXTS = Texts(limit=20_000, redact=None)


def run_sections(
    trace: Trace, waiting: Sequence[Ticket], base: str, may_decide: str | None
) -> dict[str, list[Markup]]:
    """Return the parts of the page, each with its pieces. `asks` are the boxes of calls that wait.

    Args:
        trace: The run, with the runs below it.
        waiting: The calls of them that wait.
        base: The beginning of the addresses of all pages.
        may_decide: Why no decision is taken here; `None` if it is.
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
    page = el("a", "Page of this run", href=f"{base}/runs/{key}.html")
    pages = el("p", page, " · ", el("a", "Log", href=f"{base}/runs/{key}.jsonl"))
    files = links_to_files(trace, base, _TEXTS)
    agents = {run.run_id: run.agent for run in trace.walk()}
    asks = [
        box_of(
            ticket,
            agents.get(ticket.run_id, ""),
            f"{base}/runs/{key_of(ticket.run_id)}/decide",
            may_decide,
        )
        for ticket in waiting
    ]
    return {
        "head": [head_of(trace, _TEXTS), pages, *([] if files is None else [files])],
        "asks": asks,
        "task": [rows.task(trace)],
        "legend": [joined(el("h2", "Turns"), left_out(selection), legend())],
        "rows": rows.pieces(trace),
    }


def _axis(seconds: float) -> float:
    """Return a power of 2 that is at least as long."""
    return 2.0 ** math.ceil(math.log2(max(seconds, 1.0)))
