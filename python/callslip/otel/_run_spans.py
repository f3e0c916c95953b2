"""The spans of one run, made from the events of its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from callslip.events import (
    AnswerOffered,
    ApprovalChecked,
    Approved,
    ArgumentsFilled,
    Event,
    ModelAsked,
    ModelAttemptFailed,
    ModelReplied,
    Moved,
    RunFinished,
    TicketCompleted,
    TicketOpened,
    ToolAttemptFailed,
    Violated,
)
from callslip.otel import _names as names
from callslip.otel._content import (
    clean,
    clean_json,
    instructions_json,
    messages_json,
    reply_json,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from callslip.otel._meters import Meters
    from callslip.otel._start import Start
    from callslip.otel._unfinished import Unfinished
    from callslip.runs import Run, Usage

__all__ = ["Recorder", "RunSpans"]

_W3C = TraceContextTextMapPropagator()
_HEADER = "traceparent"


class Recorder(NamedTuple):
    """Where spans and metrics go.

    Attributes:
        tracer: The tracer.
        meters: The instruments; `None` to record no metrics.
        content: Whether texts are recorded.
    """

    tracer: Tracer
    meters: Meters | None
    content: bool


class RunSpans:
    """Makes the spans of a run as its events come, with the times of the log.

    Args:
        recorder: Where they go.
        run: The run.
        start: How it began.
        above: The context in which the run's span begins.
        root: The id of the run at the top of the tree.
        at: The time of the first event, in Unix seconds.
    """

    def __init__(
        self,
        recorder: Recorder,
        run: Run[Any],
        start: Start,
        *,
        above: Context,
        root: str,
        at: float,
    ) -> None:
        self._tracer, self._meters, self._content = recorder
        self._run = run
        self._start = start
        self.root = root
        self._began = at
        self._about: dict[str, str] = {names.PROTOCOL: start.protocol}
        self._span: Span = recorder.tracer.start_span(
            f"{names.INVOKE_AGENT} {start.agent}",
            above,
            kind=SpanKind.INTERNAL,
            start_time=_nanoseconds(at),
            links=_links(start.traceparent),
            attributes={
                names.OPERATION: names.INVOKE_AGENT,
                names.AGENT_NAME: start.agent,
                names.CONVERSATION_ID: root,
                names.RUN_ID: run.id,
                **self._about,
            },
        )
        self._context = trace.set_span_in_context(self._span, above)
        self._model: _ModelCall | None = None
        self._tickets: dict[str, _ToolCall] = {}

    @property
    def traceparent(self) -> str | None:
        """The header `traceparent` of the run's span; `None` if no span is recorded."""
        if not self._span.is_recording():
            return None
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, self._context)
        return carrier.get(_HEADER)

    def context_of(self, ticket: str | None) -> Context:
        """Return the context of a ticket's span, or of the run's."""
        call = None if ticket is None else self._tickets.get(ticket)
        return (
            self._context if call is None else trace.set_span_in_context(call.span, self._context)
        )

    def on_event(self, event: Event) -> None:
        """Take the next event of the log."""
        match event:
            case ModelAsked():
                self._end_model()
                self._ask(event, event.at)
            case ModelAttemptFailed():
                self._fail_attempt(event)
            case ModelReplied():
                self._reply(event)
            case Violated():
                self._say(event)
                self._violate(event)
            case AnswerOffered() | Moved():
                self._say(event)
                self._end_replied()
            case TicketOpened() | ArgumentsFilled() | ApprovalChecked() | Approved():
                self._end_replied()
                self._on_ticket(event)
            case ToolAttemptFailed() | TicketCompleted():
                self._end_replied()
                self._on_outcome(event)
            case RunFinished():
                self._finish(event)
            case _:
                self._end_replied()

    def take_up(self, unfinished: Unfinished, at: float) -> None:
        """Begin the spans of what had begun before the run was resumed, and has not ended.

        Args:
            unfinished: The request to the model, and the tickets.
            at: When the run was resumed.
        """
        if unfinished.asked is not None:
            self._ask(unfinished.asked, at)
        for ticket in unfinished.tickets:
            self._open(ticket, at)
            self._tickets[ticket.ticket_id].waits_since = unfinished.waits.get(ticket.ticket_id)
            if (approved := unfinished.approvals.get(ticket.ticket_id)) is not None:
                self._on_ticket(approved)

    def leave(self, at: float) -> None:
        """End all spans that are still open: nothing works on the run any more."""
        self._end_model(at)
        for call in self._tickets.values():
            call.span.end(_nanoseconds(at))
        self._tickets.clear()
        self._span.end(_nanoseconds(at))

    def _ask(self, event: ModelAsked, at: float) -> None:
        name = names.CHAT if event.model is None else f"{names.CHAT} {event.model}"
        about: dict[str, Any] = {names.OPERATION: names.CHAT, names.TURN: event.turn}
        about |= _given({names.REQUEST_MODEL: event.model, names.PROVIDER: event.provider})
        in_process = event.provider == "local"
        span = self._tracer.start_span(
            name,
            self._context,
            kind=SpanKind.INTERNAL if in_process else SpanKind.CLIENT,
            start_time=_nanoseconds(at),
            attributes=about,
        )
        self._model = _ModelCall(span, event, at)

    def _fail_attempt(self, event: ModelAttemptFailed) -> None:
        call = self._model
        if call is None:
            return
        model = {names.REQUEST_MODEL: event.model}
        about = {**model, **self._error_text(event.error)}
        call.span.add_event(names.ATTEMPT_FAILED, about, _nanoseconds(event.at))
        self._count(event.usage, {**call.about, **model})

    def _reply(self, event: ModelReplied) -> None:
        call = self._model
        if call is None:
            return
        span, usage = call.span, event.usage
        if event.model is not None:
            call.tell_other_model(event.model, event.provider)
        about: dict[str, Any] = {
            names.REQUEST_STREAM: event.streamed,
            names.FINISH_REASONS: [event.finish_reason],
        }
        if event.first_at is not None:
            about[names.FIRST_CHUNK] = max(0.0, event.first_at - call.began)
        if usage is not None:
            about[names.INPUT_TOKENS] = usage.input_tokens
            about[names.OUTPUT_TOKENS] = usage.output_tokens
            about[names.CACHED_TOKENS] = usage.cached_tokens
            if usage.cost:
                about[names.COST] = usage.cost
        if self._content:
            about[names.OUTPUT_MESSAGES] = reply_json(
                event.text, event.finish_reason, has_items=self._start.takes_calls
            )
            call.may_quote = clean(event.text) == event.text
        span.set_attributes(about)
        for repair in event.repairs:
            self._note(names.REPAIR, repair["code"], event.at)
        call.replied_at = event.at
        self._measure_reply(call, event)

    def _say(self, event: AnswerOffered | Moved | Violated) -> None:
        """Record narration and thoughts, unless the reply has a secret.

        A piece of a secret cannot be recognised.
        """
        call = self._model
        if self._content and call is not None and call.may_quote:
            said = {names.NARRATION: event.narration, names.THOUGHTS: event.thoughts}
            call.span.set_attributes(_given(said))

    def _measure_reply(self, call: _ModelCall, event: ModelReplied) -> None:
        meters = self._meters
        if meters is None:
            return
        about = call.about
        meters.inference.record(max(0.0, event.at - call.began), about)
        if event.first_at is not None:
            meters.first_chunk.record(max(0.0, event.first_at - call.began), about)
        self._count(event.usage, about)

    def _count(self, usage: Usage | None, about: Mapping[str, Any]) -> None:
        if usage is None or self._meters is None:
            return
        # A usage does not count texts and images apart.
        kind = {**about, names.MODALITY: "unknown"}
        self._meters.input_tokens.add(usage.input_tokens, kind)
        self._meters.output_tokens.add(usage.output_tokens, kind)

    def _fail_model(self, event: RunFinished) -> None:
        """End the span of a request that the run has ended without a reply to."""
        call = self._model
        if call is None or call.replied_at is not None:
            return
        self._fail(call.span, event.reason, event.error)
        if self._meters is not None:
            about = {**call.about, names.ERROR_TYPE: event.reason}
            self._meters.inference.record(max(0.0, event.at - call.began), about)

    def _violate(self, event: Violated) -> None:
        self._note(names.VIOLATION, event.violation["code"], event.at)
        self._end_model()

    def _note(self, name: str, code: str, at: float) -> None:
        if self._model is not None:
            self._model.span.add_event(name, {names.CODE: code}, _nanoseconds(at))
        if self._meters is not None:
            meter = self._meters.repairs if name == names.REPAIR else self._meters.violations
            meter.add(1, {names.CODE: code, **self._about})

    def _end_replied(self) -> None:
        """End the span of a request whose reply is there. Calls go on beside an open request."""
        if self._model is not None and self._model.replied_at is not None:
            self._end_model()

    def _end_model(self, at: float | None = None) -> None:
        call, self._model = self._model, None
        if call is not None:
            end = at if call.replied_at is None else call.replied_at
            call.span.end(None if end is None else _nanoseconds(end))

    def _on_ticket(
        self, event: TicketOpened | ArgumentsFilled | ApprovalChecked | Approved
    ) -> None:
        if isinstance(event, TicketOpened):
            self._open(event, event.at)
        call = self._tickets.get(event.ticket_id)
        if call is None:
            return
        if isinstance(event, Approved):
            waited = max(0.0, event.at - (call.waits_since or event.at))
            about: dict[str, Any] = {"waited_s": waited}
            if event.by is not None:
                about["by"] = event.by
            call.span.add_event(names.APPROVED, about, _nanoseconds(event.at))
            if self._meters is not None:
                self._meters.approval.record(waited, {names.TOOL_NAME: call.opened.tool})
        elif event.needs_approval:
            call.waits_since = event.at

    def _open(self, event: TicketOpened, at: float) -> None:
        about: dict[str, Any] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: event.tool,
            names.TOOL_TYPE: "function",
            names.TICKET_ID: event.ticket_id,
            names.TOOL_CALL_ID: event.call_id or event.ticket_id,
        }
        if self._content:
            about[names.TOOL_ARGUMENTS] = clean_json(event.arguments)
        span = self._tracer.start_span(
            f"{names.EXECUTE_TOOL} {event.tool}",
            self._context,
            kind=SpanKind.INTERNAL,
            start_time=_nanoseconds(at),
            attributes=about,
        )
        self._tickets[event.ticket_id] = _ToolCall(span, event, at)

    def _on_outcome(self, event: ToolAttemptFailed | TicketCompleted) -> None:
        if isinstance(event, ToolAttemptFailed):
            call = self._tickets.get(event.ticket_id)
            if call is not None:
                about: dict[str, Any] = {"attempt": event.attempt, **self._error_text(event.error)}
                call.span.add_event(names.ATTEMPT_FAILED, about, _nanoseconds(event.at))
            return
        call = self._tickets.pop(event.ticket_id, None)
        if call is None:
            return
        call.span.set_attribute(names.OUTCOME, event.outcome)
        if event.outcome != "ok":
            self._fail(call.span, event.outcome, event.error)
        elif self._content:
            call.span.set_attribute(names.TOOL_RESULT, clean_json(event.result))
        call.span.end(_nanoseconds(event.at))
        if self._meters is not None:
            failed = {} if event.outcome == "ok" else {names.ERROR_TYPE: event.outcome}
            self._meters.tool.record(
                max(0.0, event.at - call.began), {names.TOOL_NAME: call.opened.tool, **failed}
            )

    def _finish(self, event: RunFinished) -> None:
        span, usage = self._span, self._run.total_usage
        span.set_attributes(
            {
                names.STOP_REASON: event.reason,
                names.USAGE_INPUT_TOKENS: usage.input_tokens,
                names.USAGE_OUTPUT_TOKENS: usage.output_tokens,
            }
        )
        if usage.cost:
            span.set_attribute(names.USAGE_COST, usage.cost)
        if event.reason != "finished":
            self._fail_model(event)
            self._fail(span, event.reason, event.error)
        if self._content:
            self._tell_conversation(span)
        self.leave(event.at)
        if self._meters is not None:
            failed = {} if event.reason == "finished" else {names.ERROR_TYPE: event.reason}
            about = {names.AGENT_NAME: self._start.agent, **failed}
            self._meters.agent.record(max(0.0, event.at - self._began), about)

    def _tell_conversation(self, span: Span) -> None:
        """Record the messages once, at the run: each turn's would repeat those before it."""
        first, *others = self._run.messages
        span.set_attribute(names.SYSTEM_INSTRUCTIONS, instructions_json(first["content"]))
        span.set_attribute(names.INPUT_MESSAGES, messages_json(others))

    def _fail(self, span: Span, kind: str, error: str | None) -> None:
        span.set_attribute(names.ERROR_TYPE, kind)
        text = clean(error) if self._content and error else None
        span.set_status(Status(StatusCode.ERROR, text))

    def _error_text(self, error: str) -> dict[str, str]:
        """Return the text of an error where texts are recorded: it may quote them."""
        return {"error": clean(error)} if self._content else {}


