"""A worker of an earlier version, which goes on with what has begun and takes nothing new."""

import asyncio

import psycopg
import pytest

from callslip import Agent
from callslip.cli import main
from callslip.fleet import Fleet, status
from fleets.here import LONG, call, finish, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)


def old_agent():
    return Agent(turns(call("pay", amount=7), finish("old")), tools=[pay], name="clerk")


def new_agent():
    return Agent(turns(finish("new")), tools=[], name="clerk")


async def begun(web, database, **submitted):
    """A run that the old version has begun, and that rests."""
    async with working(database, old_agent()):
        run_id = await Fleet(web, default_limit=1).submit("clerk", "Pay 7.", **submitted)
        await until(lambda: web.tickets(run=run_id, awaiting_approval=True), "the call is parked")
        await until(lambda: status(web).resting == 1, "the run rests")
    return run_id


def touched(url):
    """How often each message of the queue was read."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT read_ct FROM pgmq.q_callslip_default").fetchall()
    return [count for (count,) in rows]


async def test_it_takes_what_has_begun_and_touches_nothing_new(web, database):
    run_id = await begun(web, database)
    fleet = Fleet(web)
    # More than it has slots, and all before the run that it goes on with.
    new = [await fleet.submit("clerk", str(number)) for number in range(5)]
    async with working(database, old_agent(), new=False, slots=2):
        web.run(run_id).approve("T1")
        assert (await fleet.result(run_id, timeout=LONG)).value == "old"
        await until(lambda: touched(database) == [0] * 5, "only the message of the old run goes")
        async with working(database, new_agent()):
            for run_id in new:
                assert (await fleet.result(run_id, timeout=LONG)).value == "new"
            assert {worker.refused for worker in status(web).workers} == {0}


async def test_runs_of_the_new_version_are_left_to_it(web, database):
    run_id = await begun(web, database)
    web.run(run_id).approve("T1")
    async with working(database, new_agent(), new=False):
        # It learns that from the first one of them, which it leaves in its queue at once. A claim
        # that was on its way by then may read it once more.
        await until(lambda: touched(database)[0], "it was read")
        await asyncio.sleep(0.5)
        assert (before := touched(database)) in ([1], [2])
        await asyncio.sleep(1.5)
        assert touched(database) == before
        (claims,) = web.query("SELECT claims FROM callslip.run")
    assert claims == {"claims": 0}
    async with working(database, old_agent(), new=False):
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "old"


async def test_the_limit_of_a_tenant_holds(web, database):
    gate = asyncio.Event()

    async def model(messages):
        await gate.wait()
        return finish("new")

    old = await begun(web, database, tenant="acme")
    fleet = Fleet(web, default_limit=1)
    async with working(database, Agent(model, tools=[], name="clerk")):
        new = await fleet.submit("clerk", "?", tenant="acme")
        await until(lambda: status(web).queues[0].in_progress == 1, "the new run is driven")
        web.run(old).approve("T1")
        async with working(database, old_agent(), new=False):
            await asyncio.sleep(1.5)
            assert sorted(touched(database)) == [0, 1]
        gate.set()
        assert (await fleet.result(new, timeout=LONG)).value == "new"
    async with working(database, old_agent(), new=False):
        assert (await fleet.result(old, timeout=LONG)).value == "old"


def test_the_command_line_has_it(web, monkeypatch):
    seen = []

    async def work(**options):
        seen.append(options)

    fleet = Fleet(web, [new_agent()])
    monkeypatch.setattr(fleet, "work", work)
    monkeypatch.setattr("callslip.cli._fleet._fleet", lambda name: fleet)
    assert main(["work", "app:fleet", "--no-new"]) == 0
    assert main(["work", "app:fleet"]) == 0
    assert [options["new"] for options in seen] == [False, True]
