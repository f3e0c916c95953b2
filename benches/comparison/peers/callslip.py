"""callslip with models that write text: the loop in react, faults in chatty, with several calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from comparison.durable import FILE
from comparison.service import Reply
from comparison.task import PROMPT, TASK, Run, Wait, add, text_model

FIRST = 2
"""Messages at the beginning of a run: the prompt and the task."""


def counter(turns: int, wait: Wait) -> Run:
    return loop(text_model(turns, wait, FIRST), "react")


def loop(model: Any, protocol: Any) -> Run:
    """Return a run of an agent whose model calls `add`."""
    from callslip import Agent, Limits, tool

    limits = Limits(turns=None, tickets=None)
    agent = Agent(model, protocol=protocol, tools=[tool(add)], limits=limits)

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
    block = f"<tool>\n[{'}, '.join(calls)}" + ("" if reply.is_cut else "}]\n</tool>")
    text = block if reply.text is None else f"{reply.text}\n{block}"
    return replace(reply, calls=(), text=text)


def encode_react(reply: Reply) -> Reply:
    """Write calls, and an answer, in the react protocol."""
    if reply.is_raw or (reply.text is None and not reply.calls):
        return reply
    if not reply.calls:
        move = {"thought": "", "action": "FINISH", "final_answer": reply.text}
        return replace(reply, text=json.dumps(move | {"task_successful": True}))
    end = "" if reply.is_cut else "}"
    moves = [
        f'{{"thought": "", "action": {json.dumps(call.name)}, "args": {json.dumps(call.arguments)}'
        for call in reply.calls
    ]
    return replace(reply, calls=(), text="}\n".join(moves) + end)


def encode_ticket(reply: Reply) -> Reply:
    """Write calls, and an answer, in the ticket protocol."""
    if reply.is_raw or (reply.text is None and not reply.calls):
        return reply
    if not reply.calls:
        move = json.dumps({"type": "RETURN", "value": reply.text})
        return replace(reply, text=f"<thoughts>done</thoughts><output>{move}</output>")
    moves = [
        f'<output>{{"type": "CALL", "route": "POST /{call.name}", "description": "pay",'
        f' "payload": {call.arguments}' + ("" if reply.is_cut else "}</output>")
        for call in reply.calls
    ]
    return replace(reply, calls=(), text="<thoughts>next</thoughts>" + "".join(moves))


def rows() -> dict[str, Any]:
    """Return an adapter of faults for each protocol of text."""
    encoders = {"chatty": encode, "react": encode_react, "ticket": encode_ticket}
    return {
        f"callslip, {name}": SimpleNamespace(
            transfers=partial(transfers, protocol=name), encode=encoder
        )
        for name, encoder in encoders.items()
    }


def transfers(
    base: str,
    transfer: Callable[[str, float], Awaitable[str]],
    timeout: float | None,
    protocol: Any = "chatty",
) -> Run:
    from openai import AsyncOpenAI

    from callslip import Agent, as_model, tool

    options = {} if timeout is None else {"timeout": timeout}
    client = AsyncOpenAI(base_url=base, api_key="none", **options)
    model = as_model(client, model="gpt-4o")
    agent = Agent(model, protocol=protocol, instructions=PROMPT, tools=[tool(transfer)])

    async def run() -> str:
        return str((await agent.run(TASK)).value)

    return run


def stored(folder: Path, turns: int, function: Any) -> Any:
    return storing(text_model(turns, None, FIRST), "react", folder, function)


def storing(model: Any, protocol: Any, folder: Path, function: Any) -> Any:
    """Return an agent whose runs are kept."""
    from callslip import Agent, Limits, tool

    limits = Limits(turns=None, tickets=None)
    tools = [tool(function)]
    return Agent(model, protocol=protocol, tools=tools, limits=limits, store=folder / FILE)


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    agent = stored(folder, turns, tool)
    await asyncio.gather(*(agent.run(TASK) for _ in range(runs)))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    return await continued(stored(folder, turns, tool))


async def continued(agent: Any) -> str:
    """Return the answer of the one run that an agent's store has open."""
    (result,) = (await agent.resume_all()).values()
    if isinstance(result, Exception):
        raise result
    return str(result.value)