class _ModelCall:
    """A request to the model whose span is open."""

    __slots__ = ("about", "began", "may_quote", "replied_at", "span")

    def __init__(self, span: Span, asked: ModelAsked, began: float) -> None:
        self.span = span
        self.began = began
        self.replied_at: float | None = None
        # False if the reply has a secret.
        self.may_quote = False
        self.about = _given(
            {
                names.OPERATION: names.CHAT,
                names.REQUEST_MODEL: asked.model,
                names.PROVIDER: asked.provider,
            }
        )

    def tell_other_model(self, model: str, provider: str | None) -> None:
        """Name the model that has replied in place of the one that was asked first."""
        other = {names.REQUEST_MODEL: model}
        if provider is not None or names.PROVIDER in self.about:
            other[names.PROVIDER] = provider or "unknown"
        self.about |= other
        self.span.set_attributes(other)
        self.span.update_name(f"{names.CHAT} {model}")


class _ToolCall:
    """A ticket whose span is open."""

    __slots__ = ("began", "opened", "span", "waits_since")

    def __init__(self, span: Span, opened: TicketOpened, began: float) -> None:
        self.span = span
        self.opened = opened
        self.began = began
        self.waits_since: float | None = None


def _given(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if value is not None}


def _links(traceparent: str | None) -> list[Link]:
    """Return the link of a run that goes on to the span with which it began."""
    if traceparent is None:
        return []
    began = trace.get_current_span(
        _W3C.extract({_HEADER: traceparent}, Context())
    ).get_span_context()
    return [Link(began)] if began.is_valid else []


def _nanoseconds(at: float) -> int:
    return int(at * 1_000_000_000)
