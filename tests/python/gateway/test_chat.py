"""Chat completions through a gateway."""

from __future__ import annotations

import base64
import json

import openai
import pytest

from callslip import ModelReply, ScriptedModel
from callslip.testing import Say
from gateways import (
    CITY,
    HINT,
    LOOK,
    USER,
    WEATHER,
    act,
    called,
    chat,
    finish,
    function,
    opened,
    prompt,
    send,
    tool_requests,
)
from pictures import png
from scripted import block

PNG = png(2, 2)
CALL = act("get_weather", thought=LOOK, city="Oslo")
END = finish("It is cold.")
OSLO = [("get_weather", {"city": "Oslo"})]


def client(address, **options):
    return openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0, **options)


def test_the_sdk_gets_calls_and_an_answer():
    with opened([CALL, END]) as (address, model):
        messages = [USER]
        asked = {"model": "m", "tools": [WEATHER]}
        reply = client(address).chat.completions.create(messages=messages, **asked)
        (call,) = reply.choices[0].message.tool_calls
        assert reply.choices[0].finish_reason == "tool_calls"
        assert reply.choices[0].message.content is None
        assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Oslo"}')
        assert len(call.id) == 9
        assert call.id.isalnum()
        messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id}]
        messages[-1]["content"] = "4 degrees"
        reply = client(address).chat.completions.create(messages=messages, **asked)
        assert reply.choices[0].message.content == "It is cold."
        assert reply.choices[0].finish_reason == "stop"
        told = [(one["role"], one["content"]) for one in model.requests[1].messages]
        assert told[-3:] == [
            ("user", "Weather in Oslo?"),
            ("assistant", CALL),
            ("user", "Observation: 4 degrees"),
        ]


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_the_sdk_reads_a_stream_of_calls_and_an_answer(chunk_size):
    with opened(ScriptedModel([CALL, END], chunk_size=chunk_size)) as (address, _):
        asked = {"model": "m", "tools": [WEATHER], "messages": [USER]}
        with client(address).chat.completions.stream(
            **asked, stream_options={"include_usage": True}
        ) as stream:
            whole = stream.get_final_completion()
        (call,) = whole.choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Oslo"}')
        assert whole.choices[0].finish_reason == "tool_calls"
        with client(address).chat.completions.stream(**asked) as stream:
            whole = stream.get_final_completion()
        assert whole.choices[0].message.content == "It is cold."
        assert whole.choices[0].finish_reason == "stop"


def test_the_sdk_raises_for_invalid_replies_and_does_not_repeat_the_request():
    with opened(["no", "no"], max_violations=1) as (address, model):
        patient = openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=2)
        with pytest.raises(openai.UnprocessableEntityError) as raised:
            patient.chat.completions.create(model="m", messages=[USER], tools=[WEATHER])
        assert raised.value.code == "invalid_model_output"
        assert len(model.requests) == 2
        with pytest.raises(openai.BadRequestError, match="expected n to be 1: got 2"):
            patient.chat.completions.create(model="m", messages=[USER], n=2)


def test_the_sdk_reads_typed_answers():
    schema = {"type": "object", "properties": {"t": {"type": "integer"}}, "required": ["t"]}
    form = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    with opened([finish({"t": "cold"}), finish({"t": 4})]) as (address, _):
        reply = client(address).chat.completions.create(
            model="m", messages=[USER], response_format=form
        )
        assert json.loads(reply.choices[0].message.content) == {"t": 4}


def test_models_are_listed():
    models = {"a": ScriptedModel(["A"], context=4096), "b": ScriptedModel(["B"])}
    with opened(models) as (address, _):
        listed = client(address).models.list().data
        assert [(one.id, one.owned_by, one.max_model_len) for one in listed] == [
            ("a", "callslip", 4096),
            ("b", "callslip", None),
        ]
        asked = {"messages": [USER]}
        reply = client(address).chat.completions.create(model="b", **asked)
        assert (reply.model, reply.choices[0].message.content) == ("b", "B")
        with pytest.raises(openai.NotFoundError, match="got 'c'; use one of a, b"):
            client(address).chat.completions.create(model="c", **asked)


