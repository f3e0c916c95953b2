"""Faults of a program's own functions in a worker, and what others may tell a run."""

import asyncio

import psycopg
import pytest

from callslip import Agent, RunCancelled, tool
from callslip.fleet import Fleet, status
from fleets.here import LONG, call, finish, make_due, turns, until, working

pytestmark = pytest.mark.timeout(120)


async def test_a_check_that_raises_is_not_tried_without_pause(web, database):
    tried = []

    def check(task, context):
        tried.append(task)
        if "bad" in task:
            raise LookupError("no such customer")

    agent = Agent(turns(finish("ok")), check_task=check, name="clerk")
    async with working(database, agent):
        fleet = Fleet(web)
        bad = await fleet.submit("clerk", "bad")
        await until(lambda: tried, "it was tried")
        await asyncio.sleep(1.5)
        good = await fleet.submit("clerk", "good")
        assert (await fleet.result(good, timeout=LONG)).value == "ok"
    assert tried.count("bad") == 1
    assert [run.run_id for run in web.runs(status="finished")] == [good]
    # Nothing is lost: it is tried again where it works.
    make_due(database)
    async with working(database, Agent(turns(finish("ok")), name="clerk")):
        await until(lambda: len(web.runs(status="finished")) == 2, "it has ended")
    assert web.run(bad).stop_reason == "finished"


@pytest.mark.parametrize("effect", ["once", "idempotent"])
async def test_a_call_elsewhere_that_raises_a_cancelled_error_has_failed(web, database, effect):
    made = []

    @tool(queue="gpu", effect=effect)
    async def send() -> str:
        """Send."""
        made.append(1)
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner
        return "sent"

    agent = Agent(turns(call("send"), finish("ok")), tools=[send], name="clerk")
    async with working(database, agent, queues=["default", "gpu"]):
        fleet = Fleet(web)
        result = await fleet.result(await fleet.submit("clerk", "Send."), timeout=LONG)
    (ticket,) = result.tickets
    assert (len(made), ticket.outcome) == (1, "error")
    assert "CancelledError" in ticket.error


async def test_a_run_that_goes_on_after_its_end_can_be_cancelled(web, database):
    began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.sleep(60)
        return "waited"

    def model(messages):
        return call("wait") if "more" in str(messages) else finish("first")

    async with working(database, Agent(model, tools=[wait], name="clerk")):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "go")
        await fleet.result(run_id, timeout=LONG)
        run = web.run(run_id)
        going_on = run.send("more")
        await asyncio.wait_for(began.wait(), LONG)
        run.cancel()
        with pytest.raises(RunCancelled):
            await asyncio.wait_for(going_on, LONG)
    assert web.run(run_id).stop_reason == "cancelled"


async def test_who_may_tell_may_not_make_up_the_result_of_a_call(web, database):
    @tool(queue="gpu")
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = Agent(turns(call("pay"), finish("ok")), tools=[pay], name="clerk")
    async with working(database, agent):
        run_id = await Fleet(web).submit("clerk", "Pay.")
        await until(lambda: web.tickets(run=run_id), "the call is handed out")
        # Neither a run nor a call counts twice.
        await until(lambda: status(web).waiting_below == 1, "it rests")
        assert (status(web).queued, status(web).running) == (0, 1)
    with psycopg.connect(database, autocommit=True) as connection:
        for kind in ("outcome", "ended", "x"):
            with pytest.raises(psycopg.errors.RaiseException, match="expected say, approve, deny"):
                connection.execute(
                    'SELECT callslip.tell(%s, %s, 1, \'{"ok": "paid"}\', NULL)', [run_id, kind]
                )
    assert web.query("SELECT FROM callslip.inbox") == []


async def test_a_check_of_an_answer_that_raises_leaves_the_run(web, database):
    asked = []

    def model(messages):
        asked.append(1)
        return finish("42")

    def broken(value, context):
        raise LookupError("the ledger is down")

    agent = Agent(model, check_answer=broken, name="clerk")
    async with working(database, agent):
        run_id = await Fleet(web).submit("clerk", "How many?")
        await until(lambda: asked, "the model was asked")
        await until(
            lambda: web.query("SELECT FROM callslip.run WHERE msg IS NOT NULL AND is_later")
        )
    assert web.run(run_id).stop_reason is None
    make_due(database)
    async with working(database, agent.replace(check_answer=None)):
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "42"
    # The answer was there.
    assert len(asked) == 1


async def test_of_runs_that_may_have_ended_their_workers_one_is_driven_at_a_time(web, database):
    under_way, most, go = [], [0], asyncio.Event()

    @tool(effect="idempotent")
    async def work() -> str:
        """Work."""
        under_way.append(1)
        most[0] = max(most[0], len(under_way))
        try:
            await go.wait()
        finally:
            under_way.pop()
        return "worked"

    agent = Agent(turns(call("work"), finish("ok")), tools=[work], name="clerk")
    fleet = Fleet(web)
    run_ids = [await fleet.submit("clerk", "x") for _ in range(5)]
    async with working(database, agent, grace=0):
        await until(lambda: len(under_way) == 5)
    await until(lambda: not under_way)
    with psycopg.connect(database, autocommit=True) as connection:
        # As after two workers that were killed.
        connection.execute("UPDATE callslip.run SET claims = 2, claimed_next = next")
    most[0] = 0
    async with working(database, agent):
        put_off = "SELECT FROM callslip.run WHERE is_later"
        await until(lambda: under_way and len(web.query(put_off)) == 4)
        go.set()
        # None of them waits for as long as a run that has failed, whoever is driven before it.
        await until(lambda: len(web.runs(status="finished")) == 5, "all have ended")
    assert most[0] == 1
    assert {web.run(run_id).stop_reason for run_id in run_ids} == {"finished"}
