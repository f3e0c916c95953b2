"""Runs that wait: for their time, for a decision, for a child run, or for whoever has them."""

import asyncio
import time

import psycopg
import pytest

from callslip import Agent, StoreError, TicketStore, UsageError
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, make_due, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)


def boss_of(helper, *tools):
    says = [call("ask", task="How many?"), *(call("pay", amount=1) for _ in tools), finish("7")]
    return Agent(turns(*says), tools=[helper.as_tool(name="ask"), *tools], name="boss")


def rests(web):
    return not web.query("SELECT FROM callslip.run WHERE msg IS NOT NULL")


async def resting_child(web, url, helper, **options):
    """The id of a run that rests, because its child run awaits approval."""
    async with working(url, boss_of(helper), **options):
        run_id = await Fleet(web).submit("boss", "x")
        await until(lambda: web.tickets(run=f"{run_id}.T1", awaiting_approval=True))
        await until(lambda: rests(web))
    return run_id


@pytest.mark.parametrize("what", ["resume", "compact", "drive", "drive by another", "send"])
async def test_nothing_begins_a_run_before_its_time(web, database, what):
    fleet = Fleet(web, [Agent(turns(finish()), name="clerk")], dispatch=lambda _: None)
    run_id = await fleet.submit("clerk", "x", at=time.time() + 3600)
    agent = Agent(turns(finish()), name="clerk", store=web)
    if what == "send":
        web.run(run_id).send("Be quick.")
    else:
        others = Fleet(web, [agent.replace(name="other")], dispatch=lambda _: None)
        with pytest.raises((StoreError, UsageError)):
            await {
                "resume": lambda: agent.resume(run_id),
                "compact": lambda: asyncio.to_thread(web.compact, run_id),
                "drive": lambda: fleet.drive(run_id),
                "drive by another": lambda: others.drive(run_id),
            }[what]()
    async with working(database, agent):
        done = await Fleet(web).submit("clerk", "y")
        await Fleet(web).result(done, timeout=LONG)
        await asyncio.sleep(0.3)
        assert [run.run_id for run in web.runs() if run.protocol] == [done]
        make_due(database)
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "done"


async def test_a_run_that_waits_for_its_time_can_be_cancelled(web, database):
    run_id = await Fleet(web).submit("clerk", "x", at=time.time() + 3600)
    web.run(run_id).cancel()
    async with working(database, Agent(turns(finish()), name="clerk")):
        await until(lambda: web.runs(status="finished"))
    assert web.run(run_id).stop_reason == "cancelled"


async def test_a_message_for_a_child_run_that_has_ended_waits_for_who_resumes_it(web, database):
    helper = Agent(turns(finish("7"), finish("8")), name="helper")
    async with working(database, boss_of(helper, pay)):
        run_id = await Fleet(web).submit("boss", "x")
        await until(lambda: web.tickets(run=run_id, awaiting_approval=True))
        await until(lambda: rests(web))
        web.run(f"{run_id}.T1").send("And now?")
        # The run above it has its result, and nothing to do with this.
        assert rests(web)
        web.run(run_id).approve("T2")
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "7"
    assert (await helper.replace(store=web).resume(f"{run_id}.T1")).value == "8"
    assert not web.query("SELECT FROM callslip.inbox")


async def test_a_decision_finds_a_child_run_that_is_being_taken_by_itself(web, database):
    helper = Agent(turns(call("pay", amount=1), finish("7")), tools=[pay], name="helper")
    run_id = await resting_child(web, database, helper)
    child = web.run(f"{run_id}.T1")

    def waits(times):
        sql = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return len(web.query(sql)) >= times

    # Both wait for the run above: it is taken first, and told then.
    with psycopg.connect(database) as other, TicketStore(f"{database}?application_name=one") as one:
        other.execute("SELECT FROM callslip.run WHERE id = %s FOR UPDATE", [run_id])
        resuming = asyncio.create_task(helper.replace(store=one).resume(child.id))
        await until(lambda: waits(1))
        with TicketStore(f"{database}?application_name=two") as two:
            told = await asyncio.to_thread(two.run, child.id)
            telling = asyncio.create_task(asyncio.to_thread(told.approve, "T1"))
            await until(lambda: waits(2))
            other.rollback()
            await telling
            assert (await asyncio.wait_for(resuming, LONG)).value == "7"
    async with working(database, boss_of(helper)):
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "7"


