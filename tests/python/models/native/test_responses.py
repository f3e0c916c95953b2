"""OpenAI's responses with tools, through its own library, against a service on this machine."""

import asyncio
import json

import pytest

from callslip import ModelError, ModelRefused, UsageError, as_model
from callslip.models._items import ToolChoice
from native_scenes import ASK, OSLO, SCENES, THOUGHT, TOOLS, Asking, followed, joined, ways
from optional import optional_module
from services.loopback import running
from services.responses import ResponsesService, encrypted

openai = optional_module("openai")
ENCRYPTED = ["reasoning.encrypted_content"]


@pytest.fixture(scope="module")
def service():
    with running(ResponsesService()) as service:
        yield service


@pytest.fixture(scope="module")
def asking():
    with asyncio.Runner() as runner:
        yield Asking(runner)


@pytest.fixture(scope="module")
def clients(service, asking):
    options = {"base_url": f"{service.base}/v1", "api_key": "k", "max_retries": 0}
    sync, own = openai.OpenAI(**options), openai.AsyncOpenAI(**options)
    yield {False: sync, True: own}
    sync.close()
    asking._runner.run(own.close())


def model_of(clients, *, is_async=False, **options):
    return as_model(clients[is_async].responses.create, model="m", **options)


@pytest.fixture
def model(clients):
    return model_of(clients)


def expected(scene):
    made, behind = [], None
    for at, item in enumerate(scene.reply):
        if item[0] == "text":
            made.append({"text": item[1]})
        elif item[0] == "think":
            behind = f"rs_1_{at}"
            data = {"id": behind, "encrypted_content": encrypted(item[1])}
            data["summary"] = [len(line) for line in item[1].splitlines(keepends=True)]
            made.append({"reasoning": item[1], "data": {"responses": data}})
        elif item[0] == "call":
            made.append(dict(zip(("call", "tool", "arguments"), item[1:], strict=True)))
            data = {"id": f"fc_1_{at}"} | ({"after": behind} if behind else {})
            made[-1] |= {"data": {"responses": data}, "whole": not scene.is_cut}
    return made


@pytest.mark.parametrize("way", ways(None, 1, 3, 1000), ids=str)
@pytest.mark.parametrize("name", SCENES)
def test_each_scene_is_read_and_goes_on(service, clients, asking, name, way):
    scene, (is_async, split) = SCENES[name], way
    model = model_of(clients, is_async=is_async, stream=split is not None)
    service.begin(scene.reply, [("text", "Done.")], split=split or 0, mixed=split == 1)
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
    first, second = service.bodies
    check_sent_back(scene, second["input"])
    assert first["tools"] == second["tools"]
    assert second["input"][: len(first["input"])] == first["input"]


def check_sent_back(scene, sent):
    calls = [] if scene.is_cut else scene.calls
    own = [item for item in sent if item.get("type") == "function_call"]
    results = [item for item in sent if item.get("type") == "function_call_output"]
    assert [one["call_id"] for one in own] == [one["call_id"] for one in results]
    assert all("id" in one for one in own)
    for at, (call, item, result) in enumerate(zip(calls, own, results, strict=True)):
        assert item["name"] == call[2].replace(".", "_")
        assert result["output"] == f"error: result {at}" if at in scene.fails else f"result {at}"
        if at in scene.unreadable:
            assert json.loads(item["arguments"]) == {"INVALID_JSON": call[3]}
        else:
            assert item["arguments"] == (call[3] or "{}")
    assert sent[-1] == {"role": "user", "content": "Go on."}


def test_the_request_is_in_the_words_of_the_service(service, clients, asking):
    service.begin([("text", "Hi.")])
    model = model_of(clients, include=["message.input_image.image_url"], temperature=0)
    asking(model, ASK, max_tokens=99, stop=["END"], seed=1)
    (body,) = service.bodies
    names = [(tool["name"], tool["strict"]) for tool in body["tools"]]
    assert names == [("forecast", False), ("transfer", True), ("bell", False)]
    assert [tool["parameters"] for tool in body["tools"]] == [one.parameters for one in TOOLS]
    assert (body["store"], body["max_output_tokens"], body["temperature"]) == (False, 99, 0)
    assert body["include"] == ["message.input_image.image_url", *ENCRYPTED]
    assert body["input"] == ASK
    assert "parallel_tool_calls" not in body


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(), "auto"),
        (ToolChoice("required"), "required"),
        (ToolChoice("required", "bell", parallel=False), {"type": "function", "name": "bell"}),
        (ToolChoice("none"), "none"),
    ],
    ids=str,
)
def test_choices(service, asking, model, choice, sent):
    service.begin([("text", "Hi.")])
    asking(model, ASK, tool_choice=choice)
    (body,) = service.bodies
    assert body["tool_choice"] == sent
    assert body.get("parallel_tool_calls", True) is choice.parallel


