"""Agents of one name that differ: by a deploy, or because two of them have no name of their own."""

import asyncio

import psycopg
import pytest

from callslip import Agent, TicketStore, UsageError, replay, tool
from callslip.cli import main
from callslip.fleet import Fleet, _agents, _driven, _worker, status
from fleets.here import LONG, call, finish, make_due, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)

BOTH = ["default", "gpu"]


@tool
def extra() -> str:
    """Do nothing."""
    return "nothing"


def query(database, sql):
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(sql).fetchall()


def queued(web):
    return web.query("SELECT id FROM callslip.run WHERE msg IS NOT NULL")


async def parked(web, *runs):
    for run_id in runs:
        await until(lambda run_id=run_id: web.tickets(run=run_id, awaiting_approval=True))
    await until(lambda: not queued(web), "all rest")


async def test_a_task_is_not_done_by_the_agent_above_it(web, database, monkeypatch):
    monkeypatch.setattr(_worker, "_ANNOUNCE", 0.1)
    called = []

    @tool
    def secret() -> str:
        """Tell what only the boss knows."""
        called.append(1)
        return "secret"

    def boss(name):
        helper = Agent(turns(finish("7")), name="helper")
        own = turns(call("secret"), finish("of the boss"))
        asking = turns(call(name, task="How many?"), finish("ok"))

        def model(messages):
            return (own if "Count" not in str(messages) else asking)(messages)

        tools = [secret, helper.as_tool(name=name)]
        return Agent(model, tools=tools, name="boss")

    run_id = await Fleet(web).submit("boss", "Count")
    with TicketStore(database) as store:
        # Nobody drives the child run.
        assert await Fleet(store, [boss("ask")], children="anywhere").drive(run_id) == "rests"
    children = web.query("SELECT agent, next FROM callslip.run WHERE parent IS NOT NULL")
    assert children == [{"agent": "helper", "next": 0}]
    async with working(database, boss("ask_helper"), children="anywhere"):
        await until(lambda: any(one.refused for one in status(web).workers), "it is given back")
    assert called == []
    async with working(database, boss("ask"), children="anywhere"):
        make_due(database)
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "ok"
    assert web.runs(parent=run_id)[0].agent == "helper"
    assert called == []


def team(*tools):
    """A boss who pays, or has a helper pay that has these tools."""
    helper = Agent(turns(call("pay", amount=1), finish("paid")), tools=tools, name="helper")
    asking, paying = call("ask", task="Pay."), call("pay", amount=2)

    def model(messages):
        return turns(asking if "delegate" in str(messages) else paying, finish("ok"))(messages)

    return Agent(model, tools=[helper.as_tool(name="ask"), pay], name="boss")


async def test_a_run_below_of_another_version_holds_up_no_other_run(web, database):
    fleet = Fleet(web)
    async with working(database, team(pay, extra)):
        old = await fleet.submit("boss", "delegate")
        await parked(web, f"{old}.T1")
    async with working(database, team(pay)):
        new = await fleet.submit("boss", "pay")
        await parked(web, new)
        web.run(f"{old}.T1").approve("T1")
        await until(lambda: queued(web), "it was given back")
        web.run(new).approve("T1")
        assert (await fleet.result(new, timeout=LONG)).value == "ok"


def clerk(*tools):
    def model(messages):
        replies = [finish("short")] if "Short" in str(messages) else [call("pay", amount=1)]
        return turns(*replies, finish("paid"))(messages)

    return Agent(model, tools=tools, name="clerk")


async def test_a_message_to_a_run_of_the_earlier_version_goes_to_that(web, database):
    fleet = Fleet(web)
    async with working(database, clerk(pay, extra)):
        short, first = [await fleet.submit("clerk", text) for text in ("Short", "Pay.")]
        assert (await fleet.result(short, timeout=LONG)).value == "short"
        await parked(web, first)
    async with working(database, clerk(pay), accept=[clerk(pay, extra)]):
        assert (await asyncio.wait_for(web.run(short).send("More?"), LONG)).value == "paid"
        web.run(first).approve("T1")
        assert (await fleet.result(first, timeout=LONG)).value == "paid"


def painter(by):
    @tool(queue="gpu", effect="idempotent")
    def render(scene: str) -> str:
        """Render."""
        return f"{scene} by {by}"

    return Agent(turns(call("render", scene="dawn"), finish("ok")), tools=[render], name="painter")


async def test_calls_of_new_runs_are_made_by_the_present_version(web, database):
    async with working(database, painter("new"), accept=[painter("old")], queues=BOTH):
        fleet = Fleet(web)
        result = await fleet.result(await fleet.submit("painter", "Paint."), timeout=LONG)
    assert result.tickets[0].result == "dawn by new"


def test_two_agents_of_one_name_with_a_tool_for_other_workers(web):
    tops = [
        Agent(turns(finish()), tools=[painter(by).as_tool(name="ask")], name=by)
        for by in ("one", "two")
    ]
    with pytest.raises(UsageError, match="two of 'painter' with a tool 'render'.*pass name="):
        Fleet(web, tops)
    helper = painter("both")
    Fleet(web, [Agent(turns(finish()), tools=[helper.as_tool()], name=name) for name in "ab"])


