"""Agno: `Agent` with a `Model`; its class `OpenAIChat` for faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.task import PROMPT, TASK, Run, Wait, add


def counting(turns: int, wait: Wait) -> Any:
    from agno.models.base import Model
    from agno.models.response import ModelResponse

    @dataclass
    class Counting(Model):
        id: str = "counting"

        async def ainvoke(self, messages: list[Any], *_: Any, **__: Any) -> ModelResponse:
            turn = (len(messages) - 2) // 2
            if wait is not None:
                await wait(turn)
            if turn == turns:
                return ModelResponse(role="assistant", content="ok")
            function = {"name": "add", "arguments": json.dumps({"a": turn, "b": 1})}
            call = {"id": f"c{turn}", "type": "function", "function": function}
            return ModelResponse(role="assistant", tool_calls=[call])

        def invoke(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        invoke_stream = ainvoke_stream = invoke
        _parse_provider_response = _parse_provider_response_delta = invoke

    return Counting()


def counter(turns: int, wait: Wait) -> Run:
    from agno.agent import Agent

    agent = Agent(model=counting(turns, wait), tools=[add], system_message=PROMPT, telemetry=False)

    async def run() -> str:
        return str((await agent.arun(TASK)).content)

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agno.run import RunStatus

    model = OpenAIChat(id="gpt-4o", base_url=base, api_key="none", timeout=timeout)
    agent = Agent(model=model, tools=[transfer], system_message=PROMPT, telemetry=False)

    async def run() -> str:
        found = await agent.arun(TASK)
        # It raises no error of a model: the status of a run tells it.
        status = "" if found.status == RunStatus.completed else f"status {found.status.value}: "
        return f"{status}{found.content}"

    return run


def stored(folder: Path, turns: int, function: Any) -> Any:
    from agno.agent import Agent
    from agno.db.sqlite import AsyncSqliteDb

    return Agent(
        model=counting(turns, None),
        tools=[function],
        system_message=PROMPT,
        db=AsyncSqliteDb(db_file=str(folder / FILE)),
        checkpoint="tool-batch",
        telemetry=False,
    )


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    agent = stored(folder, turns, tool)
    ids = [{"run_id": f"run-{number}", "session_id": f"s-{number}"} for number in range(runs)]
    await asyncio.gather(*(agent.arun(TASK, **one) for one in ids))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    agent = stored(folder, turns, tool)
    return str((await agent.acontinue_run(run_id="run-0", session_id="s-0")).content)
