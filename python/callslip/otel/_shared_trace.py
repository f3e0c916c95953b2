"""One trace for a run that several workers drive: its id follows from that of the run."""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

    from callslip.otel._start import Start
    from callslip.runs import Run

__all__ = ["tracer_for"]


class _TraceOf:
    """Ids of spans as the provider makes them, and one id of a trace.

    Args:
        ids: What makes the ids of the provider.
        root: The id of the run at the top.
    """

    def __init__(self, ids: Any, root: str) -> None:
        self.generate_span_id = ids.generate_span_id
        # Samplers decide by its last bytes, as if it were random.
        digest = hashlib.sha256(f"callslip {root}".encode()).digest()
        self._trace_id = int.from_bytes(digest[:16]) or 1

    def generate_trace_id(self) -> int:
        return self._trace_id

    def is_trace_id_random(self) -> bool:
        return True


def tracer_for(tracer: Tracer, run: Run[Any], start: Start, above: Context) -> Tracer:
    """Return the tracer for the span of a run.

    A run of a shared store that begins below no span is in the trace of its root's id, whichever
    worker drives it. Tracers of other makers than OpenTelemetry's SDK choose an id themselves.
    """
    store = run._store
    if store is None or store._shared is None:
        return tracer
    if trace.get_current_span(above).get_span_context().is_valid:
        return tracer
    # A proxy stands for the tracer that there will be.
    tracer = getattr(tracer, "_tracer", tracer)
    ids = getattr(tracer, "id_generator", None)
    if ids is None:
        return tracer
    root, _, _ = (start.parent_run or run.id).partition(".")
    own: Any = copy.copy(tracer)
    own.id_generator = _TraceOf(ids, root)
    return own  # type: ignore[no-any-return]
