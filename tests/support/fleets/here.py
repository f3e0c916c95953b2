"""A worker of a fleet in this process, and scripted agents for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from callslip import Agent, TicketStore, tool
from callslip.fleet import Fleet
from scripted import turn_of

LONG = 30
"""Seconds that nothing takes unless it is broken."""


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def call(name: str, **args: object) -> str:
    return json.dumps({"thought": "t", "action": name, "args": args})


def finish(answer: object = "done") -> str:
    return json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": answer, "task_successful": True}
    )


def turns(*replies: str) -> Callable[..., str]:
    """Return a model that says these in turn, in every run."""

    def model(messages: list[dict[str, str]]) -> str:
        return replies[min(turn_of(messages), len(replies) - 1)]

    return model


@asynccontextmanager
async def working(
    url: str,
    *agents: Agent[Any],
    queues: Sequence[str] = ("default",),
    slots: int = 16,
    grace: float = 5.0,
    new: bool = True,
    **options: Any,
) -> AsyncIterator[Fleet]:
    """Work in this process, with a store of its own."""
    with TicketStore(url) as store:
        fleet = Fleet(store, agents, **{"lease": 5, **options})
        task = asyncio.create_task(fleet.work(queues=queues, slots=slots, grace=grace, new=new))
        try:
            yield fleet
        finally:
            task.cancel()
            await asyncio.wait([task])


async def until(holds: Callable[[], object], what: str = "it holds") -> None:
    """Wait until it holds."""
    end = time.monotonic() + LONG
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


def make_due(url: str) -> None:
    """Let what was put off be taken now."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE pgmq.q_callslip_later SET vt = clock_timestamp() - interval '1 s'"
        )
