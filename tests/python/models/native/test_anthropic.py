"""Anthropic's messages with tools, through its own library, against a service on this machine."""

import asyncio
import json

import pytest

from callslip import ModelError, ModelRefused, UsageError, as_model
from callslip.models._items import ToolChoice
from native_scenes import ASK, OSLO, SCENES, THOUGHT, TOOLS, Asking, followed, joined, ways
from optional import optional_module
from services.anthropic import AnthropicService, arguments_of, signature
from services.loopback import running

anthropic = optional_module("anthropic")
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(scope="module")
def service():
    with running(AnthropicService()) as service:
        yield service


@pytest.fixture(scope="module")
def asking():
    with asyncio.Runner() as runner:
        yield Asking(runner)


@pytest.fixture(scope="module")
def clients(service, asking):
    options = {"base_url": service.base, "api_key": "k", "max_retries": 0}
    sync, own = anthropic.Anthropic(**options), anthropic.AsyncAnthropic(**options)
    yield {False: sync, True: own}
    sync.close()
    asking._runner.run(own.close())


@pytest.fixture
def model(clients):
    return as_model(clients[False], model="m")


def expected(scene):
    made = []
    for item in scene.reply:
        if item[0] == "text":
            made.append({"text": item[1]})
        elif item[0] == "think":
            data = {"anthropic": {"signature": signature(item[1])}}
            made.append({"reasoning": item[1], "data": data})
        elif item[0] == "call":
            made.append(dict(zip(("call", "tool", "arguments"), item[1:], strict=True)))
            made[-1] |= {"data": None, "whole": not scene.is_cut}
    return made


@pytest.mark.parametrize("way", ways(1, 3, 1000), ids=str)
@pytest.mark.parametrize("name", SCENES)
def test_each_scene_is_read_and_goes_on(service, clients, asking, name, way):
    scene, (is_async, split) = SCENES[name], way
    # `stream=False` is for replies of text.
    model = as_model(clients[is_async], model="m", stream=split != 3)
    service.begin(scene.reply, [("text", "Done.")], split=split, mixed=split == 1)
    if scene.is_refused:
        with pytest.raises(ModelRefused, match="I can't help with that"):
            asking(model, ASK)
        return
    answer = asking(model, ASK)
    made = joined(answer.items)
    assert made == expected(scene)
    assert answer.finish == ("length" if scene.is_cut else "stop")
    assert answer.usage == {"input_tokens": 12, "output_tokens": 5, "cached_tokens": 4}
    assert joined(asking(model, followed(scene, made)).items) == [{"text": "Done."}]
    check_sent_back(scene, service.bodies[-1]["messages"])
    assert service.bodies[0]["tools"] == service.bodies[1]["tools"]


def check_sent_back(scene, messages):
    assert [one["role"] for one in messages] == ["user", "assistant", "user"]
    sent = [one for one in messages[1]["content"] if one["type"] == "tool_use"]
    results = [one for one in messages[2]["content"] if one["type"] == "tool_result"]
    calls = [] if scene.is_cut else scene.calls
    assert [one["id"] for one in sent] == [one["tool_use_id"] for one in results]
    assert [one["content"] for one in results] == [f"result {at}" for at in range(len(calls))]
    assert [at for at, one in enumerate(results) if one.get("is_error")] == list(scene.fails)
    assert messages[2]["content"][-1] == {"type": "text", "text": "Go on."}
    for at, (call, block) in enumerate(zip(calls, sent, strict=True)):
        assert block["name"] == call[2].replace(".", "_")
        if at in scene.unreadable or scene.repeats:
            assert block["input"] == {"INVALID_JSON": call[3]}
        else:
            assert json.loads(arguments_of(block)) == json.loads(call[3] or "{}")


