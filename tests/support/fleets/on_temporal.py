"""`python -m fleets.on_temporal URL ADDRESS`: a worker of Temporal, until it is killed."""

from __future__ import annotations

import argparse
import asyncio
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from callslip import Agent, Context, TicketStore, tool
from callslip.fleet import Fleet
from callslip.temporal import Dispatch, Wake, activities
from fleets import ledger
from fleets.agents import call, finish
from scripted import turn_of

QUEUE = "agents"


def fleet_on_temporal(store: TicketStore, address: str, *agents: Agent) -> Fleet:
    """Return a fleet whose runs Temporal drives."""

    async def connect() -> Client:
        return await Client.connect(address)

    wake = Wake(connect, task_queue=QUEUE, heartbeat=2)
    return Fleet(store, agents, lease=3, dispatch=wake)


def agents(url: str) -> list[Agent]:
    @tool(effect="once")
    async def charge(number: int, context: Context) -> str:
        await asyncio.to_thread(
            ledger.note, url, context.run_id, context.ticket_id, context.key, context.tool
        )
        # The worker is killed in this call, and nobody makes it again.
        await asyncio.sleep(600)
        return f"charged {number}"

    @tool(effect="idempotent")
    async def store(number: int, context: Context) -> str:
        await asyncio.to_thread(
            ledger.note, url, context.run_id, context.ticket_id, context.key, context.tool
        )
        return f"stored {number}"

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        return f"paid {amount}"

    def agent(name: str, *calls: str) -> Agent:
        def model(messages: list[dict[str, str]]) -> str:
            replies = [*calls, finish()]
            return replies[min(turn_of(messages), len(replies) - 1)]

        return Agent(model, tools=[charge, store, pay], name=name, delegate=False)

    return [
        agent("storing", *(call("store", number=number) for number in range(5))),
        agent("paying", call("pay", amount=7)),
        agent("charging", call("store", number=1), call("charge", number=2)),
    ]


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("address")
    options = parser.parse_args()
    client = await Client.connect(options.address)
    with TicketStore(options.url) as store:
        fleet = fleet_on_temporal(store, options.address, *agents(options.url))
        worker = Worker(
            client,
            task_queue=QUEUE,
            workflows=[Dispatch],
            activities=activities(fleet),
            graceful_shutdown_timeout=timedelta(seconds=1),
        )
        async with worker:
            print("ready", flush=True)
            await fleet.sweep(every=0.5, waiting=3)


if __name__ == "__main__":
    asyncio.run(main())
