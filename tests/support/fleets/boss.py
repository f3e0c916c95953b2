"""Scripted agents whose runs rest or end at once, and a database as two processes have it."""

from __future__ import annotations

from callslip import Agent
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, pay, turns, working

__all__ = ["BOSS", "QUICK", "ended_run", "from_far"]


_CHILD = Agent(turns(call("pay", amount=2), finish("below")), tools=[pay], name="child")

BOSS = Agent(
    turns(call("pay", amount=1), call("child", task="Pay 2."), call("pay", amount=3), finish()),
    tools=[pay, _CHILD.as_tool(description="Pays.")],
    name="boss",
)
"""It rests three times: at T1, a call of its own, at T1 of T2, its child run, and at T3."""

QUICK = Agent(turns(finish("below")), name="quick")


def from_far(url: str) -> str:
    """Return the same database for another process: objects of one address share their feeds."""
    return f"{url}?application_name=far"


async def ended_run(fleet: Fleet, url: str) -> str:
    """Return a run of `QUICK` that a worker has driven to its end."""
    async with working(url, QUICK):
        run_id = await fleet.submit("quick", "a")
        await fleet.result(run_id, timeout=LONG)
    return run_id