@pytest.mark.parametrize("children", ["here", "anywhere"])
async def test_a_run_delegates_anew_when_its_child_run_is_deleted(web, database, children):
    helper = Agent(turns(call("pay", amount=1), finish("7")), tools=[pay], name="helper")
    run_id = await resting_child(web, database, helper, children=children)
    assert web.delete(f"{run_id}.T1") == 1
    async with working(database, boss_of(helper), children=children):
        await until(lambda: web.tickets(run=f"{run_id}.T1", awaiting_approval=True))
        web.run(f"{run_id}.T1").approve("T1")
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "7"


async def test_a_run_whose_child_run_is_driven_elsewhere_is_not_tried_without_pause(web, database):
    helper = Agent(turns(call("pay", amount=1), finish("7")), tools=[pay], name="helper")
    run_id = await resting_child(web, database, helper)
    with TicketStore(f"{database}?application_name=one") as one:
        resuming = asyncio.create_task(helper.replace(store=one).resume(f"{run_id}.T1"))
        await until(lambda: not rests(web))
        async with working(database, boss_of(helper)):
            web.run(run_id).send("Be quick.")
            await asyncio.sleep(2)
            resumed = [event.kind for event in web.run(run_id).log].count("run_resumed")
            assert resumed <= 2
            web.run(f"{run_id}.T1").approve("T1")
            assert (await asyncio.wait_for(resuming, LONG)).value == "7"
            make_due(database)
            assert (await Fleet(web).result(run_id, timeout=LONG)).value == "7"


@pytest.mark.parametrize("what", ["drive", "resume", "stream"])
async def test_a_run_that_is_taken_by_a_cancelled_task_is_left(web, database, what):
    agent = Agent(turns(call("pay", amount=1), finish("ok")), tools=[pay], name="clerk")
    with TicketStore(f"{database}?application_name=one") as one:
        fleet = Fleet(one, [agent], lease=3600, dispatch=lambda _: None)
        run_id = await fleet.submit("clerk", "x")
        if what != "drive":
            assert await fleet.drive(run_id) == "rests"
        mine = agent.replace(store=one)

        async def stream():
            async with mine.stream(run=run_id):
                pass

        with psycopg.connect(database) as slow:
            slow.execute("SELECT FROM callslip.run WHERE id = %s FOR UPDATE", [run_id])
            take = {"drive": lambda: fleet.drive(run_id), "resume": lambda: mine.resume(run_id)}
            task = asyncio.create_task(take.get(what, stream)())
            waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            await until(lambda: web.query(waiting))
            task.cancel()
            await asyncio.wait([task])
            slow.rollback()
        other = Fleet(web, [agent], lease=3600, dispatch=lambda _: None)

        async def drives():
            while True:
                try:
                    return await other.drive(run_id)
                except StoreError:
                    await asyncio.sleep(0.05)

        assert await asyncio.wait_for(drives(), LONG) == "rests"


async def test_an_engine_drives_child_runs_by_the_agent_at_the_top(web):
    due = []
    helper = Agent(turns(finish("7")), name="helper")
    fleet = Fleet(web, [boss_of(helper)], dispatch=due.append, children="anywhere")
    run_id = await fleet.submit("boss", "x")
    async with asyncio.timeout(LONG):
        while due:
            await fleet.drive(due.pop(0))
    assert web.run(run_id).stop_reason == "finished"
    assert len(web.runs(status="finished")) == 2