def test_a_run_without_tools_has_no_choice(service, clients, asking):
    service.begin([("text", "Hi.")])
    asking(model_of(clients, store=None), ASK, tools=[])
    assert not service.bodies[0].keys() & {"tools", "tool_choice", "store"}


def test_reasoning_comes_back_with_what_it_preceded(service, asking, model):
    reply = [("think", THOUGHT), ("text", "So."), ("think", "b"), ("call", "a", "bell", "{}")]
    service.begin(reply, [("text", "Done.")])
    made = joined(asking(model, ASK).items)
    # The data does not repeat the text.
    assert THOUGHT[:5] not in json.dumps([one.get("data") for one in made])
    asking(model, followed(SCENES["one call"], made))
    summary = [{"type": "summary_text", "text": text} for text in THOUGHT.splitlines(keepends=True)]
    assert service.bodies[1]["input"][2:6] == [
        {"type": "reasoning", "id": "rs_1_0", "summary": summary}
        | {"encrypted_content": encrypted(THOUGHT)},
        {"role": "assistant", "content": "So."},
        {"type": "reasoning", "id": "rs_1_2", "summary": [{"type": "summary_text", "text": "b"}]}
        | {"encrypted_content": encrypted("b")},
        {"type": "function_call", "call_id": "a", "name": "bell", "id": "fc_1_3"}
        | {"arguments": "{}"},
    ]


def test_an_item_id_goes_with_its_reasoning_and_stands_once(service, asking, model):
    service.begin(SCENES["reasoning"].reply, [("text", "Done.")])
    made = joined(asking(model, ASK).items)
    # A cut turn, or one of a conversation that was put together again.
    messages = followed(SCENES["one call"], made[1:])
    twice = followed(SCENES["one call"], made)[2:]
    asking(model, [*messages, *twice, *twice])
    calls = [one for one in service.bodies[1]["input"] if one.get("type") == "function_call"]
    assert [one.get("id") for one in calls] == [None, "fc_1_1", None]
    assert len({one["call_id"] for one in calls}) == 3


def test_reasoning_alone_is_left_out(service, asking, model):
    service.begin([("think", "hm")], [("text", "Done.")])
    asking(model, followed(SCENES["one call"], joined(asking(model, ASK).items)))
    assert service.bodies[1]["input"] == [*ASK, {"role": "user", "content": "Go on."}]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_without_reasoning_is_not_asked_for_it_again(service, clients, asking, is_async):
    model = model_of(clients, is_async=is_async)
    service.begin([("think", "hm"), ("call", "a", "bell", "{}")], [("text", "Done.")])
    service.reasons = False
    made = joined(asking(model, ASK).items)
    assert made[0] == {"reasoning": "hm", "data": {}}
    asking(model, followed(SCENES["one call"], made))
    assert [body.get("include") for body in service.bodies] == [ENCRYPTED, None, None]


@pytest.mark.parametrize("is_async", [False, True])
def test_reasoning_that_is_refused_is_left_out_once(service, clients, asking, is_async):
    model, scene = model_of(clients, is_async=is_async), SCENES["reasoning"]
    service.begin(scene.reply, [("text", "Done.")])
    messages = followed(scene, joined(asking(model, ASK).items))
    service.unbound = True
    assert joined(asking(model, messages).items) == [{"text": "Done."}]
    assert len(service.bodies) == 3
    call = {"type": "function_call", "call_id": "call_A", "name": "forecast", "arguments": OSLO}
    assert service.bodies[2]["input"][2] == call


