"""Spans and metrics of runs, as OpenTelemetry's own SDK receives them."""

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from callslip import (
    Agent,
    Fallback,
    ModelChunk,
    ModelError,
    ModelReply,
    ProtocolError,
    Retrying,
    ScriptedModel,
    TicketStore,
    UsageError,
    otel,
    replay,
    tool,
)
from callslip.otel import _names
from scripted import act, delegate, finish, give, wait

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"


@tool
def look(what: str) -> str:
    """Look."""
    with trace.get_tracer("tool").start_as_current_span("inside"):
        return what


@tool
async def alook(what: str) -> str:
    """Look."""
    with trace.get_tracer("tool").start_as_current_span("inside"):
        return what


@tool
def fail(what: str) -> str:
    """Fail."""
    raise ValueError(what)


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


def agent(*replies, **more):
    tools = more.pop("tools", [look, alook, fail])
    model = more.pop("model", None) or ScriptedModel([*replies])
    return Agent(model, tools=tools, protocol="react", name="clerk", **more)


DRIVERS = {
    "run_sync": lambda one, task, **more: one.run_sync(task, **more),
    "run": lambda one, task, **more: asyncio.run(one.run(task, **more)),
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("name", ["look", "alook"])
def test_the_tree_of_a_run(recorded, monkeypatch, driver, name):
    recorded.instrument()
    monkeypatch.setattr(trace, "get_tracer", lambda *a, **k: recorded.tracers.get_tracer("tool"))
    result = DRIVERS[driver](agent(act(name, what="x"), finish("seen")), "Look.")
    assert sorted(recorded.tree(), key=str) == sorted(
        [
            ("invoke_agent clerk", None),
            ("chat", "invoke_agent clerk"),
            (f"execute_tool {name}", "invoke_agent clerk"),
            ("inside", f"execute_tool {name}"),
            ("chat", "invoke_agent clerk"),
        ],
        key=str,
    )
    run = recorded.named("invoke_agent clerk")
    assert run.kind is SpanKind.INTERNAL
    assert run.status.status_code is StatusCode.UNSET
    assert run.attributes["gen_ai.conversation.id"] == result.run.id
    assert run.attributes["callslip.stop_reason"] == "finished"
    assert run.attributes["callslip.protocol"] == "react"
    for one in recorded.spans:
        assert run.start_time <= one.start_time <= one.end_time <= run.end_time
    call = recorded.named(f"execute_tool {name}")
    assert call.attributes["gen_ai.tool.name"] == name
    assert call.attributes["callslip.outcome"] == "ok"
    assert run.instrumentation_scope.schema_url == otel.SCHEMA_URL


def test_turns_tell_model_usage_and_first_chunk(recorded):
    recorded.instrument()

    class Model:
        model, provider = "small", "acme"

        def __call__(self, messages):
            usage = {"input_tokens": 12, "output_tokens": 3, "cached_tokens": 5, "cost": 0.5}
            yield finish("x")
            yield ModelChunk("", usage=usage)

    agent(model=Model()).run_sync("Go.")
    span = recorded.named("chat small")
    assert span.kind is SpanKind.CLIENT
    told = {
        "gen_ai.provider.name": "acme",
        "gen_ai.request.model": "small",
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.response.finish_reasons": ("stop",),
        "callslip.turn": 1,
        "callslip.cost": 0.5,
    }
    assert {name: span.attributes[name] for name in told} == told
    assert span.attributes["gen_ai.response.time_to_first_chunk"] >= 0
    run = recorded.named("invoke_agent clerk")
    assert run.attributes["callslip.usage.input_tokens"] == 12
    assert not any(name.startswith("gen_ai.usage") for name in run.attributes)
    (point,) = recorded.points("gen_ai.client.inference.usage.input_tokens")
    assert (point.value, point.attributes["gen_ai.token.modality"]) == (12, "unknown")
    for name in ("gen_ai.client.inference.duration", "gen_ai.invoke_agent.duration"):
        assert recorded.points(name)[0].count == 1


def test_the_model_that_has_replied_is_named(recorded):
    recorded.instrument()

    class Big:
        model, provider = "big", "acme"

        def __call__(self, messages):
            raise TimeoutError("no answer")

    class Small:
        model, provider = "small", "other"

        def __call__(self, messages):
            usage = {"input_tokens": 12, "output_tokens": 3, "cached_tokens": 0, "cost": 0.5}
            return ModelReply(finish("x"), usage=usage)

    agent(model=Fallback(Big(), Small())).run_sync("Go.")
    span = recorded.named("chat small")
    names = ("gen_ai.request.model", "gen_ai.provider.name")
    assert [span.attributes[name] for name in names] == ["small", "other"]
    (event,) = span.events
    assert (event.name, event.attributes["gen_ai.request.model"]) == (
        "callslip.attempt_failed",
        "big",
    )
    (point,) = recorded.points("gen_ai.client.inference.usage.input_tokens")
    assert [point.attributes[name] for name in names] == ["small", "other"]


def test_tokens_of_failed_attempts_are_counted(recorded):
    recorded.instrument()
    usage = {"input_tokens": 7, "output_tokens": 2, "cached_tokens": 0, "cost": 0.0}
    replies = [ModelReply("", usage=usage), ModelReply(finish("x"), usage=usage)]
    model = Retrying(lambda _: replies.pop(0), tries=2, backoff=0)
    run = agent(model=model).run_sync("Go.").run
    points = recorded.points("gen_ai.client.inference.usage.input_tokens")
    assert sum(point.value for point in points) == run.usage.input_tokens == 14


def test_violations_and_repairs_are_events_of_their_turn(recorded):
    recorded.instrument()
    agent(act("loook", what="x"), finish("x")).run_sync("Go.")
    first = next(one for one in recorded.spans if one.name == "chat")
    events = [(one.name, dict(one.attributes)) for one in first.events]
    assert ("callslip.violation", {"code": "unknown_tool"}) in events
    assert first.status.status_code is StatusCode.UNSET
    points = recorded.points("callslip.violations")
    assert [(one.value, one.attributes["code"]) for one in points] == [(1, "unknown_tool")]


def test_what_failed_has_an_error_type_and_no_text(recorded):
    recorded.instrument()
    broken = agent(act("fail", what="the secret"), "no json", "no json", "no json", "no json")
    with pytest.raises(ProtocolError):
        broken.run_sync("Go.")
    call, run = recorded.named("execute_tool fail"), recorded.named("invoke_agent clerk")
    assert call.attributes["error.type"] == "error"
    assert run.attributes["error.type"] == "violations"
    assert call.status.status_code is run.status.status_code is StatusCode.ERROR
    assert "the secret" not in "".join(one.to_json() for one in recorded.spans)
    (point,) = recorded.points("gen_ai.execute_tool.duration")
    assert point.attributes["error.type"] == "error"


def test_a_model_that_fails_ends_its_spans(recorded):
    recorded.instrument()

    def model(messages):
        raise OSError("refused")

    with pytest.raises(ModelError):
        agent(model=model).run_sync("Go.")
    assert recorded.named("invoke_agent clerk").attributes["error.type"] == "model_error"
    assert recorded.named("chat").end_time is not None


def test_a_cancelled_run_ends_its_spans(recorded):
    recorded.instrument()

    async def main():
        asked = asyncio.Event()

        async def model(messages):
            asked.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(agent(model=model).run("Go."))
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    assert recorded.named("invoke_agent clerk").attributes["error.type"] == "cancelled"
    assert set(recorded.tree()) == {("invoke_agent clerk", None), ("chat", "invoke_agent clerk")}


def test_an_approval_is_an_event_with_its_wait(recorded):
    recorded.instrument()
    agent(act("pay", amount=5), finish("x"), tools=[pay]).run_sync("Go.", approve=lambda _: True)
    (event,) = recorded.named("execute_tool pay").events
    assert event.name == "callslip.approved"
    assert event.attributes["waited_s"] >= 0
    assert "by" not in event.attributes
    assert recorded.points("callslip.approval.wait")[0].count == 1


def test_an_approval_names_the_person(recorded):
    recorded.instrument()

    async def main():
        async with agent(act("pay", amount=5), finish("x"), tools=[pay]).stream("Go.") as stream:
            async for _ in stream:
                for ticket in stream.awaiting_approval:
                    stream.approve(ticket, by="ann")

    asyncio.run(asyncio.wait_for(main(), 60))
    (event,) = recorded.named("execute_tool pay").events
    assert event.attributes["by"] == "ann"


def test_a_run_below_is_below_its_ticket(recorded):
    recorded.instrument()
    child = Agent(ScriptedModel([finish("below")]), protocol="react", name="child")
    parent = agent(
        act("ask", task="Do."),
        finish("x"),
        tools=[child.as_tool(name="ask", description="Ask the child.")],
    )
    run = parent.run_sync("Go.").run
    tree = recorded.tree()
    assert ("invoke_agent child", "execute_tool ask") in tree
    below = recorded.named("invoke_agent child")
    assert below.attributes["gen_ai.conversation.id"] == run.id
    assert below.context.trace_id == recorded.named("invoke_agent clerk").context.trace_id


def test_a_run_is_below_the_program_s_own_span(recorded):
    recorded.instrument()
    with recorded.tracers.get_tracer("app").start_as_current_span("request"):
        agent(finish("x")).run_sync("Go.")
    assert ("invoke_agent clerk", "request") in recorded.tree()


@pytest.mark.parametrize(
    ("option", "variable", "is_there"),
    [(None, None, False), (True, None, True), (None, "true", True), (False, "true", False)],
)
def test_texts_only_where_they_are_wanted(recorded, monkeypatch, option, variable, is_there):
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(name, variable)
    recorded.instrument(content=option)
    agent(act("look", what=f"here {SECRET}"), finish("the answer")).run_sync("The task.")
    text = "".join(one.to_json() for one in recorded.spans)
    for piece in ("The task.", "here ", "the answer"):
        assert (piece in text) is is_there
    assert SECRET not in text
    if is_there:
        call = recorded.named("execute_tool look").attributes
        assert json.loads(call["gen_ai.tool.call.arguments"])["what"].startswith("here ")
        run = recorded.named("invoke_agent clerk").attributes
        (part,) = json.loads(run["gen_ai.system_instructions"])
        assert (part["type"], "look(what: str)" in part["content"]) == ("text", True)
        (last,) = json.loads(recorded.spans[-1].attributes["gen_ai.output.messages"])
        assert (last["role"], last["finish_reason"]) == ("assistant", "stop")


def test_a_kept_run_gives_the_spans_of_the_live_one(recorded, tmp_path):
    child = Agent(ScriptedModel([finish("below")]), protocol="react", name="child")
    with TicketStore(tmp_path / "runs.sqlite") as store:
        tools = [look, child.as_tool(name="ask", description="Ask the child.")]
        script = [
            act("look", what="x"),
            act("loook", what="x"),
            act("ask", task="Do."),
            finish("x"),
        ]
        recorded.instrument()
        run = agent(*script, tools=tools, store=store).run_sync("Go.").run
        live = [(one.name, one.start_time, one.end_time) for one in recorded.spans]
        tree = recorded.tree()
        otel.uninstrument()
        recorded.exporter.clear()
        otel.spans(store.run(run.id), tracer_provider=recorded.tracers)
        kept = [(one.name, one.start_time, one.end_time) for one in recorded.spans]
        assert (kept, recorded.tree()) == (live, tree)


def test_a_resumed_run_is_of_the_same_conversation(recorded, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        recorded.instrument()

        def gone(messages):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            agent(model=gone, store=store).run_sync("Go.")
        (row,) = store.runs()
        agent(finish("x"), store=store).resume_sync(row.run_id)
    first, second = (one for one in recorded.spans if one.name == "invoke_agent clerk")
    conversation = "gen_ai.conversation.id"
    assert first.attributes[conversation] == second.attributes[conversation] == row.run_id
    assert second.attributes["callslip.stop_reason"] == "finished"


GOES_ON = """
import sys
sys.path[:0] = {path!r}
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from callslip import Agent, ScriptedModel, TicketStore, otel, tool
from scripted import finish

@tool(needs_approval=True)
def pay(amount: int) -> str:
    "Pay."
    return "paid"

tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
otel.instrument(tracer_provider=tracers)
with TicketStore(sys.argv[1]) as store:
    model = ScriptedModel([finish("x")])
    agent = Agent(model, tools=[pay], protocol="react", name="clerk", store=store)
    agent.resume_sync(sys.argv[2], approve=lambda _: True)
"""


def test_a_run_that_another_process_resumes_is_linked_to_its_beginning(recorded, tmp_path):
    path = tmp_path / "runs.sqlite"
    recorded.instrument()

    async def leave_waiting():
        payer = agent(act("pay", amount=3), tools=[pay], store=store)
        with trace.get_tracer("app").start_as_current_span("request"):
            run = payer.start("Pay.")
            async for event in run.watch():
                if getattr(event, "needs_approval", False):
                    break
        return run.id

    with TicketStore(path) as store:
        run_id = asyncio.run(asyncio.wait_for(leave_waiting(), 60))
    began = recorded.named("invoke_agent clerk").context
    command = [sys.executable, "-c", GOES_ON.format(path=sys.path), path, run_id]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    (went_on,) = [
        span
        for span in map(json.loads, told.stdout.replace("\n}\n", "\n}\0").split("\0")[:-1])
        if span["name"] == "invoke_agent clerk"
    ]
    (link,) = went_on["links"]
    assert int(link["context"]["trace_id"], 16) == began.trace_id
    assert int(link["context"]["span_id"], 16) == began.span_id
    assert int(went_on["context"]["trace_id"], 16) != began.trace_id
    with TicketStore(path) as store:
        run = store.run(run_id)
        started = run.log[0]
        header = f"00-{began.trace_id:032x}-{began.span_id:016x}-"
        assert started.traceparent.startswith(header)
        assert replay(run).export() == run.export()
        # The log goes on saying so when it is compacted, and where it is imported.
        store.compact(run_id)
        copy = TicketStore()
        copied = copy.run(copy.import_run(store.run(run_id).export()))
        recorded.exporter.clear()
        otel.spans(copied, tracer_provider=recorded.tracers)
        kept = recorded.named("invoke_agent clerk")
        assert kept.links[0].context.span_id == began.span_id
        assert kept.start_time == round(started.at * 1e9)
        assert kept.end_time >= kept.start_time
        assert kept.attributes["callslip.stop_reason"] == "finished"


def test_without_telemetry_a_log_names_no_trace():
    run = agent(finish("x")).run_sync("Go.").run
    assert "traceparent" not in run.export()
    assert run.log[0].traceparent is None


def test_a_span_that_is_not_recorded_is_not_named(recorded):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    otel.instrument(tracer_provider=TracerProvider(ALWAYS_OFF), meter_provider=recorded.meters)
    assert agent(finish("x")).run_sync("Go.").run.log[0].traceparent is None


def test_a_child_run_is_below_its_ticket_and_has_no_link(recorded):
    recorded.instrument()
    script = [delegate("inner"), give("inner answer"), wait("T1"), give("x")]
    run = Agent(ScriptedModel(script), protocol="ticket", name="clerk", delegate=True).run_sync("x")
    assert all(span.links == () for span in recorded.spans)
    (child,) = run.run.children
    assert child.log[0].traceparent.split("-")[1] == run.run.log[0].traceparent.split("-")[1]


def test_runs_below_a_compacted_one_are_below_it(recorded):
    script = [delegate("inner"), give("inner answer"), wait("T1"), give("x")]
    with TicketStore() as store:
        options = {"protocol": "ticket", "name": "clerk", "delegate": True, "store": store}
        run = Agent(ScriptedModel(script), **options).run_sync("x").run
        store.compact(run.id)
        otel.spans(store.run(run.id), tracer_provider=recorded.tracers)
    above, below = (one for one in recorded.spans if one.name == "invoke_agent clerk")
    assert (above.parent, below.parent.span_id) == (None, above.context.span_id)


def test_nothing_is_recorded_any_more(recorded):
    recorded.instrument()
    otel.uninstrument()
    agent(finish("x")).run_sync("Go.")
    assert recorded.spans == []


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("method", ["on_start", "on_end"])
def test_a_fault_of_a_processor_ends_no_run(recorded, caplog, driver, method):
    class Faulty(SpanProcessor):
        pass

    def fault(*_, **__):
        raise RuntimeError("a fault of telemetry")

    setattr(Faulty, method, fault)
    recorded.tracers.add_span_processor(Faulty())
    recorded.instrument()
    result = DRIVERS[driver](agent(act("look", what="x"), finish("x")), "Go.")
    assert result.value == "x"
    told = [one.getMessage() for one in caplog.records if one.name == "callslip.otel"]
    assert told == [f"the spans of run {result.run.id} cannot be recorded"]


def test_spans_need_a_run():
    with pytest.raises(UsageError, match=r"expected a run: got 'x'; pass"):
        otel.spans("x")


def test_names_are_those_of_the_convention():
    known = json.loads((Path(__file__).parents[2] / "data" / "gen_ai_names.json").read_text())
    ours = {value for name, value in vars(_names).items() if name.isupper()}
    theirs = {one for one in ours if isinstance(one, str) and one.startswith("gen_ai.")}
    assert theirs <= set(known["names"])
    assert otel.SCHEMA_URL.endswith(known["version"])


def test_the_exporter_of_the_sdk_sends_them_over_http():
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    received = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    provider = TracerProvider()
    address = f"http://127.0.0.1:{server.server_port}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(address)))
    try:
        otel.instrument(tracer_provider=provider)
        agent(act("look", what="x"), finish("x")).run_sync("Go.")
        provider.shutdown()
    finally:
        otel.uninstrument()
        server.shutdown()
        server.server_close()
    spans = [
        span
        for request in received
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    names = ["chat", "chat", "execute_tool look", "invoke_agent clerk"]
    assert sorted(one.name for one in spans) == names
    root = next(one for one in spans if one.name.startswith("invoke"))
    assert {one.parent_span_id for one in spans if one is not root} == {root.span_id}
