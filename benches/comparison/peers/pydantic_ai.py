"""pydantic-ai: `Agent` with a `FunctionModel`, and `OpenAIChatModel` for faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.task import PROMPT, TASK, Run, Wait, add


def model(turns: int, wait: Wait) -> Any:
    from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = (len(messages) - 1) // 2
        if wait is not None:
            await wait(turn)
        if turn == turns:
            return ModelResponse(parts=[TextPart("ok")])
        return ModelResponse(parts=[ToolCallPart("add", {"a": turn, "b": 1}, f"c{turn}")])

    return FunctionModel(answer)


def counter(turns: int, wait: Wait) -> Run:
    from pydantic_ai import Agent, UsageLimits

    agent = Agent(model(turns, wait), instructions=PROMPT, tools=[add])
    limits = UsageLimits(request_limit=None)

    async def run() -> str:
        return str((await agent.run(TASK, usage_limits=limits)).output)

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    options = {} if timeout is None else {"timeout": timeout}
    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=base, api_key="none", **options))
    agent = Agent(OpenAIChatModel("gpt-4o", provider=provider), instructions=PROMPT)
    agent.tool_plain(transfer)

    async def run() -> str:
        return str((await agent.run(TASK)).output)

    return run


def stored(folder: Path, turns: int, function: Any) -> Any:
    """Return a workflow of DBOS, which keeps each request and each step of a tool."""
    from dbos import DBOS
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.durable_exec.dbos import DBOSDurability

    url = f"sqlite:///{folder / FILE}"
    DBOS(
        config={
            "name": "count",
            "system_database_url": url,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    step = DBOS.step(name="add")(function)
    agent = Agent(model(turns, None), name="counter", tools=[step], capabilities=[DBOSDurability()])

    @DBOS.workflow(name="count")
    async def count() -> str:
        found = await agent.run(TASK, usage_limits=UsageLimits(request_limit=None))
        return str(found.output)

    DBOS.launch()
    return count


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    from dbos import DBOS, SetWorkflowID

    count = stored(folder, turns, tool)

    async def one(number: int) -> None:
        with SetWorkflowID(f"run-{number}"):
            await count()

    await asyncio.gather(*map(one, range(runs)))
    DBOS.destroy(destroy_registry=True)


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    from dbos import DBOS

    stored(folder, turns, tool)
    handle = await DBOS.retrieve_workflow_async("run-0")
    return str(await handle.get_result())
