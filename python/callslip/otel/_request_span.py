"""The span of a request that a client has sent to this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from callslip.otel import _names as names

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from callslip.runs._observer import ServedAnswer, ServedRequest

__all__ = ["begin_request"]

_W3C = TraceContextTextMapPropagator()
_OPTIONS = {
    "max_tokens": names.REQUEST_MAX_TOKENS,
    "seed": names.REQUEST_SEED,
    "stop": names.REQUEST_STOP,
}
_USAGE = {
    "input_tokens": names.INPUT_TOKENS,
    "output_tokens": names.OUTPUT_TOKENS,
    "cached_tokens": names.CACHED_TOKENS,
}


def begin_request(tracer: Tracer, request: ServedRequest) -> Callable[[ServedAnswer], None]:
    """Begin the span of a request, and make it the current one.

    Args:
        tracer: Makes the span.
        request: The request.

    Returns:
        Ends the span. Call it in the same context.
    """
    above = context.get_current()
    if request.traceparent is not None:
        above = _W3C.extract({"traceparent": request.traceparent}, above)
    about: dict[str, Any] = {
        names.OPERATION: names.CHAT,
        names.REQUEST_MODEL: request.model,
        names.REQUEST_STREAM: request.streamed,
    }
    about |= {_OPTIONS[name]: value for name, value in request.options.items() if name in _OPTIONS}
    span = tracer.start_span(
        f"{names.CHAT} {request.model}", above, kind=SpanKind.SERVER, attributes=about
    )
    token = context.attach(trace.set_span_in_context(span, above))

    def end(answer: ServedAnswer) -> None:
        context.detach(token)
        _tell(span, answer)
        span.end()

    return end


def _tell(span: Span, answer: ServedAnswer) -> None:
    about: dict[str, Any] = {names.ATTEMPTS: answer.attempts}
    about |= {name: int(answer.usage[key]) for key, name in _USAGE.items() if key in answer.usage}
    if answer.finish_reason is not None:
        about[names.FINISH_REASONS] = [answer.finish_reason]
    if answer.error is not None:
        about[names.ERROR_TYPE] = answer.error
        span.set_status(Status(StatusCode.ERROR))
    span.set_attributes(about)
