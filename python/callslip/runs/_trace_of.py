"""The trace of a run and of the runs below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.runs._run import Run
    from callslip.trace import Trace

__all__ = ["trace_of"]

# How often a run is read again because it has continued meanwhile.
_READINGS = 5


def trace_of(run: Run[Any]) -> Trace:
    """Return the trace of a run, with those of the runs below it."""
    # Most programs never need it, and its classes take time to be made.
    from callslip.trace._fold import RunLog, fold

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