def test_another_refusal_is_raised_at_once(service, clients, asking, model):
    service.begin([("text", "Hi.")])
    service.reasons = False
    with pytest.raises(openai.BadRequestError, match="not supported with this model"):
        asking(model_of(clients, include=ENCRYPTED), ASK)
    bad = {"call": "a", "tool": "bell", "arguments": "{}", "data": None}
    with pytest.raises(openai.BadRequestError, match="No tool output found"):
        asking(model, [*ASK, {"role": "assistant", "content": "", "items": [bad]}])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_that_breaks_off_is_cut(service, clients, asking, is_async):
    service.begin([("text", "So."), ("call", "a", "forecast", OSLO), ("broken",)])
    answer = asking(model_of(clients, is_async=is_async), ASK)
    assert answer.finish == "length"
    assert [one.get("text") for one in joined(answer.items)] == ["So.", None]


def test_a_filter_and_a_failure(asking):
    response = {"object": "response", "output": [], "status": "incomplete"}
    filtered = {**response, "incomplete_details": {"reason": "content_filter"}}
    with pytest.raises(ModelRefused, match="content_filter"):
        asking(as_model(answering(filtered), model="m"), ASK)
    failed = {**response, "status": "failed", "error": {"message": "out of order"}}
    for result in (failed, iter([{"type": "response.failed", "response": failed}])):
        with pytest.raises(ModelError, match="out of order"):
            asking(as_model(answering(result), model="m"), ASK)


def answering(result):
    def create(*, model, input, **options):  # noqa: A002  # the service's name
        return result

    return create


@pytest.mark.parametrize(
    "wrong",
    [{"error": {"message": "busy"}}, {"type": 5}, iter(["x"]), iter([{"a": 1}])],
    ids=["an error", "a type", "a text", "an event"],
)
def test_what_is_no_response_is_refused(asking, wrong):
    with pytest.raises(ModelError, match="reported an error: busy|expected a response of OpenAI"):
        asking(as_model(answering(wrong), model="m"), ASK)


@pytest.mark.parametrize("wrong", ["<html>", "", None])
def test_a_page_in_place_of_a_reply_is_refused(asking, wrong):
    class Responses:
        _client = object()

        def create(self, *, model, input, **options):  # noqa: A002  # the service's name
            return wrong

    with pytest.raises(ModelError, match="expected (JSON|a JSON object) from the model's server"):
        asking(as_model(Responses().create, model="m"), ASK)


def test_tools_of_the_service_are_not_mixed_with_those_of_a_run(clients, asking):
    own = model_of(clients, tool_choice="auto")
    with pytest.raises(UsageError, match="expected the tools of the agent alone: got tool_choice="):
        asking(own, ASK)


def test_servers_that_give_less(asking):
    call = {"type": "function_call", "call_id": "a", "name": "forecast", "arguments": OSLO}
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    thought["content"] = [{"type": "reasoning_text", "text": "hm"}]
    whole = {"object": "response", "status": "completed", "output": [thought, call]}
    events = [
        {"type": "response.created", "response": {}},
        {"type": "response.what_comes_one_day"},
        {"type": "what_comes_one_day"},
        {"type": "response.completed", "response": whole},
    ]
    read = joined(asking(as_model(answering(iter(events)), model="m"), ASK).items)
    assert read == [
        {"reasoning": "hm", "data": {"responses": {"id": "rs", "content": [2]}}},
        {"call": "a", "tool": "forecast", "arguments": OSLO, "whole": True}
        | {"data": {"responses": {"after": "rs"}}},
    ]
    # Both events of one reasoning: one of them is read.
    place = {"output_index": 0}
    events = [
        {"type": "response.reasoning_text.delta", "delta": "h", **place},
        {"type": "response.reasoning_summary_text.delta", "delta": "short", **place},
        {"type": "response.output_item.done", "item": thought, **place},
        {"type": "response.function_call_arguments.delta", "delta": "{", "output_index": 1},
        {"type": "response.output_item.done", "item": call, "output_index": 1},
        {"type": "response.completed", "response": whole},
    ]
    assert joined(asking(as_model(answering(iter(events)), model="m"), ASK).items) == read
    sent = []

    def create(*, model, input, **options):  # noqa: A002  # the service's name
        sent.append(input)
        return whole

    asking(as_model(create, model="m"), followed(SCENES["one call"], read))
    assert sent[0][2] == thought
