"""`python -m fleets.worker URL`: one worker of a fleet, until it is killed."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from typing import Literal

from callslip import TicketStore
from callslip.fleet import Fleet
from fleets.agents import agents


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--ledger")
    parser.add_argument("--lease", type=float, default=3.0)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--wait", type=float, default=0.01)
    parser.add_argument("--grace", type=float, default=5.0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    known = agents(options.ledger or options.url, wait=options.wait)
    with TicketStore(options.url) as store:
        # Workers need not agree on where child runs are driven.
        children: Literal["here", "anywhere"] = "anywhere" if os.getpid() % 2 else "here"
        fleet = Fleet(store, known, lease=options.lease, children=children)
        print("ready", flush=True)
        queues = ["default", "there"]
        await fleet.work(queues=queues, slots=options.slots, grace=options.grace)


if __name__ == "__main__":
    asyncio.run(main())
