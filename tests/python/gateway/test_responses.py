"""OpenAI's responses through a gateway."""

from __future__ import annotations

import json

import openai
import pytest

from callslip import ModelReply, ScriptedModel
from gateways import CITY, HINT, LOOK, USER, act, finish, opened, prompt, send

CALL = act("get_weather", thought=LOOK, city="Oslo")
END = finish("It is cold.")
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "d",
    "parameters": CITY,
    "strict": False,
}


def client(address):
    return openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0)


def ask(replies, **body):
    return send(replies, {"model": "m", "input": [USER], **body}, "/v1/responses")


@pytest.mark.parametrize("chunk_size", [None, 5])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_sdk_gets_calls_and_an_answer(streamed, chunk_size):
    with opened(ScriptedModel([CALL, END], chunk_size=chunk_size)) as (address, model):
        items = [USER]

        def create():
            asked = {"model": "m", "input": items, "tools": [WEATHER], "instructions": "Be brief."}
            if not streamed:
                return client(address).responses.create(**asked)
            with client(address).responses.stream(**asked) as stream:
                return stream.get_final_response()

        response = create()
        (call,) = response.output
        assert (call.type, call.name, call.arguments) == (
            "function_call",
            "get_weather",
            '{"city":"Oslo"}',
        )
        items += [call.to_dict()]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "4 degrees"}]
        response = create()
        assert response.status == "completed"
        assert response.output_text == "It is cold."
        told = [(one["role"], one["content"]) for one in model.requests[1].messages]
        assert told[0][1].rstrip().endswith("Be brief.")
        assert told[-3:] == [
            ("user", "Weather in Oslo?"),
            ("assistant", CALL),
            ("user", "Observation: 4 degrees"),
        ]


def test_the_events_of_a_stream_are_numbered_and_complete():
    sent = ask([ModelReply("Cold.", "length", reasoning="Hm.")], stream=True)
    assert [event["type"].removeprefix("response.") for event in sent.events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "incomplete",
    ]
    assert [event["sequence_number"] for event in sent.events] == list(range(len(sent.events)))
    assert [one["type"] for one in sent.events[-1]["response"]["output"]] == [
        "reasoning",
        "message",
    ]


def test_the_sdk_parses_typed_answers():
    from pydantic import BaseModel

    class Weather(BaseModel):
        t: int

    with opened([finish({"t": "cold"}), finish({"t": 4})]) as (address, _):
        response = client(address).responses.parse(model="m", input="Hi", text_format=Weather)
        assert response.output_parsed == Weather(t=4)


@pytest.mark.parametrize(
    ("choice", "replies", "kind"),
    [
        ("required", [END, CALL], "function_call"),
        ({"type": "function", "name": "get_weather"}, [END, CALL], "function_call"),
        ("none", [CALL, END], "message"),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get_weather"}],
            },
            [END, CALL],
            "function_call",
        ),
    ],
)
def test_choices_hold(choice, replies, kind):
    sent = ask(replies, tools=[WEATHER], tool_choice=choice)
    assert [one["type"] for one in sent.body["output"]] == [kind]
    sent.model.assert_done()


def test_tools_of_the_service_are_left_out_and_named():
    tools = [WEATHER, {"type": "web_search"}, {"type": "namespace", "name": "x"}]
    sent = ask([CALL], tools=tools)
    assert sent.headers["x-callslip-left-out"] == "web_search, namespace"


@pytest.mark.parametrize(
    ("body", "due"),
    [
        ({"previous_response_id": "r"}, "send the whole conversation"),
        ({"background": True}, "the answer comes with the request"),
        ({"input": [{"type": "x"}]}, "input[0].type"),
        ({"input": [{"role": "robot", "content": ""}]}, "input[0].role"),
        ({"text": {"format": {"type": "x"}}}, "text.format.type"),
        ({"input": []}, "got no message"),
    ],
)
def test_requests_are_refused_with_a_hint(body, due):
    sent = ask([], **body)
    assert sent.status == 400
    assert due in sent.error
    assert HINT.search(sent.error)


def test_items_become_texts_and_results():
    items = [
        {"type": "message", "role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "Weather in Oslo?"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me see."}],
        },
        {
            "type": "function_call",
            "call_id": "a",
            "name": "get_weather",
            "arguments": '{ "city" : "Oslo" }',
        },
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_text", "text": "4"}],
        },
    ]
    sent = ask([END], input=items, tools=[WEATHER])
    assert prompt(sent)[0][1].rstrip().endswith("Be kind.")
    call = json.loads(CALL) | {"thought": "Let me see."}
    assert prompt(sent)[-3:] == [
        ("user", "Weather in Oslo?"),
        ("assistant", json.dumps(call)),
        ("user", "Observation: 4"),
    ]


def test_a_result_of_no_call_is_a_message_of_the_user():
    items = [
        USER,
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "4"},
        {"type": "function_call_output", "name": "goal", "output": "warm"},
    ]
    sent = ask([END], input=items, tools=[WEATHER])
    assert prompt(sent)[-1] == ("user", "Observation: 4\n\ngoal: warm")


def test_a_stream_that_fails_midway_ends_with_a_failed_response():
    def model(messages):
        yield "It is "
        raise RuntimeError("secret")

    sent = ask(model, stream=True)
    assert sent.events[-1]["type"] == "response.failed"
    assert sent.events[-1]["response"]["error"]["code"] == "model_failed"
