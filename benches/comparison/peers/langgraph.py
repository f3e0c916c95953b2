"""LangGraph: `create_agent`, which its docs recommend, with a chat model of LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.task import PROMPT, TASK, Run, Wait, add


def chat_model(turns: int, wait: Wait) -> Any:
    """Make a chat model; the messages say where the run is."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Counting(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "counting"

        def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
            return self

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            raise NotImplementedError

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            turn = (len(messages) - 1 - isinstance(messages[0], SystemMessage)) // 2
            if wait is not None:
                await wait(turn)
            reply = AIMessage("ok")
            if turn < turns:
                call = {"name": "add", "args": {"a": turn, "b": 1}, "id": f"c{turn}"}
                reply = AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=reply)])

    return Counting(cache=False)


def agent_of(model: Any, function: Any, saver: Any = None) -> Any:
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    return create_agent(model, [tool(function)], system_prompt=PROMPT, checkpointer=saver)


def counter(turns: int, wait: Wait) -> Run:
    agent = agent_of(chat_model(turns, wait), add)
    config = {"recursion_limit": 3 * turns + 10}

    async def run() -> str:
        state = await agent.ainvoke({"messages": [("user", TASK)]}, config)
        return str(state["messages"][-1].content)

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from langchain_openai import ChatOpenAI

    agent = agent_of(
        ChatOpenAI(model="gpt-4o", base_url=base, api_key="none", timeout=timeout), transfer
    )

    async def run() -> str:
        state = await agent.ainvoke({"messages": [("user", TASK)]})
        return str(state["messages"][-1].content)

    return run


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    begin = {"messages": [("user", TASK)]}
    async with AsyncSqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        agent = agent_of(chat_model(turns, None), tool, saver)
        threads = [thread(number, turns) for number in range(runs)]
        await asyncio.gather(*(agent.ainvoke(begin, one, durability="sync") for one in threads))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        agent = agent_of(chat_model(turns, None), tool, saver)
        state = await agent.ainvoke(None, thread(0, turns), durability="sync")
    return str(state["messages"][-1].content)


def thread(number: int, turns: int) -> dict[str, Any]:
    return {"recursion_limit": 3 * turns + 10, "configurable": {"thread_id": str(number)}}
