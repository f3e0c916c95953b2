"""What telemetry records of runs with the model's own tool calls."""

import json

import pytest

from callslip import Agent, ModelReply, ScriptedModel, TicketStore, otel, tool
from callslip.models import NativeCall
from callslip.models._items import CallItem, FaultItem, ReasoningItem, TextItem
from callslip.otel._content import messages_json, reply_json

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"4 degrees in {city}"


def run(*replies, **options):
    agent = Agent(ScriptedModel(replies), protocol="native", tools=[weather], **options)
    return agent.run_sync("How is Oslo?").run


def replied(recorded):
    return [
        json.loads(span.attributes["gen_ai.output.messages"])[0]
        for span in recorded.spans
        if "gen_ai.output.messages" in span.attributes
    ]


def call(arguments, id="a"):  # noqa: A002
    return NativeCall(id, "weather", arguments)


CALLS = ModelReply("Look.", calls=[call('{"city": "Oslo"}'), call("[1]", "b")])
PARTS = [
    {"type": "text", "content": "Look."},
    {"type": "tool_call", "id": "a", "name": "weather", "arguments": {"city": "Oslo"}},
    {"type": "tool_call", "id": "b", "name": "weather", "arguments": "[1]"},
]


def test_calls_and_results_are_parts(recorded):
    recorded.instrument(content=True)
    run(CALLS, ModelReply(calls=[call('{"city": "Rome"}', "c")]), "4 degrees")

    first, second, last = replied(recorded)
    assert first == {"role": "assistant", "parts": PARTS, "finish_reason": first["finish_reason"]}
    (part,) = second["parts"]
    assert part["arguments"] == {"city": "Rome"}
    assert last["parts"] == [{"type": "text", "content": "4 degrees"}]
    (span,) = [one for one in recorded.spans if one.name.startswith("invoke_agent")]
    told = json.loads(span.attributes["gen_ai.input.messages"])
    assert [one["role"] for one in told] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert told[0]["parts"] == [{"type": "text", "content": "How is Oslo?"}]
    assert told[1]["parts"] == PARTS
    refused = told[2]["parts"]
    assert [part["id"] for part in refused] == ["a", "b"]
    assert {part["type"] for part in refused} == {"tool_call_response"}
    assert told[4]["parts"] == [
        {"type": "tool_call_response", "id": "c", "result": "4 degrees in Rome"}
    ]


def test_a_kept_run_has_the_same_parts(recorded, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        kept = run(CALLS, "4 degrees", store=store)
        otel.spans(store.run(kept.id), tracer_provider=recorded.tracers, content=True)

    assert replied(recorded)[0]["parts"] == PARTS


def test_secrets_are_masked_and_data_is_left_out(recorded):
    recorded.instrument(content=True)
    data = {"service": {"signature": "c2lnbmF0dXJl"}}
    items = (
        ReasoningItem("I look.", data),
        CallItem(0, "", "weather", json.dumps({"city": SECRET}), data, is_whole=True),
    )
    run(ModelReply(items=items), "4 degrees")

    text = "".join(span.to_json() for span in recorded.spans)
    assert SECRET not in text
    assert "c2lnbmF0dXJl" not in text
    reasoning, made = replied(recorded)[0]["parts"]
    assert reasoning == {"type": "reasoning", "content": "I look."}
    assert made["id"] is None
    assert set(made["arguments"]) == {"city"}


def test_a_reply_that_was_cut_is_told_as_far_as_it_came(recorded):
    recorded.instrument(content=True)
    run(ModelReply("", "length", calls=[call('{"city": "Os')]), "4 degrees")

    (part,) = replied(recorded)[0]["parts"]
    assert part == {"type": "tool_call", "id": "a", "name": "weather", "arguments": '{"city": "Os'}


@pytest.mark.parametrize("until", range(1, 80))
def test_any_part_of_a_reply_can_be_told(until):
    line = '{"call":"a","tool":"weather","arguments":"{\\"c\\": \\"\\u00e9\\"}","data":{"a":1}}\n'
    (message,) = json.loads(reply_json(line[:until], "length", has_items=True))

    assert all(part["type"] in ("text", "tool_call") for part in message["parts"])


def test_a_fault_of_the_service_is_text(recorded):
    recorded.instrument(content=True)
    items = (TextItem("Look."), FaultItem("tool_use_failed", "<function=x>"))
    run(ModelReply(items=items), "4 degrees")

    assert replied(recorded)[0]["parts"] == [
        {"type": "text", "content": "Look."},
        {"type": "text", "content": "tool_use_failed\n<function=x>"},
    ]


def test_words_behind_results_are_a_message_of_the_user():
    results = {"result": "a", "tool": "weather", "content": "4", "error": False}
    message = {"role": "user", "content": "", "items": [results, {"text": "Go on."}]}

    assert [one["role"] for one in json.loads(messages_json([message]))] == ["tool", "user"]
