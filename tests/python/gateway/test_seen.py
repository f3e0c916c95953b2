"""What the operator of a gateway sees: repairs, runs in the store and spans."""

from __future__ import annotations

import logging

import pytest

from callslip import ModelReply, ScriptedModel, TicketStore
from gateway_faces import FACES, Asking, Got, Step, ask
from gateways import CITY, act, finish
from optional import require

require("opentelemetry.sdk.trace")

WEATHER = ("get_weather", CITY)
DAYS = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
CALL = act("get_weather", city="Oslo")
END = finish("It is cold.")

both = pytest.mark.parametrize("streamed", [False, True])
faces = pytest.mark.parametrize("path", FACES)


@both
@faces
def test_repairs_coercions_and_violations_are_named_without_texts(path, streamed, caplog):
    caplog.set_level(logging.INFO, "callslip.gateway")
    call = '{"thought": "x", "action": "plan", "args": {"days": "3",}}'
    replies = ["secret words", f"```json\n{call}\n```"]
    asking = Asking(tools=[("plan", DAYS)])
    got, sent = ask(replies, asking, path, streamed=streamed, verbose=True)
    assert got.calls == (("plan", '{"days":3}'),)
    named = sent.headers["x-callslip-repairs"].split(", ")
    assert "trailing_comma" in named
    assert "coerced plan/days" in named
    assert "refused no_action" in named
    assert sent.headers["x-callslip-attempts"] == "2"
    (line,) = [one.getMessage() for one in caplog.records if "attempts: 2" in one.getMessage()]
    assert line.endswith(sent.headers["x-callslip-repairs"])
    assert "secret" not in caplog.text
    _, sent = ask(replies, asking, path, streamed=streamed)
    assert "x-callslip-repairs" not in sent.headers


@both
@faces
def test_a_clean_reply_has_no_header(path, streamed):
    _, sent = ask([CALL], Asking(tools=[WEATHER]), path, streamed=streamed, verbose=True)
    assert "x-callslip-repairs" not in sent.headers


TEXTS = ["It is cold.", "  It is cold.\n", '{"a": 1}', "", "\n", "<think>a</think>b", "a\n\nb"]


@both
@faces
@pytest.mark.parametrize("chunk_size", [None, 3])
@pytest.mark.parametrize("text", TEXTS)
def test_a_request_without_tools_is_answered_as_it_came_and_kept(
    tmp_path, path, streamed, text, chunk_size
):
    def scripted():
        return ScriptedModel([ModelReply(text, "stop", reasoning="Hm.")], chunk_size=chunk_size)

    steps = [Step("user", "Hi"), Step("answer", "Hello."), Step("user", "Cold?")]
    asking = Asking(steps=steps, system="Be brief.", max_tokens=9)
    due = Got(200, text, (), "stop")
    got, sent = ask(scripted(), asking, path, streamed=streamed)
    assert got == due
    with TicketStore(tmp_path / "runs.sqlite") as store:
        got, kept = ask(scripted(), asking, path, streamed=streamed, store=store)
        assert got == due
        (stored,) = store.runs()
        run = store.run(stored.run_id)
        assert [one["content"] for one in run.messages][1:4] == ["Hi", "Hello.", "Cold?"]
        assert "Cold?" in run.to_html()
    for one in (sent, kept):
        (request,) = one.model.requests
        assert [(m["role"], m["content"]) for m in request.messages] == [
            ("system", "Be brief."),
            ("user", "Hi"),
            ("assistant", "Hello."),
            ("user", "Cold?"),
        ]
        assert request.options == {"max_tokens": 9}


@both
@faces
@pytest.mark.parametrize("tools", [[WEATHER], []])
def test_each_request_has_a_span_above_its_run(path, streamed, tools):
    from callslip import otel
    from recorded_spans import Recorded

    used = {"input_tokens": 10, "output_tokens": 3, "cached_tokens": 4}
    reply = ModelReply(CALL if tools else "Cold.", "stop", used)
    recorded = Recorded()
    recorded.instrument()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    try:
        got, _ = ask(
            ["no", reply] if tools else [reply],
            Asking(tools=tools, max_tokens=50),
            path,
            streamed=streamed,
            headers={"traceparent": trace},
        )
        assert got.status == 200
        failed, _ = ask(["no"], Asking(tools=[WEATHER]), path, max_violations=0)
        assert failed.status == 422
    finally:
        otel.uninstrument()
    first, second = [one for one in recorded.spans if one.kind.name == "SERVER"]
    assert first.name == "chat ScriptedModel"
    assert format(first.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    about = dict(first.attributes)
    assert about == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "ScriptedModel",
        "gen_ai.request.stream": streamed,
        "gen_ai.request.max_tokens": 50,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.response.finish_reasons": ("tool_calls" if tools else "stop",),
        "callslip.attempts": 2 if tools else 1,
    }
    runs = [one for one in recorded.spans if one.name.startswith("invoke_agent")]
    assert [one.parent.span_id for one in runs] == [first.context.span_id, second.context.span_id]
    assert second.attributes["error.type"] == "invalid_model_output"
    assert second.status.status_code.name == "ERROR"


@pytest.mark.parametrize("method", ["on_start", "on_end"])
def test_a_fault_of_telemetry_ends_no_request(method, caplog):
    from opentelemetry.sdk.trace import SpanProcessor

    from callslip import otel
    from recorded_spans import Recorded

    class Faulty(SpanProcessor):
        pass

    def fault(*_, **__):
        raise RuntimeError("a fault of telemetry")

    setattr(Faulty, method, fault)
    recorded = Recorded()
    recorded.tracers.add_span_processor(Faulty())
    recorded.instrument()
    try:
        got, _ = ask([CALL], Asking(tools=[WEATHER]), FACES[0])
    finally:
        otel.uninstrument()
    assert got.calls
    assert "the span of a request cannot be recorded" in caplog.text
