"""What the processes do that a nursery starts."""

from __future__ import annotations

import asyncio
from typing import Any

from callslip import Agent, Context, TicketStore, tool
from callslip.fleet import Fleet
from fleets import spans
from fleets.agents import agents, call, finish
from scripted import turn_of

LEASE = 30.0
"""Seconds: longer than any life here, so that no beat is between the points."""


async def work(url: str, ledger: str, queue: str) -> None:
    """Work on a queue until told to end."""
    with TicketStore(url) as store:
        fleet = Fleet(store, agents(ledger, wait=0), lease=LEASE)
        await fleet.work(queues=[queue], slots=4, grace=5)


async def tell(url: str, queue: str, key: str, runs: dict[str, str]) -> None:
    """Do once what a web server does.

    Args:
        url: The database.
        queue: Where a run is submitted.
        key: The key of that run.
        runs: The ids of three more: `resting` is talked to and approved, `doomed` is cancelled, and
            `over` is talked to after its end.
    """
    with TicketStore(url) as store:
        await Fleet(store).submit("thorough", f"TASK-{key}", queue=queue, key=key)
        store.run(runs["resting"]).send("Be quick.")
        store.run(runs["resting"]).approve("T4", by="Ann")
        store.run(runs["doomed"]).cancel()
        store.run(runs["over"]).send("Once more.")


async def play(place: str, ledger: str, seed: int, life: int, seconds: float | None) -> None:
    """Be one of the processes of a random sequence."""
    from sequences.play import live

    await asyncio.to_thread(live, place, ledger, seed, life, seconds)


async def work_slowly(url: str) -> None:
    """Work on runs that write down when they are worked on."""

    @tool(effect="idempotent")
    async def linger(context: Context) -> str:
        """Linger."""
        await spans.note(url, context.run_id, 0.05)
        return "done"

    def model(messages: list[dict[str, Any]]) -> str:
        return finish() if turn_of(messages) == 2 else call("linger")

    with TicketStore(url) as store:
        fleet = Fleet(store, [Agent(model, tools=[linger], name="slow")], lease=1)
        await fleet.work(slots=8)
