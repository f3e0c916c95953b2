"""Models that take tools themselves, checked by a gateway."""

from __future__ import annotations

import pytest

from callslip import ModelReply, ScriptedModel, TicketStore, UsageError, as_model
from callslip.gateway import gateway
from callslip.models import NativeCall, ToolChoice
from gateway_faces import FACES, Asking, Got, Step, ask
from gateways import CITY, act, opened
from optional import optional_module

WEATHER = ("get_weather", CITY)
CLOCK = ("get_time", {"type": "object", "properties": {}})


def reply(*calls, text="", reason="stop"):
    made = [NativeCall(f"call_{at}", tool, given) for at, (tool, given) in enumerate(calls)]
    return ModelReply(text, reason, calls=made)


OSLO = ("get_weather", '{"city": "Oslo"}')
RIGHT = Got(200, "", (("get_weather", '{"city":"Oslo"}'),), "calls")


def asked(replies, path, streamed, **more):
    options = {"protocol": "native", **more.pop("options", {})}
    asking = Asking(**{"tools": [WEATHER], **more})
    return ask(replies, asking, path, streamed=streamed, **options)


both = pytest.mark.parametrize("streamed", [False, True])
faces = pytest.mark.parametrize("path", FACES)


@both
@faces
@pytest.mark.parametrize("chunk_size", [None, 3])
def test_calls_and_the_text_before_them_reach_the_client(path, streamed, chunk_size):
    model = ScriptedModel(
        [reply(OSLO, ("get_time", ""), text="Let me look.")], chunk_size=chunk_size
    )
    got, _ = asked(model, path, streamed, tools=[WEATHER, CLOCK])
    calls = (("get_weather", '{"city":"Oslo"}'), ("get_time", "{}"))
    assert got == Got(200, "Let me look.", calls, "calls")
    assert [form.name for form in model.requests[0].options["tools"]] == ["get_weather", "get_time"]