async def test_a_worker_that_takes_nothing_new_makes_the_calls_of_what_has_begun(web, database):
    fleet = Fleet(web)

    @tool(queue="gpu", effect="idempotent")
    def render(scene: str) -> str:
        """Render."""
        return scene

    replies = turns(call("pay", amount=1), call("render", scene="dawn"), finish("ok"))
    agent = Agent(replies, tools=[pay, render], name="painter")
    async with working(database, agent):
        run_id = await fleet.submit("painter", "Paint.")
        await parked(web, run_id)
    new = await fleet.submit("painter", "Paint again.")
    async with working(database, agent, new=False, queues=BOTH):
        web.run(run_id).approve("T1")
        assert (await fleet.result(run_id, timeout=LONG)).value == "ok"
    assert web.query("SELECT next FROM callslip.run WHERE id = $1", [new]) == [{"next": 0}]


async def test_a_later_version_continues_what_an_earlier_one_began(web, database, monkeypatch):
    compared = []
    fits = _agents._fits
    monkeypatch.setattr(_agents, "_fits", lambda *of: compared.append(of) or fits(*of))
    fleet = Fleet(web)
    async with working(database, clerk(pay)):
        runs = [await fleet.submit("clerk", "Pay.") for _ in range(5)]
        await parked(web, *runs)
    compared.clear()
    async with working(database, clerk(extra, pay)):
        for run_id in runs:
            web.run(run_id).approve("T1")
            assert (await fleet.result(run_id, timeout=LONG)).value == "paid"
        new = await fleet.submit("clerk", "Pay.")
        await parked(web, new)
    # One run of each shape was compared, and no other.
    assert len(compared) == 1
    for run_id in runs:
        assert replay(web.run(run_id)).stop_reason == "finished"


async def test_an_earlier_version_leaves_later_runs_at_once(web, database, monkeypatch):
    monkeypatch.setattr(_worker, "_ANNOUNCE", 0.1)
    fleet = Fleet(web)
    async with working(database, clerk(pay, extra)):
        runs = [await fleet.submit("clerk", "Pay.") for _ in range(3)]
        await parked(web, *runs)
    async with working(database, clerk(pay)):
        for run_id in runs:
            web.run(run_id).approve("T1")
        await until(lambda: any(one.refused for one in status(web).workers), "one is left")
        free = """
            SELECT run.id FROM callslip.run JOIN pgmq.q_callslip_default AS q ON q.msg_id = run.msg
            WHERE NOT run.is_later AND q.vt <= clock_timestamp() AND run.claims = 0"""
        await until(lambda: len(query(database, free)) == 3, "all are there for others")
        # The earlier version works on.
        own = await fleet.submit("clerk", "Short")
        assert (await fleet.result(own, timeout=LONG)).value == "short"
        assert len(query(database, free)) == 3
        async with working(database, clerk(pay, extra)):
            for run_id in runs:
                assert (await fleet.result(run_id, timeout=LONG)).value == "paid"


async def test_both_versions_work_side_by_side(web, database):
    fleet = Fleet(web)
    async with working(database, clerk(pay)), working(database, clerk(pay, extra)):
        runs = [await fleet.submit("clerk", "Pay.") for _ in range(12)]
        await parked(web, *runs)
        for run_id in runs:
            web.run(run_id).approve("T1")
        for run_id in runs:
            assert (await fleet.result(run_id, timeout=LONG)).value == "paid"


def asking(*tools):
    """An agent whose child run has these tools, and pays with one of them."""
    inner = Agent(turns(call("pay", amount=1), finish("paid")), tools=tools, name="inner")
    return Agent(
        turns(call("inner", task="Pay."), finish("ok")), tools=[inner.as_tool()], name="outer"
    )


async def test_a_run_below_of_another_version_is_left_with_one_warning(
    web, database, monkeypatch, caplog, capsys
):
    monkeypatch.setattr(_worker, "_ANNOUNCE", 0.1)
    opened, open_run = [], _driven.Driven._open
    monkeypatch.setattr(_driven.Driven, "_open", lambda one: opened.append(one) or open_run(one))
    fleet = Fleet(web)
    async with working(database, asking(pay)):
        run_id = await fleet.submit("outer", "Go.")
        await until(lambda: web.tickets(awaiting_approval=True))
        await until(lambda: not queued(web), "it rests")
    (ticket,) = web.tickets(awaiting_approval=True)
    web.run(ticket.run_id).approve(ticket)
    opened.clear()
    async with working(database, asking()):
        for times in range(1, 4):
            await until(lambda times=times: len(opened) >= times, "it is tried again")
            await until(lambda: query(database, "SELECT FROM pgmq.q_callslip_later"), "it is left")
            make_due(database)
        await until(lambda: any(one.refused for one in status(web).workers), "it is counted")
        assert sum(one.refused for one in status(web).workers) == 1
        await until(lambda: status(web).misfits, "it is named")
        now = status(web)
        assert list(now.misfits) == [run_id]
        assert "the tool 'pay' is gone" in now.misfits[run_id]
        assert (now.without_worker, now.metric("without_worker")) == ({"outer": 1}, 1)
        assert main(["status", database]) == 0
        assert f"no worker can go on with run {run_id}: " in capsys.readouterr().out
        make_due(database)
        async with working(database, asking(pay)):

            async def pushing():
                while True:
                    await asyncio.to_thread(make_due, database)
                    await asyncio.sleep(0.05)

            due = asyncio.create_task(pushing())
            assert (await fleet.result(run_id, timeout=LONG)).value == "ok"
            due.cancel()
            assert status(web).misfits == status(web).without_worker == {}
    told = [record for record in caplog.records if run_id in record.getMessage()]
    assert [(record.levelname, record.exc_info) for record in told] == [("WARNING", None)]
