"""Tool calls by LiteLLM, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from callslip import Agent, tool
from callslip.models import ModelReply, as_model
from callslip.models._items import FaultItem, ToolChoice, ToolForm
from optional import optional_module, require
from services.chat import (
    SCENES,
    ChatService,
    chat_service,
    data_of,
    expected,
    joined,
    replied,
    results,
)

# Its import takes 5 to 10 s.
require("litellm")

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    ToolForm("weather", "Get the weather.", CITY),
    ToolForm("pay", "Pay.", {"type": "object", "properties": {"amount": {"type": "number"}}}),
    ToolForm("ping", "Ping.", {"type": "object", "properties": {}}),
]
ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Do it."}]
END = [("text", "Done.")]
# Its own warnings, about versions of pydantic, are none of ours.
pytestmark = pytest.mark.filterwarnings("ignore:.*:Warning")


@pytest.fixture(scope="module")
def running() -> Iterator[ChatService]:
    with chat_service() as server:
        yield server


@pytest.fixture
def server(running: ChatService) -> Iterator[ChatService]:
    running.reset(END)
    # It sets variables of its own.
    with mock.patch.dict(os.environ, NO_PROXY="127.0.0.1"):
        yield running


def imported() -> Any:
    with mock.patch.dict(os.environ, LITELLM_LOCAL_MODEL_COST_MAP="True"):
        return optional_module("litellm")


def model_of(server: ChatService, *, stream: bool, is_async: bool = False) -> Any:
    options = {"api_base": server.base, "api_key": "k", "num_retries": 0}
    litellm = imported()
    create = litellm.acompletion if is_async else litellm
    return as_model(create, model="openai/m", stream=stream, **options)


def gathered(chunks: list[Any]) -> ModelReply:
    ends = [one.finish_reason for one in chunks if one.finish_reason]
    items = tuple(item for one in chunks for item in one.items)
    return ModelReply("", ends[-1] if ends else None, items=items)


def read(model: Any, told: Any, **offered: Any) -> ModelReply:
    result = model(told, **{"tools": TOOLS, "tool_choice": ToolChoice(), **offered})
    return result if isinstance(result, ModelReply) else gathered(list(result))


async def read_async(model: Any, told: Any) -> ModelReply:
    result = await model(told, tools=TOOLS, tool_choice=ToolChoice())
    if isinstance(result, ModelReply):
        return result
    return gathered([one async for one in result])


def prepare(server: ChatService, name: str, split: int | None) -> None:
    server.reset(SCENES[name], END)
    server.split, server.is_mixed = split or 1, split == 1
    server.needs_reasoning = name.startswith("reasoning")


def check(name: str, reply: ModelReply) -> None:
    assert joined(reply.items) == expected(SCENES[name])
    assert reply.finish_reason == ("length" if ("cut",) in SCENES[name] else "stop")


# LiteLLM leaves out what a model refuses to do; such a reply is empty.
READ = [name for name in SCENES if name != "a refusal"]


@pytest.mark.parametrize("name", READ)
def test_each_scene(name: str, server: ChatService) -> None:
    for split in (None, 1, 3, 1000):
        prepare(server, name, split)
        model = model_of(server, stream=split is not None)
        reply = read(model, ASK)
        check(name, reply)
        if split in (None, 1):
            own = replied(reply.items)
            last = read(model, [*ASK, own, results(own, "Go on.")])
            assert joined(last.items) == [("text", "Done.")]


def test_each_scene_async(server: ChatService) -> None:
    async def main() -> None:
        for name in READ:
            for split in (None, 3):
                prepare(server, name, split)
                model = model_of(server, stream=split is not None, is_async=True)
                reply = await read_async(model, ASK)
                check(name, reply)
        own = replied(reply.items)
        last = await read_async(model, [*ASK, own, results(own)])
        assert joined(last.items) == [("text", "Done.")]

    asyncio.run(main())


def test_the_request(server: ChatService) -> None:
    model = model_of(server, stream=False)
    assert model.provider is None
    read(model, ASK, tool_choice=ToolChoice("required", "pay", parallel=False))
    body = server.bodies[-1]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["weather", "pay", "ping"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "pay"}}
    assert body["parallel_tool_calls"] is False


@pytest.mark.parametrize("stream", [True, False])
def test_reasoning_goes_back(stream: bool, server: ChatService) -> None:
    prepare(server, "reasoning", 3)
    model = model_of(server, stream=stream)
    reply = read(model, ASK)
    assert data_of(reply.items) == [{"litellm/openai": {"reasoning_content": True}}]
    own = replied(reply.items)
    read(model, [*ASK, own, results(own)])
    assert server.bodies[-1]["messages"][2]["reasoning_content"] == "Which city?\nOslo."


@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_of_the_service(stream: bool, server: ChatService) -> None:
    told = {"message": "Failed.", "code": "tool_use_failed", "failed_generation": "<function=x"}
    server.error = (400, {"error": told})
    [fault] = read(model_of(server, stream=stream), ASK).items
    assert isinstance(fault, FaultItem)
    assert fault.message.startswith("tool_use_failed: ")


def test_a_router(server: ChatService) -> None:
    route = {"model": "openai/m", "api_base": server.base, "api_key": "k"}
    router = imported().Router([{"model_name": "fast", "litellm_params": route}])
    server.reset(SCENES["one call"], END)
    model = as_model(router, model="fast")
    reply = read(model, ASK)
    assert joined(reply.items) == expected(SCENES["one call"])
    own = replied(reply.items)
    assert joined(read(model, [*ASK, own, results(own)]).items) == [("text", "Done.")]


@pytest.mark.parametrize("stream", [True, False])
def test_a_whole_run(stream: bool, server: ChatService) -> None:
    done: list[str] = []

    @tool(repeatable=True)
    async def weather(city: str) -> str:
        """Get the weather of a city."""
        done.append(city)
        return "4 degrees"

    wrong = [("call", "a", "weather", '{"city": "Oslo", "city": "Rom"}')]
    server.reset(wrong, SCENES["text and two calls"], END)
    agent = Agent(model_of(server, stream=stream), protocol="native", tools=[weather])
    assert agent.run_sync("Do it.").value == "Done."
    assert done == ["Oslo", "Rom"]
