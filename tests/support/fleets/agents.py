"""Agents on scripted models, with tools of every effect that write down what they do."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from callslip import Agent, Context, tool
from fleets import ledger

FINISH = {"thought": "All is done.", "action": "FINISH", "final_answer": "done"}


def finish() -> str:
    return json.dumps({**FINISH, "task_successful": True})


def call(name: str, **args: Any) -> str:
    return json.dumps({"thought": "Next.", "action": name, "args": args})


def agents(url: str, *, wait: float = 0.01) -> list[Agent]:
    """Return the agents.

    Args:
        url: The database of the ledger.
        wait: Seconds that a model or a tool takes, about.
    """

    async def pause() -> None:
        await asyncio.sleep(wait * 2 * random.random())

    def taking_effect(context: Context) -> None:
        ledger.note(url, context.run_id, context.ticket_id, context.key, context.tool)

    @tool(effect="once")
    async def charge(number: int, context: Context) -> str:
        await asyncio.to_thread(taking_effect, context)
        await pause()
        return f"charged {number}"

    @tool(effect="idempotent")
    async def store(number: int, context: Context) -> str:
        await asyncio.to_thread(taking_effect, context)
        await pause()
        return f"stored {number}"

    @tool(effect="once", needs_approval=True)
    async def refund(number: int, context: Context) -> str:
        await asyncio.to_thread(taking_effect, context)
        await pause()
        return f"refunded {number}"

    @tool(effect="once", queue="there")
    async def charge_there(number: int, context: Context) -> str:
        return await charge(number, context)

    @tool(effect="idempotent", queue="there")
    async def store_there(number: int, context: Context) -> str:
        return await store(number, context)

    def steps(names: list[str]) -> Any:
        async def model(messages: list[dict[str, Any]]) -> str:
            await pause()
            done = _calls(messages)
            if done >= len(names):
                return finish()
            given = {"task": f"TASK-{done}"} if names[done] == "keeper" else {"number": done}
            return call(names[done], **given)

        return model

    busy = Agent(
        steps(["charge", "store"] * 4), tools=[charge, store, refund], name="busy", delegate=False
    )
    careful = Agent(
        steps(["charge", "refund", "store"]),
        tools=[charge, store, refund],
        name="careful",
        delegate=False,
    )
    keeper = Agent(steps(["store"]), tools=[store], name="keeper", delegate=False)
    thorough = Agent(
        steps(["charge", "store", "keeper", "refund"]),
        tools=[charge, store, refund, keeper.as_tool(description="Keeps a number.")],
        name="thorough",
        delegate=False,
    )
    wide = Agent(
        steps(["charge_there", "keeper", "store_there", "keeper"]),
        tools=[charge_there, store_there, keeper.as_tool(description="Keeps a number.")],
        name="wide",
        delegate=False,
    )
    return [busy, careful, thorough, wide, keeper]


def _calls(messages: list[dict[str, Any]]) -> int:
    """Count the calls of the run so far: those with a result after the task."""
    return sum(
        message["role"] == "assistant" and '"action": "FINISH"' not in message["content"]
        for message in messages[_first(messages) :]
    )


def _first(messages: list[dict[str, Any]]) -> int:
    tasks = [at for at, message in enumerate(messages) if "TASK-" in str(message["content"])]
    return tasks[0] if tasks else 0