WRONG = {
    "unknown tool": reply(("get_wether", '{"city": "Oslo"}')),
    "missing argument": reply(("get_weather", "{}")),
    "wrong type": reply(("get_weather", '{"city": ["Oslo"]}')),
    "duplicate key": reply(("get_weather", '{"city": "Rome", "city": "Oslo"}')),
    "no JSON": reply(("get_weather", "Oslo")),
    "cut": reply(("get_weather", '{"city": "Os')),
    "NaN": reply(("get_weather", '{"city": NaN}')),
    "one wrong of two": reply(OSLO, ("get_weather", '{"town": "Rome"}')),
    "call in the text": reply(
        text='<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    ),
    "empty": ModelReply(""),
}


@both
@faces
@pytest.mark.parametrize("name", WRONG)
def test_no_unchecked_call_reaches_a_client(path, streamed, name):
    model = ScriptedModel([WRONG[name], reply(OSLO, text="Now right.")])
    got, _ = asked(model, path, streamed)
    assert got == RIGHT._replace(text="Now right.")
    assert len(model.requests) == 2
    last, _ = asked([WRONG[name]], path, streamed, options={"max_violations": 0})
    assert (last.status, last.calls, last.text) == (422, (), "")


@both
@faces
def test_the_model_receives_the_conversation_of_the_client_and_what_was_refused(path, streamed):
    steps = [
        Step("user", "Weather?"),
        Step("calls", "Let me see.", (("get_weather", {"city": "Rome"}, "20 degrees"),)),
        Step("user", "And in Oslo?"),
    ]
    model = ScriptedModel([reply(("get_weather", "{}")), reply(OSLO)])
    got, _ = asked(model, path, streamed, steps=steps, system="Be brief.")
    assert got == RIGHT
    first, second = (request.messages for request in model.requests)
    assert first[0] == {"role": "system", "content": "Be brief."}
    assert first[1]["content"] == "Weather?"
    (said, call), (result, text) = (message["items"] for message in first[2:])
    assert said == {"text": "Let me see."}
    assert (call["tool"], call["arguments"]) == ("get_weather", '{"city": "Rome"}') or (
        call["arguments"] == '{"city":"Rome"}'
    )
    assert (result["result"], result["content"]) == (call["call"], "20 degrees")
    assert text == {"text": "And in Oslo?"}
    assert second[: len(first)] == first
    refused, feedback = second[len(first) :]
    assert refused["items"][0]["arguments"] == "{}"
    assert feedback["items"][0]["error"] is True
    assert "city" in feedback["items"][0]["content"]


@faces
@pytest.mark.parametrize(
    ("choice", "replies", "due"),
    [
        ("required", [ModelReply("Cold."), reply(OSLO)], RIGHT),
        (("get_weather",), [reply(("get_time", "")), reply(OSLO)], RIGHT),
        ("none", [reply(OSLO), ModelReply("Cold.")], Got(200, "Cold.", (), "stop")),
    ],
)
def test_choices_hold_and_all_tools_are_sent(path, choice, replies, due):
    model = ScriptedModel(replies)
    got, _ = asked(model, path, streamed=False, tools=[WEATHER, CLOCK], choice=choice)
    assert got == due
    for request in model.requests:
        assert [one.name for one in request.options["tools"]] == ["get_weather", "get_time"]
        offered = request.options["tool_choice"]
        tool = choice[0] if isinstance(choice, tuple) else None
        mode = "required" if tool else choice
        assert offered == ToolChoice(mode, tool, offered.parallel)


@both
@faces
def test_one_call_alone_if_the_client_wants_one(path, streamed):
    model = ScriptedModel([reply(OSLO, ("get_time", "")), reply(OSLO)])
    got, _ = asked(model, path, streamed, tools=[WEATHER, CLOCK], parallel=False, choice="auto")
    assert got == RIGHT
    assert model.requests[0].options["tool_choice"].parallel is False


@both
@faces
def test_typed_answers_are_calls_of_a_tool_inside(path, streamed):
    schema = {"type": "object", "properties": {"t": {"type": "integer"}}, "required": ["t"]}
    replies = [
        reply(("final_answer", '{"answer": {"t": "cold"}}')),
        reply(("final_answer", '{"answer": {"t": 4}}')),
    ]
    got, _ = asked(replies, path, streamed, schema=schema)
    assert got == Got(200, '{"t":4}', (), "stop")


@both
@faces
@pytest.mark.parametrize(
    "name", ["weather.get", "FINISH", "call_tool", "final_answer", "wetter für"]
)
def test_names_that_services_refuse_are_written_otherwise_inside(path, streamed, name):
    steps = [
        Step("user", "Weather?"),
        Step("calls", "", ((name, {"city": "Rome"}, "20"),)),
        Step("user", "Oslo?"),
    ]

    class Model:
        model = "m"
        accepts = frozenset({"tools", "tool_choice"})

        def __call__(self, messages, *, tools, tool_choice):
            (form,) = tools
            assert form.name.isascii()
            assert "." not in form.name
            assert " " not in form.name
            (call,) = messages[1]["items"]
            assert call["tool"] == form.name
            return reply((form.name, '{"city": "Oslo"}'))

    got, _ = asked(Model(), path, streamed, steps=steps, tools=[(name, CITY)])
    assert got == Got(200, "", ((name, '{"city":"Oslo"}'),), "calls")


def test_a_model_without_tools_is_refused_at_the_start():
    def model(messages):
        return "x"

    with pytest.raises(UsageError, match="a model that takes tools"):
        gateway(model, protocol="native")


@both
@faces
def test_each_request_is_a_run_that_shows_the_conversation(tmp_path, path, streamed):
    steps = [
        Step("user", "Weather?"),
        Step("calls", "", (("get_weather", {"city": "Rome"}, "20 degrees"),)),
    ]
    with TicketStore(tmp_path / "runs.sqlite") as store:
        options = {"store": store}
        got, _ = asked(
            [reply(("x", "{}")), ModelReply("Warm.")], path, streamed, steps=steps, options=options
        )
        assert got == Got(200, "Warm.", (), "stop")
        (stored,) = store.runs()
        run = store.run(stored.run_id)
        assert run.violations == 1
        page = run.to_html()
        assert "20 degrees" in page
        assert "Warm." in page


def test_a_wrapped_model_is_retried_inside():
    from callslip import Retrying

    failing = ScriptedModel([ConnectionError("down"), reply(OSLO)])
    got, _ = asked(Retrying(failing, tries=2, backoff=0), FACES[0], streamed=False)
    assert got == RIGHT


@both
@faces
def test_a_server_with_openais_interface_is_checked(path, streamed):
    openai = optional_module("openai")
    steps = [
        Step("user", "Weather?"),
        Step("calls", "", (("get_weather", {"city": "Rome"}, "20 degrees"),)),
        Step("user", "And in Oslo?"),
    ]
    with (
        opened([act("get_weather", city="Oslo")]) as (address, inner),
        openai.OpenAI(base_url=f"{address}/v1", api_key="x") as server,
    ):
        got, _ = asked(as_model(server, model="m"), path, streamed, steps=steps)
    assert got == RIGHT
    told = [one["content"] for one in inner.requests[0].messages[-3:]]
    assert told[0] == "Weather?"
    assert told[2] == "Observation: 20 degrees\n\nAnd in Oslo?"