PLAIN_OBJECT = {"type": "object"}
RECURSIVE = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/T"}},
    "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}},
}
DEFINED = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/City"}},
    "required": ["city"],
    "$defs": {
        "City": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }
    },
}
NULLABLE = {
    "type": "object",
    "properties": {"city": {"type": "string", "nullable": True}},
    "required": ["city"],
}
TYPED = {
    "type": "json_schema",
    "json_schema": {
        "name": "r",
        "schema": {
            "type": "object",
            "properties": {"t": {"type": "integer"}},
            "required": ["t"],
        },
    },
}
ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "auto",
        "tools": [{"type": "function", "function": {"name": "get_weather"}}],
    },
}
TWO_CALLS = [
    USER,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            called("a", "get_weather", {"city": "Oslo"}),
            called("b", "get_weather", {"city": "Rome"}),
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "20"},
    {"role": "tool", "tool_call_id": "a", "content": "4"},
]
ONE_CALL = [
    USER,
    {"role": "assistant", "tool_calls": [called("a", "get_weather", {"city": "Oslo"})]},
]
MANY = [WEATHER, *(function(f"tool_{n}", PLAIN_OBJECT) for n in range(127))]
TEXT_PARTS = [{"type": "text", "text": "Weather in Oslo?"}]

SERVED = {
    "plain call": ([CALL], {}, OSLO),
    "answer": ([END], {}, "It is cold."),
    "developer role": (
        [CALL],
        {"messages": [{"role": "developer", "content": "Be brief."}, USER]},
        OSLO,
    ),
    "content as parts": ([CALL], {"messages": [{"role": "user", "content": TEXT_PARTS}]}, OSLO),
    "dots in a tool name": (
        [act("weather.get", city="Oslo")],
        {"tools": [function("weather.get")]},
        [("weather.get", {"city": "Oslo"})],
    ),
    "a tool named FINISH": (
        [act("FINISH_", city="Oslo")],
        {"tools": [function("FINISH")]},
        [("FINISH", {"city": "Oslo"})],
    ),
    "a tool named final_answer": (
        [act("final_answer_", city="Oslo")],
        {"tools": [function("final_answer")]},
        [("final_answer", {"city": "Oslo"})],
    ),
    "no parameters key": (
        [act("ping")],
        {"tools": [{"type": "function", "function": {"name": "ping"}}]},
        [("ping", {})],
    ),
    "parameters without type": ([CALL], {"tools": [function("get_weather", {})]}, OSLO),
    "$defs and $ref": (
        [act("get_weather", city={"name": "Oslo"})],
        {"tools": [function("get_weather", DEFINED)]},
        [("get_weather", {"city": {"name": "Oslo"}})],
    ),
    "recursive schema": (
        [act("get_weather", city={"next": {}})],
        {"tools": [function("get_weather", RECURSIVE)]},
        [("get_weather", {"city": {"next": {}}})],
    ),
    "draft-04 nullable": ([CALL], {"tools": [function("get_weather", NULLABLE)]}, OSLO),
    "required, answers first": ([END, CALL], {"tool_choice": "required"}, OSLO),
    "named": (
        [act("b"), CALL],
        {
            "tools": [WEATHER, function("b", PLAIN_OBJECT)],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        },
        OSLO,
    ),
    "allowed tools": (
        [act("b"), CALL],
        {"tools": [WEATHER, function("b", PLAIN_OBJECT)], "tool_choice": ALLOWED},
        OSLO,
    ),
    "none": ([CALL, END], {"tool_choice": "none"}, "It is cold."),
    "no tools": (["It is cold."], {"tools": []}, "It is cold."),
    "typed answer": ([finish({"t": 4})], {"tools": [], "response_format": TYPED}, '{"t":4}'),
    "typed answer beside tools": ([finish({"t": 4})], {"response_format": TYPED}, '{"t":4}'),
    "call before a typed answer": ([CALL], {"response_format": TYPED}, OSLO),
    "required call before a typed answer": (
        [finish({"t": 4}), CALL],
        {"response_format": TYPED, "tool_choice": "required"},
        OSLO,
    ),
    "typed answer without calls": (
        [CALL, finish({"t": 4})],
        {"response_format": TYPED, "tool_choice": "none"},
        '{"t":4}',
    ),
    "any JSON object": (
        [finish([1]), finish({"a": 1})],
        {"tools": [], "response_format": {"type": "json_object"}},
        '{"a":1}',
    ),
    "two calls side by side": ([END], {"messages": TWO_CALLS}, "It is cold."),
    "a result that looks like a call": (
        [END],
        {"messages": [*ONE_CALL, {"role": "tool", "tool_call_id": "a", "content": CALL}]},
        "It is cold.",
    ),
    "calls without tools": (
        [END],
        {
            "tools": [],
            "messages": [*ONE_CALL, {"role": "tool", "tool_call_id": "a", "content": "4"}],
        },
        "It is cold.",
    ),
    "empty user message": ([END], {"messages": [{"role": "user", "content": ""}]}, "It is cold."),
    "only a system message": (
        [END],
        {"messages": [{"role": "system", "content": "Hi"}]},
        "It is cold.",
    ),
    "unknown tool, then right": ([act("get_wether", city="Oslo"), CALL], {}, OSLO),
    "duplicate key, then right": (
        [CALL.replace('{"city"', '{"city": "X", "city"'), CALL],
        {},
        OSLO,
    ),
    "cut, then right": ([CALL[:-9], CALL], {}, OSLO),
    "Hermes form, then right": (
        [
            '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>',
            CALL,
        ],
        {},
        OSLO,
    ),
    "call in a fence, then right": (
        ['```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```', CALL],
        {},
        OSLO,
    ),
    "plain text, then FINISH": (["It is cold in Oslo.", END], {}, "It is cold."),
    "128 tools": ([CALL], {"tools": MANY}, OSLO),
    "instructions with braces": (
        [CALL],
        {"messages": [{"role": "system", "content": "Use {tools} and {x} {{y}}."}, USER]},
        OSLO,
    ),
    "stop sequence": ([finish("It is. cold")], {"stop": "."}, "It is"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("case", SERVED)
def test_requests_are_served(case, streamed):
    replies, body, due = SERVED[case]
    sent = chat(replies, **({"tools": [WEATHER]} | body), stream=streamed)
    assert sent.status == 200, sent.text
    if streamed:
        assert sent.text.endswith("data: [DONE]\n\n")
        deltas = [event["choices"][0]["delta"] for event in sent.events]
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        content = "".join(delta.get("content") or "" for delta in deltas)
        made = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]
        assert (made or content) == due
        assert sent.events[-1]["choices"][0]["finish_reason"] == ("tool_calls" if made else "stop")
    else:
        assert (sent.calls or sent.message["content"]) == due
        assert sent.headers["x-callslip-attempts"] == str(len(replies))
    sent.model.assert_done()


ASSISTANT = {"role": "assistant", "content": "It is"}
REFUSED = {
    "two tools of one name": ({"tools": [WEATHER, WEATHER]}, "got get_weather twice"),
    "the engine's name beside a schema": (
        {"tools": [function("final_answer")], "response_format": TYPED},
        "got final_answer",
    ),
    "prefill": ({"messages": [USER, ASSISTANT]}, "got one of the assistant"),
    "no message": ({"messages": []}, "got no message"),
    "n": ({"n": 2}, "expected n to be 1: got 2"),
    "logprobs": ({"logprobs": True}, "expected no logprobs"),
    "functions": ({"functions": [{}]}, "pass them as tools"),
    "audio": ({"audio": {"voice": "a"}}, "answers are text"),
    "too many tools": ({"tools": [*MANY, function("x")]}, "at most 128 tools: got 129"),
    "unknown tool in the choice": (
        {"tool_choice": {"type": "function", "function": {"name": "x"}}},
        "got 'x'",
    ),
    "unknown choice": ({"tool_choice": "any"}, "expected tool_choice to be 'auto'"),
    "custom tool": ({"tools": [{"type": "custom"}]}, "expected tools[0].type"),
    "remote reference": (
        {"tools": [function("a", {"type": "object", "properties": {"x": {"$ref": "http://a"}}})]},
        "http://a",
    ),
    "not a schema": ({"tools": [function("a", {"type": "objekt"})]}, "objekt"),
    "unknown role": ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    "result of no call": (
        {"messages": [USER, {"role": "tool", "tool_call_id": "z", "content": "4"}]},
        "messages[1].tool_call_id",
    ),
    "image for a model of text": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image_url",
                            "image_url": {
                                "url": "data:image/png;base64," + base64.b64encode(PNG).decode()
                            },
                        }
                    ],
                }
            ]
        },
        "a part of the kind image",
    ),
    "image by its address": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "http://a/b.png"}}],
                }
            ]
        },
        "nothing is fetched",
    ),
    "response format": ({"response_format": {"type": "xml"}}, "response_format.type"),
    "temperature of limits": ({"max_tokens": 0}, "expected max_tokens to be a whole number"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_requests_are_refused_with_a_hint(case, streamed):
    body, due = REFUSED[case]
    sent = chat([], **({"tools": [WEATHER]} | body), stream=streamed)
    assert sent.status == 400, sent.text
    assert due in sent.error
    assert HINT.search(sent.error)
    assert sent.body["error"]["type"] == "invalid_request_error"
    assert sent.headers["x-should-retry"] == "false"
    assert sent.model.requests == []


def test_images_are_passed_to_models_that_take_them():
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    content = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]
    model = ScriptedModel([END, "plain"], parts=("image",))
    for tools in ([WEATHER], []):
        sent = chat(model, messages=[{"role": "user", "content": content}], tools=tools)
        assert sent.status == 200, sent.text
        (part,) = sent.model.requests[-1].messages[-1]["parts"]
        assert part.data == PNG


