"""Runs that rest, or are lost, in the process of those who wait for them."""

import asyncio

import psycopg
import pytest

from callslip import Agent, tool
from fleets.here import LONG, call, finish, turns, until, working

pytestmark = pytest.mark.timeout(120)


def rob(url, run_id):
    """Have another worker, which does nothing, take the run over."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE callslip.run SET epoch = epoch + 1 WHERE id = %s", [run_id])


async def test_who_waits_beside_a_worker_that_has_lost_the_run_gets_its_result(web, database):
    lost, calls = asyncio.Event(), []

    @tool(effect="idempotent")
    async def work() -> str:
        """Work."""
        calls.append(1)
        await lost.wait()
        return "worked"

    agent = Agent(turns(call("work"), finish()), tools=[work], name="clerk")
    async with working(database, agent, lease=5) as fleet:
        run_id = await fleet.submit("clerk", "?")
        await until(lambda: web.tickets(run=run_id), "the call is under way")
        waiting = asyncio.create_task(fleet.result(run_id, timeout=LONG))
        watching = asyncio.create_task(all_of(fleet.store.watch(run_id)))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(rob, database, run_id)
        lost.set()
        assert (await waiting).value == "done"
        kinds = [event.kind for event in await watching]
    assert (kinds.count("run_finished"), len(calls)) == (1, 2)


async def all_of(watch):
    return [event async for event in watch if hasattr(event, "seq")]


async def test_a_child_run_at_rest_goes_on_when_its_result_is_late(web, database):
    @tool(external=True, timeout=2)
    def sign() -> str:
        """Sign."""

    clerk = Agent(turns(call("sign"), finish()), tools=[sign], name="clerk")
    boss = Agent(
        turns(call("clerk", task="Pay."), finish("seen")),
        tools=[clerk.as_tool(description="Pays.")],
        name="boss",
    )
    async with working(database, boss) as fleet:
        run_id = await fleet.submit("boss", "?")
        result = await fleet.result(run_id, timeout=LONG)
    assert (result.value, result.stop_reason) == ("seen", "finished")
    child = web.run(f"{run_id}.T1")
    assert (child.stop_reason, child.tickets[0].outcome) == ("finished", "error")
