"""Agents on the real local model: directly, and through the SDK of an OpenAI-compatible server."""

import asyncio
from typing import TypedDict

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Delta,
    LimitExceeded,
    Limits,
    LocalModel,
    ProtocolError,
    ReactProtocol,
    TicketProtocol,
    as_model,
    tool,
)
from optional import optional_module

optional_module("xllamacpp")
pytestmark = pytest.mark.local_model


@tool
def weather(city: str) -> str:
    """Get the weather in a city."""
    return f"4 degrees and snow in {city}"


@pytest.fixture(scope="module")
def model():
    with LocalModel() as local:
        yield local


@pytest.mark.parametrize("kind", [ReactProtocol, ChattyProtocol, TicketProtocol])
def test_a_constrained_model_makes_a_valid_call(model, kind):
    agent = Agent(
        model,
        # Without an example the prompt is shorter; the grammar sees to the form.
        protocol=kind(first_move="call", strict=True, examples=False),
        tools=[weather],
        limits=Limits(turns=1),
        delegate=False,
    )
    result = agent.run_sync("What is the weather in Oslo?")
    assert result.run.violations == 0
    (ticket,) = result.tickets
    assert ticket.result == "4 degrees and snow in Oslo"
    assert result.usage.output_tokens > 0
    replied = [event for event in result.run.log if event.kind == "model_replied"]
    assert [reply.finish_reason for reply in replied] == ["stop", "stop"]


def test_the_prefix_is_cached_between_turns(model):
    agent = Agent(model, protocol="react", tools=[weather], limits=Limits(turns=1))
    agent.run_sync("What is the weather in Oslo?")
    usage = agent.run_sync("What is the weather in Lima?").usage
    assert usage.cached_tokens > usage.input_tokens / 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_through_the_openai_sdk_streaming(model, asynchronous):
    openai = optional_module("openai")
    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    client = kind(base_url=model.base_url, api_key=model.api_key)
    # The server says what it is.
    grammar = "auto" if asynchronous else "gbnf"
    agent = Agent(
        as_model(client, model="local", grammar=grammar, temperature=0),
        protocol=ReactProtocol(first_move="call"),
        tools=[weather],
        limits=Limits(turns=1),
    )

    async def watch():
        names, usage = [], None
        async with agent.stream("What is the weather in Oslo?") as run:
            async for event in run:
                if isinstance(event, Delta.Tool):
                    names.append(event.name)
        usage = run.run.usage
        if asynchronous:
            await client.close()
        return names, run.run, usage

    names, run, usage = asyncio.run(watch())
    if not asynchronous:
        client.close()
    assert names[0] == "weather"
    assert run.tickets[0].result == "4 degrees and snow in Oslo"
    assert usage.input_tokens > 0
    assert run.violations == 0


def test_a_free_model_breaks_the_protocol_and_nothing_is_run(model):
    agent = Agent(
        model,
        protocol="react",
        tools=[weather],
        grammar=False,
        max_tokens=24,
        limits=Limits(max_violations=1, turns=3),
    )
    with pytest.raises((ProtocolError, LimitExceeded)) as caught:
        agent.run_sync("Say hello.")
    assert caught.value.run.tickets == []
    assert caught.value.run.finished


class City(TypedDict):
    name: str
    is_capital: bool


@pytest.mark.parametrize("protocol", ["react", "chatty"])
def test_a_constrained_model_answers_with_a_value_of_the_type(model, protocol):
    agent = Agent(model, protocol=protocol, returns=City, limits=Limits(turns=3))
    result = agent.run_sync("Is Oslo a capital? Give the name of the city and the answer.")
    assert result.value.keys() == {"name", "is_capital"}
    assert result.run.violations == 0


def test_a_long_answer_ends_whole(model):
    agent = Agent(model, protocol="chatty", tools=[weather])
    result = agent.run_sync("Tell a long story about a dragon, in 5,000 characters.")
    assert result.run.violations == 0
    assert model.bounds.answer <= len(result.value) < 2 * model.bounds.answer
    assert result.value.rstrip()[-1] in ".!?"