def test_a_model_that_never_follows_the_protocol_is_an_error():
    for streamed in (False, True):
        sent = chat(["no json"] * 4, tools=[WEATHER], stream=streamed)
        assert sent.status == 422
        assert sent.body["error"]["code"] == "invalid_model_output"
        assert "no json" not in sent.text


def test_results_are_told_in_the_order_of_their_calls():
    sent = chat([END], messages=TWO_CALLS, tools=[WEATHER])
    assert prompt(sent)[-4:] == [
        ("assistant", act("get_weather", thought=LOOK, city="Oslo")),
        ("user", "Observation: 4"),
        ("assistant", act("get_weather", thought=LOOK, city="Rome")),
        ("user", "Observation: 20"),
    ]


def test_chatty_makes_several_calls_in_a_reply():
    both = block(("a", "get_weather", {"city": "Oslo"}), ("b", "get_weather", {"city": "Rome"}))
    for streamed in (False, True):
        sent = chat([both], tools=[WEATHER], stream=streamed, options={"protocol": "chatty"})
        if streamed:
            deltas = [event["choices"][0]["delta"] for event in sent.events]
            calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
            assert [call["index"] for call in calls] == [0, 1]
        else:
            calls = sent.message["tool_calls"]
        assert len({call["id"] for call in calls}) == 2
        assert [json.loads(call["function"]["arguments"]) for call in calls] == [
            {"city": "Oslo"},
            {"city": "Rome"},
        ]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("protocol", ["react", "chatty"])
