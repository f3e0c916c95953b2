"""Runs as they are shown: their traces and pages. Imported at the first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip.look import to_html
from callslip.trace import Trace
from callslip.trace._fold import RunLog, fold

if TYPE_CHECKING:
    from callslip.runs._run import Run

__all__ = ["to_html", "trace_of"]

# How often a run is read again because it has continued meanwhile.
_READINGS = 5


def trace_of(run: Run[Any]) -> Trace:
    """Return the trace of a run, with those of the runs below it."""
    core = run._core
    for _ in range(_READINGS):
        count = core.event_count
        log = RunLog(
            run_id=run.id,
            lines=core.records(),
            messages=list(run.messages),
            parts=run.parts,
            usage=run.usage,
            total_usage=run.total_usage,
        )
        if core.event_count == count:
            break
    return fold(log, [trace_of(child) for child in run.children])
