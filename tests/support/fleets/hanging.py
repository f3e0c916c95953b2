"""`python -m fleets.hanging URL`: a worker whose tool holds the interpreter for good."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json

from callslip import Agent, TicketStore, tool
from callslip.fleet import Fleet
from scripted import turn_of

__all__ = ["hanging_agent"]

_REPLIES = [
    json.dumps({"thought": "t", "action": "hang", "args": {}}),
    json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": True}
    ),
]


def hanging_agent(*, hangs: bool) -> Agent[str]:
    """Return an agent that calls a tool, which never ends or ends at once."""

    @tool(effect="idempotent")
    def hang() -> str:
        """Hang."""
        if hangs:
            # A library like this one keeps the lock of the interpreter while it works.
            ctypes.PyDLL(None).sleep(600)
        return "ended"

    return Agent(lambda messages: _REPLIES[min(turn_of(messages), 1)], tools=[hang], name="clerk")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--stuck", type=float)
    options = parser.parse_args()
    with TicketStore(options.url) as store:
        fleet = Fleet(store, [hanging_agent(hangs=True)], lease=1, stuck=options.stuck)
        await fleet.work()


if __name__ == "__main__":
    asyncio.run(main())