def test_choices_hold_in_every_face_and_protocol(protocol, path):
    say = Say(protocol)
    call, end = say.call("f"), say.finish("It is cold.")
    modes = {"required": ([end, call], True), "none": ([call, end], False)}
    for mode, (replies, is_call) in modes.items():
        (_, body, _) = next(
            one for one in tool_requests({"type": "object"}, streamed=False) if one[0] == path
        )
        words = {"required": "any", "none": "none"}
        choice = {"type": words[mode]} if path == "/v1/messages" else mode
        sent = send(replies, {**body, "tool_choice": choice}, path, protocol=protocol)
        assert sent.status == 200, sent.text
        assert ("It is cold." in sent.text) != is_call
        sent.model.assert_done()


def test_a_plain_request_goes_to_the_model_as_it_is():
    replies = [ModelReply("It is", "length", {"input_tokens": 7, "output_tokens": 2})]
    sent = chat(replies, max_tokens=2, seed=-1, stop=["x"])
    assert sent.message["content"] == "It is"
    assert sent.body["choices"][0]["finish_reason"] == "length"
    assert sent.body["usage"]["total_tokens"] == 9
    assert prompt(sent) == [("user", "Weather in Oslo?")]
    options = sent.model.requests[0].options
    assert options == {"max_tokens": 2, "seed": 2**32 - 1, "stop": ["x"]}