def test_the_request_is_in_the_words_of_the_service(service, asking, model):
    service.begin([("text", "Hi.")])
    asking(model, ASK, max_tokens=99, stop=["END", " "])
    (body,) = service.bodies
    assert body["tools"] == [
        {
            "name": "forecast",
            "description": "Tell the weather.",
            "input_schema": TOOLS[0].parameters,
        },
        {
            "name": "transfer",
            "description": "Send money.",
            "input_schema": TOOLS[1].parameters,
            "strict": True,
        },
        {"name": "bell", "input_schema": TOOLS[2].parameters},
    ]
    assert body["system"] == "Be brief."
    assert (body["stream"], body["max_tokens"]) == (True, 99)
    assert body["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(), {"type": "auto"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("required", "bell"), {"type": "tool", "name": "bell"}),
        (ToolChoice("none", parallel=False), {"type": "none"}),
        (
            ToolChoice("required", parallel=False),
            {"type": "any", "disable_parallel_tool_use": True},
        ),
    ],
    ids=str,
)
def test_choices(service, clients, asking, choice, sent):
    service.begin([("text", "Hi.")])
    for thinking in ({}, {"thinking": {"type": "adaptive"}}, {"thinking": THINKING}):
        asking(as_model(clients[False], model="m", **thinking), ASK, tool_choice=choice)
    free = {name: value for name, value in sent.items() if name != "name"}
    # With thinking that is always on, the service refuses to force a call.
    free["type"] = "auto" if choice.mode == "required" else sent["type"]
    assert [body["tool_choice"] for body in service.bodies] == [sent, sent, free]


def test_a_run_without_tools_has_no_choice(service, asking, model):
    service.begin([("text", "Hi.")])
    asking(model, ASK, tools=[])
    assert not service.bodies[0].keys() & {"tools", "tool_choice"}


def test_thinking_comes_back_verbatim(service, clients, asking):
    model = as_model(clients[False], model="m", thinking=THINKING)
    reply = [("think", THOUGHT), ("redacted", "a/b+c=="), ("think", ""), ("text", "So.")]
    service.begin([*reply, ("call", "a", "bell", "{}")], [("text", "Done.")])
    made = joined(asking(model, ASK).items)
    assert [one.get("reasoning") for one in made[:3]] == [THOUGHT, "", ""]
    # The data does not repeat the text.
    assert THOUGHT[:5] not in json.dumps([one.get("data") for one in made])
    asking(model, followed(SCENES["one call"], made))
    assert service.bodies[1]["messages"][1]["content"][:4] == [
        {"type": "thinking", "thinking": THOUGHT, "signature": signature(THOUGHT)},
        {"type": "redacted_thinking", "data": "EmwK+a/b+c=="},
        {"type": "thinking", "thinking": "", "signature": signature("")},
        {"type": "text", "text": "So."},
    ]
    assert service.bodies[1]["thinking"] == THINKING


@pytest.mark.parametrize("data", [None, {"responses": {"id": "rs_1"}}], ids=str)
def test_a_turn_without_its_thinking_is_answered_without_any(service, clients, asking, data):
    model = as_model(clients[False], model="m", thinking=THINKING)
    service.begin([("text", "Done.")])
    call = {"call": "a", "tool": "bell", "arguments": "{}", "data": data}
    made = [{"reasoning": "of another service", "data": data}, call]
    asking(model, followed(SCENES["one call"], made), tool_choice=ToolChoice("required"))
    (body,) = service.bodies
    assert "thinking" not in body
    assert body["tool_choice"] == {"type": "any"}


def test_reasoning_alone_is_left_out(service, asking, model):
    service.begin([("think", "hm")], [("text", "Done.")])
    made = joined(asking(model, ASK).items)
    assert [one["reasoning"] for one in made] == ["hm"]
    asking(model, followed(SCENES["one call"], made))
    told = [{"type": "text", "text": text} for text in ("What's the weather?", "Go on.")]
    assert service.bodies[1]["messages"] == [{"role": "user", "content": told}]


@pytest.mark.parametrize("is_async", [False, True])
def test_thinking_that_is_refused_is_left_out_once(service, clients, asking, is_async):
    model = as_model(clients[is_async], model="m", thinking=THINKING)
    scene = SCENES["reasoning"]
    service.begin(scene.reply, [("text", "Done.")])
    messages = followed(scene, joined(asking(model, ASK).items))
    service.unbound = True
    assert joined(asking(model, messages).items) == [{"text": "Done."}]
    assert len(service.bodies) == 3
    assert [one["type"] for one in service.bodies[2]["messages"][1]["content"]] == ["tool_use"]


def test_another_refusal_is_raised_at_once(service, asking, model):
    service.begin([("text", "Hi.")])
    bad = {"call": "a", "tool": "bell", "arguments": "{}", "data": None}
    with pytest.raises(anthropic.BadRequestError, match="no `tool_result`"):
        asking(model, [*ASK, {"role": "assistant", "content": "", "items": [bad]}])
    assert len(service.bodies) == 1


