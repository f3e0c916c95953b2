"""Whole runs with the tool calls of Anthropic and of OpenAI's responses."""

import asyncio
import json

import pytest

from callslip import Agent, Fallback, Image, Limits, ModelError, TicketStore, as_model, tool
from optional import optional_module
from pictures import png
from services.anthropic import AnthropicService, signature
from services.loopback import running
from services.responses import ResponsesService, encrypted

anthropic, openai = optional_module("anthropic"), optional_module("openai")
MADE = []
OSLO, PAY = '{"city": "Oslo"}', '{"sum": 5}'
TWO = [("call", "a", "forecast", OSLO), ("call", "b", "forecast", '{"city": "Rome"}')]
END = [("text", "Done.")]


@tool(repeatable=True)
def forecast(city: str) -> str:
    """Tell the weather."""
    MADE.append(("forecast", city))
    return f"4 degrees in {city}"


@tool(needs_approval=True)
def transfer(sum: float) -> str:  # noqa: A002
    """Send money."""
    MADE.append(("transfer", sum))
    return "sent"


@tool
def picture() -> Image:
    """Draw."""
    return Image(png(3, 4))


@pytest.fixture(scope="module")
def services():
    with running(AnthropicService()) as first, running(ResponsesService()) as second:
        # So no socket is left open at the end.
        first.keeps_open = second.keeps_open = False
        yield {"anthropic": first, "responses": second}


@pytest.fixture(autouse=True)
def _nothing_made():
    MADE.clear()


def model_of(services, name, *, is_async=False, **options):
    if name == "anthropic":
        make = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        client = make(base_url=services[name].base, api_key="k", max_retries=0)
        thinking = {"type": "enabled", "budget_tokens": 1024}
        return as_model(client, model="m", thinking=thinking, **options)
    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = make(base_url=f"{services[name].base}/v1", api_key="k", max_retries=0)
    return as_model(client.responses.create, model="m", **options)


def agent_of(model, *tools, **options):
    return Agent(model, protocol="native", tools=tools or [forecast], **options)


BOTH = pytest.mark.parametrize("name", ["anthropic", "responses"])


@BOTH
@pytest.mark.parametrize("is_async", [False, True])
def test_reasoning_two_calls_a_refusal_and_an_answer(services, name, is_async):
    script = [
        [("think", "hm"), ("text", "I look."), *TWO],
        [("think", "so"), ("call", "a", "forecast", '{"city": NaN}')],
        [("call", "c", "forecast", '{"city": "Os'), ("cut",)],
        [("think", "alone")],
        END,
    ]
    service = services[name]
    service.begin(*script)
    agent = agent_of(model_of(services, name, is_async=is_async), limits=Limits(max_violations=9))
    result = asyncio.run(agent.run("Do it.")) if is_async else agent.run_sync("Do it.")
    assert result.value == "Done."
    assert sorted(MADE) == [("forecast", "Oslo"), ("forecast", "Rome")]
    assert len(service.bodies) == 5
    assert len({json.dumps(body["tools"]) for body in service.bodies}) == 1
    # Each reply that was whole goes back with its reasoning.
    sent = json.dumps(service.bodies[-1])
    proofs = signature if name == "anthropic" else encrypted
    assert [proofs(text) in sent for text in ("hm", "so")] == [True, True]


@BOTH
def test_an_approved_call(services, name):
    service = services[name]
    service.begin([("think", "hm"), ("call", "a", "transfer", PAY)], END)
    agent = agent_of(model_of(services, name), transfer)
    assert agent.run_sync("Pay.", approve=lambda _: True).value == "Done."
    assert MADE == [("transfer", 5.0)]


@BOTH
@pytest.mark.parametrize("first", ["anthropic", "responses"])
def test_a_run_is_resumed_from_every_beginning_of_its_log(services, first, name):
    wrong = [("think", "so"), ("call", "x", "forecast", '{"city": NaN}')]
    cut = [("think", "to"), ("text", "Now."), ("call", "y", "forecast", '{"ci'), ("cut",)]
    services[first].begin([("think", "hm"), *TWO], wrong, cut, END)
    result = agent_of(model_of(services, first)).run_sync("Do it.")
    lines = result.run.export().splitlines(keepends=True)
    service, model = services[name], model_of(services, name)
    for end in range(1, len(lines)):
        # `begin` would make the service forget its items.
        service.script = [END]
        with TicketStore() as store:
            run_id = store.import_run("".join(lines[:end]), trust=True)
            assert agent_of(model, store=store).resume_sync(run_id).value == "Done."
    sent = json.dumps(service.bodies[-1])
    proofs = signature if name == "anthropic" else encrypted
    # Reasoning goes back to its own service alone.
    assert (proofs("hm") in sent) is (first == name)


@pytest.mark.parametrize(
    ("first", "second"), [("anthropic", "responses"), ("responses", "anthropic")]
)
def test_another_service_takes_over_within_a_run(services, first, second):
    services[first].begin([("think", "hm"), ("call", "a.b", "forecast", OSLO)])
    services[second].begin(END)
    calls = [0]
    model = model_of(services, first)
    failing = as_model(_failing_after(model._client, calls), model="m")
    both = Fallback(failing, model_of(services, second))
    assert agent_of(both).run_sync("Do it.").value == "Done."
    (body,) = services[second].bodies
    assert "hm" not in json.dumps(body)
    assert MADE == [("forecast", "Oslo")]


def _failing_after(create, calls):
    """The method of a client that fails at its second call."""

    def messages_create(*, model, messages, stop_sequences=None, **options):
        return made(model=model, messages=messages, **options)

    def responses_create(*, model, input, **options):  # noqa: A002  # the service's name
        return made(model=model, input=input, **options)

    def made(**options):
        calls[0] += 1
        if calls[0] > 1:
            raise ModelError("out of order")
        return create(**options)

    return messages_create if "messages" in create.__qualname__.lower() else responses_create


@BOTH
def test_an_image_of_a_result_stands_inside_of_it(services, name):
    service = services[name]
    service.begin([("call", "a", "picture", "{}")], END)
    assert agent_of(model_of(services, name), picture).run_sync("Draw.").value == "Done."
    last = service.bodies[-1]
    if name == "anthropic":
        (result, *behind) = last["messages"][-1]["content"]
        kinds = [block["type"] for block in result["content"]]
    else:
        result = last["input"][-1]
        kinds, behind = [block["type"].removeprefix("input_") for block in result["output"]], []
    assert (kinds, behind) == (["text", "text", "image"], [])


@BOTH
def test_an_answer_of_a_type_is_asked_for_as_a_call(services, name):
    service = services[name]
    service.begin([("call", "a", "final_answer", '{"answer": 4}')])
    agent = Agent(model_of(services, name), protocol="native", tools=[forecast], returns=int)
    assert agent.run_sync("How many degrees?").value == 4
    (body,) = service.bodies
    # Anthropic refuses to force a call while thinking is always on.
    forced = {"anthropic": {"type": "auto"}, "responses": "required"}
    assert body["tool_choice"] == forced[name]
