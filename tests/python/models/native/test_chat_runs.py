"""Whole runs with the tool calls of chat completions: what is executed, and what is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from callslip import Agent, Limits, tool
from callslip.errors import ModelRefused, ProtocolError
from callslip.models import as_model
from optional import optional_module
from services.chat import OSLO, SCENES, ChatService, chat_service, pay, weather

openai = optional_module("openai")

DONE: list[tuple[Any, ...]] = []
END = [("text", "Done.")]


@tool(name="weather", repeatable=True)
async def get_weather(city: str, days: int = 1) -> str:
    """Get the weather of a city."""
    DONE.append(("weather", city, days))
    return f"4 degrees in {city}"


@tool(name="pay")
async def make_payment(amount: float, to: str = "Ada") -> str:
    """Pay an amount."""
    DONE.append(("pay", amount, to))
    return "paid"


@tool
async def ping() -> str:
    """Ping."""
    DONE.append(("ping",))
    return "pong"


TOOLS = [get_weather, make_payment, ping]
ONE = [("weather", "Oslo", 1)]
BOTH = [*ONE, ("weather", "Rom", 1)]
EXECUTED: dict[str, list[tuple[Any, ...]]] = {
    "one call": ONE,
    "text and two calls": BOTH,
    "reasoning": ONE,
    "reasoning, text and two calls": [*ONE, ("pay", 5.0, "Ada")],
    "no arguments": [("ping",)],
    # The service gives each an id anew when it is sent back.
    "an id twice": BOTH,
    "single quotes": ONE,
    "a comma behind": ONE,
}
"""What is executed. Nothing of any other scene is."""


@pytest.fixture(scope="module")
def running() -> Iterator[ChatService]:
    with chat_service() as server:
        yield server


@pytest.fixture
def server(running: ChatService) -> ChatService:
    running.reset(END)
    DONE.clear()
    return running


@pytest.fixture(scope="module")
def client(running: ChatService) -> Any:
    with openai.OpenAI(base_url=running.base, api_key="k", max_retries=0) as client:
        yield client


def agent_of(client: Any, **options: Any) -> Agent[Any]:
    limits = Limits(max_violations=2)
    return Agent(
        as_model(client, model="m", **options), protocol="native", tools=TOOLS, limits=limits
    )


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", SCENES)
def test_each_scene(name: str, stream: bool, server: ChatService, client: Any) -> None:
    server.reset(SCENES[name], END)
    server.split, server.is_mixed = 3, True
    server.needs_reasoning = name.startswith("reasoning")
    agent = agent_of(client, stream=stream)
    if name == "a refusal":
        with pytest.raises(ModelRefused):
            agent.run_sync("Do it.")
        return
    result = agent.run_sync("Do it.")
    is_answer = name == "text that quotes a tool block"
    assert result.value == (SCENES[name][0][1] if is_answer else "Done.")
    assert EXECUTED.get(name, []) == DONE
    assert len(server.bodies) == (1 if is_answer else 2)


def test_an_async_client(server: ChatService) -> None:
    server.reset(SCENES["reasoning, text and two calls"], END)
    server.split, server.is_mixed, server.needs_reasoning = 1, True, True

    async def main() -> Any:
        async with openai.AsyncOpenAI(base_url=server.base, api_key="k", max_retries=0) as client:
            return await agent_of(client).run("Do it.")

    assert asyncio.run(main()).value == "Done."
    assert sorted(DONE) == sorted(EXECUTED["reasoning, text and two calls"])


def test_the_tools_are_the_same_in_every_request(server: ChatService, client: Any) -> None:
    server.reset([weather(OSLO)], [weather('{"city": "Rom"}')], [pay('{"amount": "x"}')], END)
    assert agent_of(client).run_sync("Do it.").value == "Done."
    assert len(server.bodies) == 4
    assert all(body["tools"] == server.bodies[0]["tools"] for body in server.bodies)
    for before, after in zip(server.bodies, server.bodies[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"]


def test_a_fault_of_the_service_is_asked_again(server: ChatService, client: Any) -> None:
    server.late_error = {"code": "tool_use_failed", "message": "No.", "failed_generation": "<x"}
    with pytest.raises(ProtocolError, match=r"it refused: tool_use_failed: No\.") as raised:
        agent_of(client).run_sync("Do it.")
    log = raised.value.run.log
    codes = [event.violation["code"] for event in log if event.kind == "violated"]
    assert codes == ["service_refused_call"] * 3
    assert DONE == []
