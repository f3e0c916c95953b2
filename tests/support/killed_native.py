"""A native run that kills its process at an event.

Its model is Anthropic's library against a service on this machine, and a file has a line for each
payment.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anthropic

from callslip import Agent, TicketStore, as_model, tool
from callslip.events import Event


@contextmanager
def agent_of(store: TicketStore, url: str, paid: Path) -> Iterator[Agent]:
    @tool(repeatable=True)
    def weather(city: str) -> str:
        """Get the weather of a city."""
        return f"4 degrees in {city}"

    @tool(needs_approval=True)
    def pay(amount: float) -> str:
        """Pay an amount."""
        with paid.open("a") as file:
            file.write(f"{amount}\n")
        return "paid"

    thinking = {"type": "enabled", "budget_tokens": 1024}
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        model = as_model(client, model="m", thinking=thinking, max_tokens=2048)
        yield Agent(model, protocol="native", tools=[weather, pay], store=store, name="a")


async def run(agent: Agent, stop_at: int) -> None:
    async with agent.stream("Do it.", approve=lambda _: True) as stream:
        async for item in stream:
            if isinstance(item, Event) and item.seq >= stop_at:
                os.kill(os.getpid(), signal.SIGKILL)


def begin(path: str, url: str, paid: str, stop_at: int) -> None:
    """Run in a process of its own, which is killed at an event."""
    with TicketStore(path) as store, agent_of(store, url, Path(paid)) as agent:
        asyncio.run(run(agent, stop_at))