def test_usage_is_the_sum_of_all_attempts():
    used = {"input_tokens": 10, "output_tokens": 3, "cached_tokens": 4}
    replies = [ModelReply(text, "stop", used) for text in ("no", CALL)]
    sent = chat(replies, tools=[WEATHER])
    assert sent.body["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 6,
        "total_tokens": 26,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    assert sent.headers["x-callslip-attempts"] == "2"


def test_the_third_equal_call_in_a_row_is_the_last():
    pair = [ONE_CALL[1], {"role": "tool", "tool_call_id": "a", "content": "4"}]
    sent = chat([CALL, END], messages=[USER, *pair * 3], tools=[WEATHER])
    assert sent.message["content"] == "It is cold."
    sent = chat([CALL], messages=[USER, *pair * 2], tools=[WEATHER])
    assert sent.calls == OSLO


def test_bodies_that_are_no_requests_are_refused():
    for raw, status in ((b"{", 400), (b"[]", 400), (b"\xff", 400), (b'{"messages": 1}', 400)):
        assert send([], raw=raw).status == status
    sent = send([], raw=b" " * (32 * 2**20 + 1))
    assert (sent.status, sent.body["error"]["code"]) == (413, "request_too_large")
    sent = send([], {}, "/v1/embeddings")
    assert sent.status == 404
    assert "/v1/chat/completions" in sent.error


def test_tokens_are_counted():
    path = "/v1/chat/completions/input_tokens"
    plain = send([], {"model": "m", "messages": [USER]}, path).body["input_tokens"]
    tools = send([], {"model": "m", "messages": [USER], "tools": [WEATHER]}, path)
    assert 3 < plain < 20 < tools.body["input_tokens"]


def test_only_clients_with_the_key_are_served():
    token = "a-token-that-is-long-enough-for-this"
    options = {"token": token}
    assert chat([], options=options).status == 401
    for headers in ({"Authorization": f"Bearer {token}"}, {"x-api-key": token}):
        assert chat(["Hi."], options=options, headers=headers).status == 200
    for headers in ({"Authorization": f"Bearer {token}x"}, {"x-api-key": ""}, {"Host": "evil.com"}):
        assert chat([], options=options, headers=headers).status in {401, 421}
    assert chat([], headers={"Origin": "http://evil.com"}).status == 403


def test_a_failing_service_is_passed_on():
    class UpstreamError(Exception):
        def __init__(self, status):
            self.status_code = status
            self.response = type("R", (), {"headers": {"retry-after": "7"}, "status_code": status})

    for tools in ([], [WEATHER]):
        for given, status, wait in ((429, 429, "7"), (503, 503, "7"), (401, 502, None)):
            sent = chat([UpstreamError(given)], tools=tools)
            assert (sent.status, sent.headers.get("retry-after")) == (status, wait)
            assert "UpstreamError" not in sent.text


def test_a_stream_that_fails_midway_ends_with_an_error():
    def model(messages):
        yield "It is "
        raise RuntimeError("secret")

    sent = chat(model, stream=True)
    assert sent.status == 200
    assert sent.events[1]["choices"][0]["delta"] == {"content": "It is "}
    assert sent.events[-1]["error"]["code"] == "model_failed"
    assert "secret" not in sent.text
    assert "[DONE]" not in sent.text


def grammar_model(*replies):
    """A model that a grammar holds to the protocol, and that streams."""
    left = list(replies)

    def model(messages, *, grammar: object = None):
        yield from left.pop(0)

    return model


def test_an_answer_is_sent_while_it_is_written():
    answer = "It is cold in Oslo, and it will be colder in the evening, as each year."
    written = finish(answer)
    sent = chat(grammar_model(written), tools=[WEATHER], stream=True)
    pieces = [event["choices"][0]["delta"].get("content") for event in sent.events]
    pieces = [piece for piece in pieces if piece]
    assert "".join(pieces) == answer
    assert len(pieces) > 10
    sent = chat(grammar_model(written), tools=[WEATHER], stream=True, options={"stream": "whole"})
    pieces = [event["choices"][0]["delta"].get("content") for event in sent.events]
    assert [piece for piece in pieces if piece] == [answer]


def test_an_answer_that_becomes_invalid_after_its_beginning_is_an_error():
    written = finish("word " * 30)
    sent = chat(grammar_model(written[:-8], CALL), tools=[WEATHER], stream=True)
    assert sent.status == 200
    assert sent.events[-1]["error"]["code"] == "invalid_model_output"
    assert "get_weather" not in sent.text


def test_reasoning_stands_beside_the_answer():
    replies = [ModelReply(END, reasoning="Hm."), ModelReply("plain", reasoning="Hm.")]
    for tools in ([WEATHER], []):
        sent = chat([replies[0 if tools else 1]], tools=tools)
        assert sent.message["reasoning_content"] == "Hm."


def test_a_schema_of_the_answer_needs_no_wrapping():
    # One property of the name that the engine itself uses.
    schema = {"type": "object", "properties": {"answer": CITY}, "required": ["answer"]}
    form = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    sent = chat([finish({"answer": {"city": "Oslo"}})], response_format=form)
    assert sent.message["content"] == '{"answer":{"city":"Oslo"}}'
