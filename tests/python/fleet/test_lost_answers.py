"""The database is away for a moment, or its answer is lost: nothing is lost or done twice."""

import asyncio
import threading

import pytest

from callslip import Agent, TicketStore, tool
from callslip._runtime.shared.remote_calls import Elsewhere
from callslip.fleet import Fleet
from callslip.fleet._calls import CallHere
from callslip.fleet._driven import Driven
from fleets.here import LONG, call, finish, pay, turns, until, working
from postgres import Proxy
from scripted import block, turn_of

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def proxy(database):
    with Proxy(database) as proxy:
        yield proxy


def goes_away_before(monkeypatch, proxy, owner, name):
    """The database is away for a second when this method is called for the first time."""
    original, times = getattr(owner, name), []

    def method(self, *args):
        times.append(1)
        if len(times) == 1:
            proxy.drop()
            threading.Timer(1, proxy.resume).start()
        return original(self, *args)

    monkeypatch.setattr(owner, name, method)
    return times


async def test_what_a_program_tells_is_told_once_though_the_answer_is_lost(web, proxy, database):
    told = []

    def model(messages):
        told.append([one["content"] for one in messages if one["role"] == "user"])
        return turns(call("pay", amount=1), finish("paid"))(messages)

    agent = Agent(model, tools=[pay], name="clerk")
    with TicketStore(proxy.url) as far:
        proxy.lose_commit()
        run_id = await Fleet(far).submit("clerk", "Pay.")
        assert web.query("SELECT id FROM callslip.run") == [{"id": run_id}]
        async with working(database, agent):
            await until(lambda: web.tickets(run=run_id, awaiting_approval=True))
        run = far.run(run_id)
        proxy.lose_commit()
        run.send("Only half.")
        proxy.lose_commit()
        run.approve("T1")
        kinds = [row["kind"] for row in web.query("SELECT kind FROM callslip.inbox ORDER BY id")]
        assert kinds == ["say", "approve"]
        async with working(database, agent):
            assert (await Fleet(web).result(run_id, timeout=LONG)).value == "paid"
    assert str(told[-1]).count("Only half.") == 1


async def test_what_a_worker_takes_it_has_though_the_answer_is_lost(web, proxy, database):
    made = []

    @tool(queue="gpu", effect="once")
    def render() -> str:
        """Render."""
        made.append(1)
        proxy.lose_commit()
        return "rendered"

    agent = Agent(
        turns(call("render"), call("pay", amount=1), finish("ok")),
        tools=[render, pay],
        name="clerk",
    )
    proxy.lose_commit()
    # Its leases would end later than the test: nothing here waits for that.
    async with working(proxy.url, agent, queues=["default", "gpu"], lease=120):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "x")
        await until(lambda: web.tickets(run=run_id, awaiting_approval=True))
        await until(lambda: not web.query("SELECT FROM callslip.run WHERE msg IS NOT NULL"))
        proxy.lose_commit()
        web.run(run_id).approve("T2")
        assert (await fleet.result(run_id, timeout=LONG)).value == "ok"
    assert [ticket.outcome for ticket in web.tickets(run=run_id)] == ["ok", "ok"]
    assert made == [1]


async def test_an_engine_has_what_it_takes_and_rests_though_the_answers_are_lost(web, proxy):
    def model(messages):
        proxy.lose_commit()
        return turns(call("pay", amount=1), finish("paid"))(messages)

    with TicketStore(proxy.url) as store:
        agent = Agent(model, tools=[pay], name="clerk")
        fleet = Fleet(store, [agent], lease=120, dispatch=lambda _: None)
        run_id = await fleet.submit("clerk", "x")
        proxy.lose_commit()
        async with asyncio.timeout(LONG):
            assert await fleet.drive(run_id) == "rests"
            web.run(run_id).approve("T1")
            assert await fleet.drive(run_id) == "over"
    assert (await Fleet(web).result(run_id, timeout=LONG)).value == "paid"


@pytest.mark.parametrize("effect", ["once", "idempotent"])
async def test_a_call_ends_while_the_database_is_away(web, proxy, database, effect):
    made, began = [], asyncio.Event()

    @tool(queue="gpu", effect=effect)
    async def send() -> str:
        """Send."""
        made.append(1)
        began.set()
        await asyncio.sleep(0.5)
        return "sent"

    agent = Agent(turns(call("send"), finish("ok")), tools=[send], name="clerk")
    fleet = Fleet(web)
    async with working(database, agent), working(proxy.url, agent, queues=["gpu"], lease=30):
        run_id = await fleet.submit("clerk", "Send.")
        await asyncio.wait_for(began.wait(), LONG)
        proxy.drop()
        await asyncio.sleep(1.5)
        proxy.resume()
        (ticket,) = (await fleet.result(run_id, timeout=LONG)).tickets
    assert (made, ticket.outcome, ticket.result) == ([1], "ok", "sent")


async def test_a_run_gives_a_call_away_while_the_database_is_away(
    monkeypatch, web, proxy, database
):
    made = []

    @tool(effect="once")
    async def wait() -> str:
        """Wait."""
        made.append("begun")
        await asyncio.sleep(2)
        made.append("ended")
        return "waited"

    @tool(queue="gpu", effect="idempotent")
    def render() -> str:
        """Render."""
        return "rendered"

    def model(messages):
        both = block(("a", "wait", {}), ("b", "render", {}))
        return both if turn_of(messages) == 0 else "done"

    agent = Agent(model, tools=[wait, render], name="clerk", protocol="chatty")
    times = goes_away_before(monkeypatch, proxy, Elsewhere, "submit")
    fleet = Fleet(web)
    async with working(proxy.url, agent, lease=30), working(database, agent, queues=["gpu"]):
        run_id = await fleet.submit("clerk", "x")
        result = await fleet.result(run_id, timeout=LONG)
    assert [ticket.outcome for ticket in result.tickets] == ["ok", "ok"]
    assert (made, len(times)) == (["begun", "ended"], 1)


@pytest.mark.parametrize("kind", ["run", "call"])
async def test_what_was_claimed_is_opened_while_the_database_is_away(
    monkeypatch, web, proxy, database, kind
):
    made = []

    @tool(queue="gpu", effect="once")
    async def send() -> str:
        """Send."""
        made.append(1)
        return "sent"

    agent = Agent(turns(call("send"), finish("ok")), tools=[send], name="clerk")
    far, near = (["default"], ["gpu"]) if kind == "run" else (["gpu"], ["default"])
    owner, name = (Driven, "_open") if kind == "run" else (CallHere, "deliver")
    fleet = Fleet(web)
    async with (
        working(proxy.url, agent, queues=far, lease=120),
        working(database, agent, queues=near, lease=120),
    ):
        times = goes_away_before(monkeypatch, proxy, owner, name)
        run_id = await fleet.submit("clerk", "x")
        (ticket,) = (await fleet.result(run_id, timeout=LONG)).tickets
    assert (made, ticket.outcome) == ([1], "ok")
    assert times


async def test_a_store_is_closed_while_the_database_is_away(proxy):
    store = TicketStore(proxy.url)
    agent = Agent(turns(finish("ok")), name="clerk", store=store)
    assert (await agent.run("x")).value == "ok"
    proxy.drop()
    running = asyncio.create_task(agent.run("x"))
    await asyncio.sleep(0.2)
    async with asyncio.timeout(LONG):
        with pytest.raises(Exception, match="not in the database"):
            await asyncio.to_thread(store.close)
        with pytest.raises(Exception, match="closed|not in the database"):
            await running
