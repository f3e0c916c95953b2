"""smolagents: `ToolCallingAgent` in a thread, as its docs say; one for each run at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from comparison.service import Call, Reply
from comparison.task import PROMPT, TASK, Made, Run, Wait

DONE = Reply([Call('{"answer": "done"}', name="final_answer", id="end")])
"""It ends with a call of this tool only."""
THREADS = ThreadPoolExecutor(5100)


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    Made.calls += 1
    return a + b


def counting(turns: int, wait: Wait) -> Any:
    from smolagents import ChatMessage, MessageRole, Model
    from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

    class Counting(Model):
        loop: asyncio.AbstractEventLoop

        def generate(self, messages: list[Any], **_: Any) -> ChatMessage:
            turn = (len(messages) - 2) // 2
            if wait is not None:
                asyncio.run_coroutine_threadsafe(wait(turn), self.loop).result()
            name, arguments = ("add", {"a": turn, "b": 1})
            if turn == turns:
                name, arguments = ("final_answer", {"answer": "ok"})
            function = ChatMessageToolCallFunction(arguments=arguments, name=name)
            call = ChatMessageToolCall(function=function, id=f"c{turn}", type="function")
            return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call])

    return Counting()


def counter(turns: int, wait: Wait) -> Run:
    from smolagents import LogLevel, ToolCallingAgent, tool

    counted = tool(add)
    free: list[ToolCallingAgent] = []

    def agent() -> ToolCallingAgent:
        return ToolCallingAgent(
            tools=[counted],
            model=counting(turns, wait),
            instructions=PROMPT,
            max_steps=turns + 5,
            verbosity_level=LogLevel.OFF,
        )

    async def run() -> str:
        loop = asyncio.get_running_loop()
        taken = free.pop() if free else agent()
        taken.model.loop = loop
        answer = await loop.run_in_executor(THREADS, taken.run, TASK)
        free.append(taken)
        return str(answer)

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool

    def transfer_now(account: str, amount: float) -> str:
        return asyncio.run(transfer(account, amount))

    transfer_now.__name__ = transfer.__name__
    transfer_now.__doc__ = transfer.__doc__
    options = {} if timeout is None else {"client_kwargs": {"timeout": timeout}}
    agent = ToolCallingAgent(
        tools=[tool(transfer_now)],
        model=OpenAIServerModel("gpt-4o", api_base=base, api_key="none", **options),
        instructions=PROMPT,
        verbosity_level=LogLevel.OFF,
    )

    async def run() -> str:
        loop = asyncio.get_running_loop()
        return str(await loop.run_in_executor(THREADS, agent.run, TASK))

    return run
