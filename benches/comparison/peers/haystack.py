"""Haystack: `Agent` with a chat generator of its own; `OpenAIChatGenerator` for faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from comparison.task import PROMPT, TASK, Run, Wait, add


def counting(turns: int, wait: Wait) -> Any:
    from haystack import component
    from haystack.dataclasses import ChatMessage, ToolCall

    @component
    class Counting:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
            raise NotImplementedError

        @component.output_types(replies=list[ChatMessage])
        async def run_async(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
            turn = (len(messages) - 2) // 2
            if wait is not None:
                await wait(turn)
            reply = ChatMessage.from_assistant("ok")
            if turn < turns:
                call = ToolCall(tool_name="add", arguments={"a": turn, "b": 1}, id=f"c{turn}")
                reply = ChatMessage.from_assistant(tool_calls=[call])
            return {"replies": [reply]}

    return Counting()


def counter(turns: int, wait: Wait) -> Run:
    from haystack.components.agents import Agent
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function

    agent = Agent(
        chat_generator=counting(turns, wait),
        tools=[create_tool_from_function(add)],
        system_prompt=PROMPT,
        max_agent_steps=turns + 5,
    )

    async def run() -> str:
        found = await agent.run_async(messages=[ChatMessage.from_user(TASK)])
        return str(found["messages"][-1].text)

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret

    generator = OpenAIChatGenerator(
        model="gpt-4o", api_base_url=base, api_key=Secret.from_token("none"), timeout=timeout
    )
    agent = Agent(
        chat_generator=generator, tools=[create_tool_from_function(transfer)], system_prompt=PROMPT
    )

    async def run() -> str:
        found = await agent.run_async(messages=[ChatMessage.from_user(TASK)])
        return str(found["messages"][-1].text)

    return run