def test_blank_texts_and_results_are_not_sent(service, asking, model):
    service.begin([("text", "Hi.")])
    own = [{"text": "\n"}, {"call": "a", "tool": "bell", "arguments": " ", "data": None}]
    told = [{"result": "a", "tool": "bell", "content": " \n", "error": False}, {"text": ""}]
    asking(
        model,
        [
            {"role": "system", "content": " "},
            {"role": "assistant", "content": "Welcome."},
            {"role": "assistant", "content": "", "items": own},
            {"role": "user", "content": "", "items": told},
        ],
    )
    (body,) = service.bodies
    assert "system" not in body
    hello, mine, last = body["messages"]
    assert hello == {"role": "user", "content": [{"type": "text", "text": "Hello."}]}
    call = {"type": "tool_use", "id": "a", "name": "bell", "input": {}}
    assert mine["content"] == [{"type": "text", "text": "Welcome."}, call]
    assert last["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_that_breaks_off_is_cut(service, clients, asking, is_async):
    service.begin([("text", "So."), ("call", "a", "forecast", OSLO), ("broken",)])
    answer = asking(as_model(clients[is_async], model="m"), ASK)
    assert answer.finish == "length"
    assert joined(answer.items)[1]["whole"] is False


def test_the_last_call_of_a_cut_reply_is_a_part(service, asking, model):
    service.begin([("call", "a", "forecast", OSLO), ("call", "b", "forecast", OSLO), ("cut",)])
    assert [call["whole"] for call in joined(asking(model, ASK).items)] == [True, False]


def test_thinking_without_a_signature_is_not_sent_back(asking):
    blocks = [
        {"type": "thinking", "thinking": "a", "signature": ""},
        {"type": "thinking", "thinking": "b", "signature": "s"},
        {"type": "text", "text": "So."},
    ]

    sent = []

    def create(*, model, messages, stop_sequences=None, **options):
        sent.append(messages)
        return {"type": "message", "content": blocks, "stop_reason": "end_turn"}

    model = as_model(create, model="m")
    made = joined(asking(model, ASK).items)
    assert [one.get("data") for one in made] == [{}, {"anthropic": {"signature": "s"}}, None]
    asking(model, followed(SCENES["one call"], made))
    assert sent[1][1]["content"] == blocks[1:]


def test_tools_of_the_service_are_not_mixed_with_those_of_a_run(service, clients, asking, model):
    own = as_model(clients[False], model="m", tools=[{"type": "web_search_20250305"}])
    with pytest.raises(UsageError, match="expected the tools of the agent alone: got tools="):
        asking(own, ASK)
    service.begin([("text", "Wait."), ("pause",)])
    with pytest.raises(ModelError, match="its service has paused for tools of its own"):
        asking(model, ASK)


def test_a_client_that_does_not_stream_is_read_too(asking):
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "So."},
        {"type": "tool_use", "id": "a", "name": "forecast", "input": {"city": "Ås"}},
    ]
    usage = {"input_tokens": 3, "output_tokens": 2}

    def create(*, model, messages, stop_sequences=None, **options):
        return {"type": "message", "content": blocks, "stop_reason": "tool_use", "usage": usage}

    answer = asking(as_model(create, model="m"), ASK)
    assert joined(answer.items) == [
        {"reasoning": "hm", "data": {"anthropic": {"signature": "s"}}},
        {"text": "So."},
        {"call": "a", "tool": "forecast", "arguments": '{"city": "Ås"}', "data": None}
        | {"whole": True},
    ]
    assert (answer.finish, answer.usage) == ("stop", usage)


@pytest.mark.parametrize("wrong", [{"type": "error", "error": {"message": "busy"}}, "<html>", 5])
def test_what_is_no_message_is_refused(asking, wrong):
    def create(*, model, messages, stop_sequences=None, **options):
        return iter([wrong])

    with pytest.raises(ModelError, match=r"reported an error: busy|expected a message of Anth"):
        asking(as_model(create, model="m"), ASK)


def test_input_that_comes_with_its_block(asking):
    block = {"type": "tool_use", "id": "a", "name": "forecast", "input": {"city": "Oslo"}}
    events = [
        {"type": "content_block_start", "index": 1, "content_block": block},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_stop", "index": 7},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "what_comes_one_day"},
    ]

    def create(*, model, messages, stop_sequences=None, **options):
        return iter(events)

    (call,) = joined(asking(as_model(create, model="m"), ASK).items)
    assert call["arguments"] == OSLO
