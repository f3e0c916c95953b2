"""The observer of all runs of the process, which makes the spans of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import context

from callslip._base.log import GuardedLogger
from callslip.events import RunFinished
from callslip.otel._request_span import begin_request
from callslip.otel._run_spans import Recorder, RunSpans
from callslip.otel._shared_trace import tracer_for
from callslip.otel._start import start_of
from callslip.otel._unfinished import Unfinished
from callslip.runs._observer import Observer

if TYPE_CHECKING:
    from callslip.events import Event
    from callslip.runs import Run
    from callslip.runs._observer import ServedAnswer, ServedRequest

__all__ = ["SpanObserver"]


_log = GuardedLogger("callslip.otel")

_FAILED = "the spans of run %s cannot be recorded"
_REQUEST_FAILED = "the span of a request cannot be recorded"


class SpanObserver(Observer):
    """Makes spans and metrics of the events of runs.

    A fault of what records them, such as a processor of spans, is logged, and the run goes on.

    Args:
        recorder: Where they go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # The runs that are worked on now.
        self._open: dict[str, RunSpans] = {}
        # Those whose spans could not be recorded.
        self._lost: set[str] = set()

    def on_event(self, run: Run[Any], event: Event) -> None:
        """Take an event of a run."""
        if run.id not in self._lost:
            try:
                self._record(run, event)
            except Exception:  # noqa: BLE001  # it ends no run
                self._lose(run)
        if isinstance(event, RunFinished):
            self._open.pop(run.id, None)
            self._lost.discard(run.id)

    def on_start(self, run: Run[Any], at: float) -> str | None:
        """Begin the span of a run, so that its log can name it."""
        try:
            spans = self._open[run.id] = self._begin(run, at)
        except Exception:  # noqa: BLE001  # it ends no run
            self._lose(run)
            return None
        return spans.traceparent

    def on_left(self, run: Run[Any]) -> None:
        """End the spans of a run that nothing works on any more."""
        self._lost.discard(run.id)
        spans = self._open.pop(run.id, None)
        if spans is not None:
            try:
                spans.leave(time.time())
            except Exception:  # noqa: BLE001  # it ends no run
                _log.exception(_FAILED, run.id)

    def enter_call(self, run: Run[Any], ticket: str) -> Callable[[], object] | None:
        """Make the span of a call the current one, in the context that the call runs in."""
        spans = self._open.get(run.id)
        if spans is None:
            return None
        token = context.attach(spans.context_of(ticket))
        return lambda: context.detach(token)

    def enter_request(self, request: ServedRequest) -> Callable[[ServedAnswer], object] | None:
        """Begin the span of a request that is served, above the run that answers it."""
        try:
            end = begin_request(self._recorder.tracer, request)
        except Exception:  # noqa: BLE001  # it ends no request
            _log.exception(_REQUEST_FAILED)
            return None

        def tell(answer: ServedAnswer) -> None:
            try:
                end(answer)
            except Exception:  # noqa: BLE001  # it ends no request
                _log.exception(_REQUEST_FAILED)

        return tell

    def _lose(self, run: Run[Any]) -> None:
        """Record no more of a run. Called where an error is handled."""
        self._open.pop(run.id, None)
        self._lost.add(run.id)
        _log.exception(_FAILED, run.id)

    def _record(self, run: Run[Any], event: Event) -> None:
        spans = self._open.get(run.id)
        if spans is None:
            if run._driver is None:
                # A message or a decision: nothing works on the run yet.
                return
            spans = self._open[run.id] = self._take_up(run, event)
        spans.on_event(event)

    def _take_up(self, run: Run[Any], first: Event) -> RunSpans:
        """Begin the spans of a run that was begun before, and of what is open in it.

        Args:
            run: The run.
            first: The first event since it was resumed.
        """
        unfinished = Unfinished.of(event for event in run.log if event.seq < first.seq)
        at = unfinished.begins_at(first)
        spans = self._begin(run, at)
        spans.take_up(unfinished, at)
        return spans

    def _begin(self, run: Run[Any], at: float) -> RunSpans:
        start = start_of(run)
        parent = self._open.get(start.parent_run or "")
        if parent is None:
            above, root = context.get_current(), start.parent_run or run.id
        else:
            above, root = parent.context_of(start.parent_ticket), parent.root
        tracer = tracer_for(self._recorder.tracer, run, start, above)
        recorder = self._recorder._replace(tracer=tracer)
        return RunSpans(recorder, run, start, above=above, root=root, at=at)
