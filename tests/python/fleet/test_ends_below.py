"""A run ends before its driver has opened the runs below it: they end with it."""

import psycopg
import pytest

from callslip import Agent, Limits, ModelError, RunCancelled, replay, tool
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)


@tool(queue="nowhere")
def dig() -> str:
    """Dig."""
    raise AssertionError


CLERK = Agent(turns(call("pay", amount=7), finish()), tools=[pay], name="clerk")
# A call that waits for a worker counts as work, and one that awaits approval does not.
DIGGER = Agent(turns(call("dig"), finish()), tools=[dig], name="digger")
OFFICE = Agent(
    turns(call("clerk", task="Pay 7."), finish()), tools=[CLERK.as_tool()], name="office"
)
BOSS = Agent(turns(call("office", task="Pay 7."), finish()), tools=[OFFICE.as_tool()], name="boss")
YARD = Agent(turns(call("digger", task="Dig."), finish()), tools=[DIGGER.as_tool()], name="yard")
BUILDER = Agent(turns(call("yard", task="Dig."), finish()), tools=[YARD.as_tool()], name="builder")


def queued(web):
    return web.query("SELECT FROM pgmq.q_callslip_default")


async def at_rest(web, database, agent=BOSS, limits=None, **options):
    """Return the id of a run that rests, as the two runs below it do."""
    async with working(database, agent, **options):
        run_id = await Fleet(web).submit(agent.name, "Pay 7.", limits=limits)
        waits = "SELECT FROM callslip.ticket WHERE parked OR tool = 'dig'"
        await until(lambda: web.query(waits), "a call waits")
        await until(lambda: not queued(web), "it rests")
    assert len(web.runs(status="running")) == 3
    return run_id


def judge(web, run_id):
    assert web.runs(status="running") == []
    below = [run for run in web.runs() if run.run_id != run_id]
    assert [run.stop_reason for run in below] == ["cancelled", "cancelled"]
    for run in below:
        assert all(ticket.status == "COMPLETED" for ticket in web.run(run.run_id).tickets)
    assert queued(web) == []


async def test_a_run_that_is_given_up(web, database):
    run_id = await at_rest(web, database)
    with psycopg.connect(database, autocommit=True) as connection:
        # As after five claims that have written nothing.
        connection.execute(
            "UPDATE callslip.run SET claims = 5, claimed_next = next WHERE id = %s", [run_id]
        )
        connection.execute("SELECT callslip.wake(%s)", [run_id])
    async with working(database, BOSS):
        with pytest.raises(ModelError, match="5 workers in a row"):
            await Fleet(web).result(run_id, timeout=LONG)
        await until(lambda: not queued(web), "it is left")
    judge(web, run_id)


async def test_a_run_that_is_cancelled(web, database):
    run_id = await at_rest(web, database)
    web.run(run_id).cancel()
    async with working(database, BOSS):
        with pytest.raises(RunCancelled):
            await Fleet(web).result(run_id, timeout=LONG)
        await until(lambda: not queued(web), "it is left")
    judge(web, run_id)


async def test_a_worker_that_dies_right_after_the_end_of_a_run(web, database, monkeypatch):
    run_id = await at_rest(web, database)
    web.run(run_id).cancel()
    with monkeypatch.context() as patch:
        patch.setattr("callslip._runtime.session._abandon_children", lambda run: None)
        async with working(database, BOSS):
            with pytest.raises(RunCancelled):
                await Fleet(web).result(run_id, timeout=LONG)
    assert len(web.runs(status="running")) == 2
    with psycopg.connect(database, autocommit=True) as connection:
        # As if it had not said that the run is over.
        connection.execute(
            "UPDATE callslip.run SET msg = callslip.send(id, queue, lane, 0, false) WHERE id = %s",
            [run_id],
        )
    async with working(database, BOSS):
        await until(lambda: not queued(web), "it is left")
    judge(web, run_id)


async def test_a_run_whose_time_is_over(web, database):
    run_id = await at_rest(web, database, BUILDER, Limits(seconds=3))
    async with working(database, BUILDER):
        assert (await Fleet(web).result(run_id, timeout=LONG)).stop_reason == "limit"
        await until(lambda: not queued(web), "it is left")
    judge(web, run_id)


async def test_a_run_whose_time_is_over_with_runs_of_other_workers_below_it(web, database):
    run_id = await at_rest(web, database, BUILDER, Limits(seconds=3), children="anywhere")
    async with working(database, BUILDER, children="anywhere"):
        assert (await Fleet(web).result(run_id, timeout=LONG)).stop_reason == "limit"
        await until(lambda: not web.runs(status="running"), "all are over")
        await until(lambda: not queued(web), "all are left")
    judge(web, run_id)


async def test_a_run_whose_time_is_over_while_nobody_makes_its_call(web, database):
    async with working(database, DIGGER):
        run_id = await Fleet(web).submit("digger", "Dig.", limits=Limits(seconds=2))
        result = await Fleet(web).result(run_id, timeout=LONG)
        assert (result.stop_reason, result.tickets[0].outcome) == ("limit", "cancelled")
        await until(lambda: not web.query("SELECT FROM callslip.run WHERE is_call"), "it is gone")


async def test_a_run_below_has_a_time_of_its_own(web, database):
    office = Agent(
        turns(call("digger", task="Dig."), finish()),
        tools=[DIGGER.as_tool()],
        name="office",
        limits=Limits(seconds=2),
    )
    model = turns(call("office", task="Pay 7."), finish("without it"))
    async with working(database, Agent(model, tools=[office.as_tool()], name="boss")):
        run_id = await Fleet(web).submit("boss", "Pay 7.")
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "without it"
        await until(lambda: not queued(web), "it is left")
    assert sorted(run.stop_reason for run in web.runs()) == ["cancelled", "finished", "limit"]


@pytest.mark.parametrize("children", ["here", "anywhere"])
async def test_a_run_whose_child_runs_await_approval_has_all_its_time_left(web, database, children):
    run_id = await at_rest(web, database, BOSS, Limits(seconds=30), children=children)
    clerk = f"{run_id}.T1.T1"
    if children == "here":
        assert web.query("SELECT FROM callslip.run WHERE is_later") == []
    with psycopg.connect(database, autocommit=True) as connection:
        # As if it had rested for a minute.
        connection.execute("UPDATE callslip.event SET at = at - 60")
    web.run(clerk).approve("T1")
    async with working(database, BOSS, children=children):
        assert (await Fleet(web).result(run_id, timeout=LONG)).stop_reason == "finished"
    assert replay(web.run(run_id)).log == web.run(run_id).log
