"""Strands Agents: an `Agent` for each run, since it keeps the messages of a conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from comparison.task import PROMPT, TASK, Run, Wait, add


def counting(turns: int, wait: Wait) -> Any:
    from strands.models import Model

    class Counting(Model):
        def update_config(self, **_: Any) -> None:
            pass

        def get_config(self) -> dict[str, Any]:
            return {"model_id": "counting"}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            turn = (len(messages) - 1) // 2
            if wait is not None:
                await wait(turn)
            yield {"messageStart": {"role": "assistant"}}
            if turn < turns:
                start = {"toolUse": {"toolUseId": f"c{turn}", "name": "add"}}
                delta = {"toolUse": {"input": json.dumps({"a": turn, "b": 1})}}
                yield {"contentBlockStart": {"start": start}}
                yield {"contentBlockDelta": {"delta": delta}}
            else:
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": "ok"}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use" if turn < turns else "end_turn"}}

    return Counting()


def counter(turns: int, wait: Wait) -> Run:
    from strands import Agent, tool

    counted, model = tool(add), counting(turns, wait)

    async def run() -> str:
        agent = Agent(model=model, tools=[counted], system_prompt=PROMPT, callback_handler=None)
        return str(await agent.invoke_async(TASK)).strip()

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    options = {} if timeout is None else {"timeout": timeout}
    model = OpenAIModel(
        client_args={"base_url": base, "api_key": "none", **options}, model_id="gpt-4o"
    )
    agent = Agent(model=model, tools=[tool(transfer)], system_prompt=PROMPT, callback_handler=None)

    async def run() -> str:
        return str(await agent.invoke_async(TASK)).strip()

    return run


async def in_session(folder: Path, number: int, turns: int, function: Any) -> str:
    from strands import Agent, tool
    from strands.session import SnapshotSessionManager
    from strands.storage import LocalFileStorage

    session = SnapshotSessionManager(
        f"run-{number}", storage=LocalFileStorage(str(folder)), save_latest_on="message"
    )
    agent = Agent(
        model=counting(turns, None),
        tools=[tool(function)],
        system_prompt=PROMPT,
        callback_handler=None,
        session_manager=session,
    )
    return str(await agent.invoke_async(TASK)).strip()


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    await asyncio.gather(*(in_session(folder, number, turns, tool) for number in range(runs)))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    """Ask again in the same session: it has what was said."""
    return await in_session(folder, 0, turns, tool)
