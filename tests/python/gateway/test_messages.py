"""Anthropic's messages through a gateway."""

from __future__ import annotations

import json

import anthropic
import pytest

from callslip import ModelReply, ScriptedModel
from gateways import CITY, HINT, LOOK, USER, act, finish, opened, prompt, send

CALL = act("get_weather", thought=LOOK, city="Oslo")
END = finish("It is cold.")
WEATHER = {"name": "get_weather", "description": "d", "input_schema": CITY}


def client(address):
    return anthropic.Anthropic(base_url=address, api_key="x", max_retries=0)


def ask(replies, *, messages=(USER,), headers=None, **body):
    whole = {"model": "m", "max_tokens": 300, "messages": list(messages), **body}
    return send(replies, whole, "/v1/messages", headers=headers)


def results(message):
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": "4 degrees"}
        for block in message.content
        if block.type == "tool_use"
    ]


@pytest.mark.parametrize("chunk_size", [None, 5])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_sdk_gets_calls_and_an_answer(streamed, chunk_size):
    with opened(ScriptedModel([CALL, END], chunk_size=chunk_size)) as (address, model):
        messages = [USER]

        def create():
            asked = {"model": "m", "max_tokens": 300, "messages": messages, "tools": [WEATHER]}
            if not streamed:
                return client(address).messages.create(**asked)
            with client(address).messages.stream(**asked) as stream:
                return stream.get_final_message()

        message = create()
        assert message.stop_reason == "tool_use"
        (block,) = message.content
        assert (block.name, block.input) == ("get_weather", {"city": "Oslo"})
        messages += [
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": results(message)},
        ]
        message = create()
        assert message.stop_reason == "end_turn"
        assert message.content[0].text == "It is cold."
        told = [(one["role"], one["content"]) for one in model.requests[1].messages]
        assert told[-3:] == [
            ("user", "Weather in Oslo?"),
            ("assistant", CALL),
            ("user", "Observation: 4 degrees"),
        ]


def test_the_sdk_raises_for_invalid_replies_and_wrong_requests():
    with opened(["no", "no"], max_violations=1) as (address, model):
        patient = anthropic.Anthropic(base_url=address, api_key="x", max_retries=2)
        asked = {"model": "m", "max_tokens": 300, "messages": [USER]}
        with pytest.raises(anthropic.UnprocessableEntityError, match="follows the protocol"):
            patient.messages.create(**asked, tools=[WEATHER])
        assert len(model.requests) == 2
        with pytest.raises(anthropic.BadRequestError, match="nothing is called for the client"):
            patient.messages.create(**asked, extra_body={"mcp_servers": [{}]})


@pytest.mark.parametrize(
    ("choice", "replies", "due"),
    [
        ({"type": "any"}, [END, CALL], "tool_use"),
        ({"type": "tool", "name": "get_weather"}, [END, CALL], "tool_use"),
        ({"type": "none"}, [CALL, END], "end_turn"),
        ({"type": "auto", "disable_parallel_tool_use": True}, [END], "end_turn"),
    ],
)
def test_choices_hold(choice, replies, due):
    sent = ask(replies, tools=[WEATHER], tool_choice=choice)
    assert sent.body["stop_reason"] == due
    sent.model.assert_done()


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_has_the_type_of_its_schema(streamed):
    schema = {"type": "object", "properties": {"t": {"type": "integer"}}, "required": ["t"]}
    config = {"format": {"type": "json_schema", "schema": schema}}
    sent = ask([finish("x"), finish({"t": 4})], output_config=config, stream=streamed)
    if streamed:
        deltas = [event["delta"] for event in sent.events if "delta" in event]
        assert "".join(delta.get("text", "") for delta in deltas) == '{"t":4}'
    else:
        assert json.loads(sent.body["content"][0]["text"]) == {"t": 4}


def test_blocks_become_texts_results_and_instructions():
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    use = {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "a", "is_error": True}
    result["content"] = [{"type": "text", "text": "no net"}]
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    messages = [
        USER,
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "Let me see."}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "Well?"}]},
    ]
    sent = ask([END], messages=messages, system=system, tools=[WEATHER])
    assert prompt(sent)[0][1].rstrip().endswith("Be brief.")
    call = json.loads(CALL) | {"thought": "Let me see."}
    assert prompt(sent)[-2:] == [
        ("assistant", json.dumps(call)),
        ("user", "Observation: Error: no net\n\nWell?"),
    ]


def test_tools_of_the_service_are_left_out_and_named():
    tools = [{"type": "web_search_20250305", "name": "web_search"}, WEATHER]
    for streamed in (False, True):
        sent = ask([CALL], tools=tools, stream=streamed)
        assert sent.headers["x-callslip-left-out"] == "web_search_20250305"
        assert "web_search" not in prompt(sent)[0][1]


def test_usage_says_what_was_cached():
    used = {"input_tokens": 10, "output_tokens": 3, "cached_tokens": 4}
    sent = ask([ModelReply(CALL, "stop", used)], tools=[WEATHER])
    counted = sent.body["usage"]
    assert (counted["input_tokens"], counted["cache_read_input_tokens"]) == (6, 4)
    sent = ask([ModelReply("It is", "length", used)])
    assert sent.body["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_is_thinking_without_a_signature(streamed):
    sent = ask([ModelReply("Cold.", reasoning="Hm.")], stream=streamed)
    if streamed:
        kinds = [e["content_block"]["type"] for e in sent.events if "content_block" in e]
        assert kinds == ["thinking", "text"]
    else:
        assert [one["type"] for one in sent.body["content"]] == ["thinking", "text"]


@pytest.mark.parametrize(
    ("body", "due"),
    [
        ({"tool_choice": {"type": "tool", "name": "x"}}, "got 'x'"),
        ({"tool_choice": {"type": "x"}}, "tool_choice.type"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "messages[0].content[0]"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
        ({"output_config": {"format": {"type": "x"}}}, "output_config.format.type"),
    ],
)
def test_requests_are_refused_with_a_hint(body, due):
    sent = ask([], **({"tools": [WEATHER]} | body))
    assert sent.status == 400
    assert sent.body["type"] == "error"
    assert sent.body["error"]["type"] == "invalid_request_error"
    assert due in sent.error
    assert HINT.search(sent.error)


def test_tokens_are_counted():
    body = {"model": "m", "messages": [USER], "tools": [WEATHER]}
    assert send([], body, "/v1/messages/count_tokens").body["input_tokens"] > 20


def test_a_stream_that_fails_midway_ends_with_an_error():
    def model(messages):
        yield "It is "
        raise RuntimeError("secret")

    sent = ask(model, stream=True)
    assert sent.events[-1] == {
        "type": "error",
        "error": {
            "type": "api_error",
            "message": "the model failed: the log of the server says why",
        },
    }
