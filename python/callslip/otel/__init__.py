"""OpenTelemetry: spans and metrics of runs, with the names of its convention for generative AI.

otel.instrument()                    # all agents of the process, from now on
otel.spans(store.run(run_id))        # a run that a store keeps
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from callslip._base.extras import needs
from callslip._base.options import check_flag, shown
from callslip.errors import UsageError
from callslip.events import Compacted, Event, RunFinished, TicketOpened
from callslip.runs import Run
from callslip.runs._observers import add_observer, remove_observers
from callslip.trace import Trace

with needs("callslip[otel]"):
    from opentelemetry import context, metrics, trace

    from callslip.otel._content import is_wanted
    from callslip.otel._meters import Meters
    from callslip.otel._names import SCHEMA_URL, SCOPE
    from callslip.otel._observer import SpanObserver
    from callslip.otel._run_spans import Recorder, RunSpans
    from callslip.otel._start import start_of
    from callslip.otel._unfinished import Unfinished

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["SCHEMA_URL", "instrument", "spans", "uninstrument"]


def instrument(
    *,
    content: bool | None = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Record the spans and metrics of all runs that begin or continue in this process.

    Called again, it takes the place of the call before. While a tool runs, its span is the current
    one, so that the tool's own spans are below it.

    Args:
        content: Whether texts of users, models and tools are recorded, also those of errors.
            Credentials that can be recognised by their form are masked. Default: as the variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says; without it, they are not.
        tracer_provider: The provider of the tracer. Default: that of the process.
        meter_provider: The provider of the meter. Default: that of the process.

    Raises:
        UsageError: An argument has a wrong value. What was recorded before is still recorded.
    """
    _check(content, tracer_provider)
    _check_provider("meter_provider", meter_provider, "get_meter")
    uninstrument()
    tracer = _tracer(tracer_provider)
    meter = metrics.get_meter(SCOPE, meter_provider=meter_provider, schema_url=SCHEMA_URL)
    recorder = Recorder(tracer, Meters(meter), is_wanted(content=content))
    add_observer(SpanObserver(recorder))


def uninstrument() -> None:
    """Record no more: runs that are in progress keep their spans to their end."""
    remove_observers(SpanObserver)


def spans(
    run: Run[Any],
    *,
    content: bool | None = None,
    tracer_provider: TracerProvider | None = None,
) -> None:
    """Record the spans of a run that is kept, and of the runs below it, with the times of its log.

    They are below the current span, if there is one.

    Args:
        run: The run. One that is in progress ends with its last event.
        content: As for `instrument`.
        tracer_provider: As for `instrument`.

    Raises:
        UsageError: `run` is not a run, or another argument has a wrong value.
    """
    if not isinstance(run, Run):
        raise UsageError(f"expected a run: got {shown(run)}; pass store.run(run_id) or result.run")
    _check(content, tracer_provider)
    recorder = Recorder(_tracer(tracer_provider), None, is_wanted(content=content))
    _record(recorder, run, context.get_current(), run.id)


def _check(content: object, tracer_provider: object) -> None:
    if content is not None:
        check_flag("content", content)
    _check_provider("tracer_provider", tracer_provider, "get_tracer")


def _check_provider(name: str, provider: object, method: str) -> None:
    if provider is not None and not callable(getattr(provider, method, None)):
        raise UsageError(
            f"expected {name} to be a provider of OpenTelemetry: got {shown(provider)}; pass an "
            f"object with the method {method}, or none for that of the process"
        )


def _tracer(provider: TracerProvider | None) -> Tracer:
    return trace.get_tracer(SCOPE, tracer_provider=provider, schema_url=SCHEMA_URL)


def _record(recorder: Recorder, run: Run[Any], above: Context, root: str) -> None:
    log = run.log
    whole = None if not isinstance(log[0], Compacted) else run.trace()
    at = log[0].at if whole is None else whole.started_at
    begin = partial(RunSpans, recorder, run, start_of(run), above=above, root=root)
    made = begin(at=at)
    below = _runs_below(run)
    if whole is not None:
        # The events that opened their tickets may be gone.
        opened = {event.ticket_id for event in log if isinstance(event, TicketOpened)}
        for ticket in below.keys() - opened:
            for child in below[ticket]:
                _record(recorder, child, made.context_of(None), root)
    before = Unfinished()
    for event in log:
        if before.is_over:
            # The run was resumed, or took a message: that was a span of its own.
            at = before.begins_at(event)
            made = begin(at=at)
            made.take_up(before, at)
        made.on_event(event)
        before.on_event(event)
        if isinstance(event, TicketOpened):
            for child in below.get(event.ticket_id, ()):
                _record(recorder, child, made.context_of(event.ticket_id), root)
    if not run.finished:
        made.leave(log[-1].at)
    elif whole is not None and not any(isinstance(event, RunFinished) for event in log):
        made.on_event(_end_of(whole, log[-1]))


def _runs_below(run: Run[Any]) -> dict[str | None, list[Run[Any]]]:
    """Return the runs below a run, by the tickets that started them."""
    below: dict[str | None, list[Run[Any]]] = {}
    for child in run.children:
        below.setdefault(start_of(child).parent_ticket, []).append(child)
    return below


def _end_of(run: Trace, last: Event) -> RunFinished:
    """Return the end of a run whose log was compacted after it."""
    assert run.ending is not None
    end = run.ending
    return RunFinished(
        run_id=run.run_id,
        seq=last.seq,
        at=run.ended_at,
        reason=end.reason,
        value=end.value,
        success=end.success,
        error=end.error,
        limit=end.limit,
    )
