"""callslip: the loop in the react protocol, faults in the chatty one, which has several calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.service import Reply
from comparison.task import PROMPT, TASK, Run, Wait, add, text_model

FIRST = 6
"""Messages at the beginning of a run: the prompt, an example of two turns, the task."""


def counter(turns: int, wait: Wait) -> Run:
    from callslip import Agent, Limits, tool

    limits = Limits(turns=None, tickets=None)
    agent = Agent(
        text_model(turns, wait, FIRST), protocol="react", tools=[tool(add)], limits=limits
    )

    async def run() -> str:
        return str((await agent.run(TASK)).value)

    return run


def encode(reply: Reply) -> Reply:
    """Write calls as text; what the model wrote as arguments stands in it as it is."""
    if not reply.calls:
        return reply
    calls = [
        f'{{"call_id": {json.dumps(call.id)}, "tool_name": {json.dumps(call.name)},'
        f' "arguments": {call.arguments}'
        for call in reply.calls
    ]
    is_cut = reply.finish == "length"
    block = f"<tool>\n[{'}, '.join(calls)}" + ("" if is_cut else "}]\n</tool>")
    text = block if reply.text is None else f"{reply.text}\n{block}"
    return replace(reply, calls=(), text=text)


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from openai import AsyncOpenAI

    from callslip import Agent, as_model, tool

    options = {} if timeout is None else {"timeout": timeout}
    client = AsyncOpenAI(base_url=base, api_key="none", **options)
    model = as_model(client, model="gpt-4o")
    agent = Agent(model, protocol="chatty", instructions=PROMPT, tools=[tool(transfer)])

    async def run() -> str:
        return str((await agent.run(TASK)).value)

    return run


def stored(folder: Path, turns: int, function: Any) -> Any:
    from callslip import Agent, Limits, tool

    limits = Limits(turns=None, tickets=None)
    model = text_model(turns, None, FIRST)
    tools = [tool(function)]
    return Agent(model, protocol="react", tools=tools, limits=limits, store=folder / FILE)


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    agent = stored(folder, turns, tool)
    await asyncio.gather(*(agent.run(TASK) for _ in range(runs)))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    (result,) = (await stored(folder, turns, tool).resume_all()).values()
    if isinstance(result, Exception):
        raise result
    return str(result.value)
