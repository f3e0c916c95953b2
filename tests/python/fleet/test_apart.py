"""Calls and child runs that other workers take than the one that drives the run above them."""

import asyncio

import pytest

from callslip import (
    Agent,
    Context,
    Image,
    LimitExceeded,
    Limits,
    ModelReply,
    RunCancelled,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip.fleet import Fleet, status
from fleets.here import LONG, call, finish, turns, until, working

PIXEL = b"\x89PNG\r\n\x1a\n" + b"0" * 30

pytestmark = pytest.mark.timeout(120)


def rows(store):
    return store.query("SELECT id, msg, is_call FROM callslip.run WHERE msg IS NOT NULL OR is_call")


def runs_made(store):
    return store.query("SELECT kind, ticket FROM callslip.inbox")


@tool(queue="gpu", effect="idempotent")
def render(scene: str, context: Context) -> str:
    """Render."""
    return f"{scene} by {context.deps} as {context.key}"


def painter(*replies, tools=(render,), **options):
    return Agent(turns(*replies), tools=tools, name="painter", **options)


SCENE = call("render", scene="dawn")


async def test_a_call_is_made_by_a_worker_of_its_queue_while_the_run_rests(web, database):
    agent = painter(SCENE, finish("hung"))
    async with working(database, agent, deps="the cpu"):
        fleet = Fleet(web)
        run_id = await fleet.submit("painter", "Paint.")
        await until(lambda: web.tickets(run=run_id))
        await until(lambda: [row["id"] for row in rows(web)] == [f"{run_id}.T1"], "the run rests")
        async with working(database, agent, queues=["gpu"], deps="the gpu"):
            result = await fleet.result(run_id, timeout=LONG)
    assert result.value == "hung"
    assert result.tickets[0].result == f"dawn by the gpu as {run_id}/T1"
    assert (rows(web), runs_made(web)) == ([], [])
    run = web.run(run_id)
    assert replay(run).log == run.log


async def test_one_worker_of_both_queues_makes_the_call_too(web, database):
    async with working(database, painter(SCENE, finish("hung")), queues=["default", "gpu"]):
        fleet = Fleet(web)
        result = await fleet.result(await fleet.submit("painter", "Paint."), timeout=LONG)
    assert result.value == "hung"


async def test_a_call_on_another_worker_finds_the_origins_of_its_values(web, database):
    @tool(queue="gpu")
    def book(city: str, context: Context) -> str:
        """Book a table."""
        return f"{context.origins['/city']}, {context.origins['/city'].how}"

    agent = painter(call("book", city="Oslo"), finish("done"), tools=[book], values="stated")
    async with working(database, agent, queues=["default", "gpu"]):
        fleet = Fleet(web)
        run_id = await fleet.submit("painter", "Book a table in Oslo.")
        result = await fleet.result(run_id, timeout=LONG)
    assert result.tickets[0].result == "from the task, exact"


async def test_a_run_of_this_process_waits_for_the_worker(web, database):
    with TicketStore(database) as store:
        agent = painter(SCENE, finish("hung"), store=store)
        async with working(database, painter(finish()), queues=["gpu"], deps="the gpu"):
            async with asyncio.timeout(LONG):
                result = await agent.run("Paint.")
            assert result.tickets[0].result.startswith("dawn by the gpu")
            assert (await asyncio.to_thread(agent.run_sync, "Paint.")).value == "hung"


def test_without_a_database_the_call_is_made_here(tmp_path):
    for store in (None, TicketStore(tmp_path / "runs.db")):
        result = painter(SCENE, finish("hung"), store=store).run_sync("Paint.", deps="me")
        assert result.tickets[0].result.startswith("dawn by me")


async def test_what_a_tool_returns_and_raises_is_told_as_it_is(web, database):
    attempts = []

    @tool(queue="gpu", retries=2, effect="idempotent")
    def shaky(text: str) -> str:
        """Fail twice."""
        attempts.append(text)
        if len(attempts) < 3:
            raise ConnectionError("away")
        return "\x00 \ud83d there"

    @tool(queue="gpu")
    def picture() -> Image:
        """Return an image."""
        return Image(PIXEL)

    @tool(queue="gpu")
    def broken() -> str:
        """Fail."""
        raise ValueError("no such scene")

    agent = Agent(
        turns(call("shaky", text="\ufdd0 \0"), call("picture"), call("broken"), finish("seen")),
        tools=[shaky, picture, broken],
        name="painter",
    )
    async with working(database, agent, queues=["default", "gpu"]):
        fleet = Fleet(web)
        result = await fleet.result(await fleet.submit("painter", "Paint."), timeout=LONG)
        assert [part.data for part in result.run.parts.values()] == [PIXEL]
    first, second, third = result.tickets
    assert (first.attempts, attempts) == (3, ["\ufdd0 \0"] * 3)
    assert first.result.startswith("\x00 ")
    assert (second.outcome, third.outcome) == ("ok", "error")
    assert "no such scene" in third.error


async def test_a_call_that_needs_approval_is_sent_after_it(web, database):
    @tool(queue="gpu", needs_approval=True)
    def burn(disc: str) -> str:
        """Burn."""
        return f"burnt {disc}"

    agent = painter(call("burn", disc="a"), finish("ok"), tools=[burn])
    async with working(database, agent, queues=["default", "gpu"]):
        fleet = Fleet(web)
        run_id = await fleet.submit("painter", "Paint.")
        await until(lambda: web.tickets(run=run_id, awaiting_approval=True))
        assert web.query("SELECT id FROM callslip.run WHERE is_call") == []
        web.run(run_id).approve("T1", arguments={"disc": "b"})
        result = await fleet.result(run_id, timeout=LONG)
    assert result.tickets[0].result == "burnt b"


async def test_a_run_that_is_cancelled_gives_its_call_up(web, database):
    seen = []

    @tool(queue="gpu")
    async def wait_long() -> str:
        """Wait."""
        seen.append("begun")
        try:
            await asyncio.sleep(LONG)
        finally:
            seen.append("ended")
        return "too late"

    agent = painter(call("wait_long"), finish("ok"), tools=[wait_long])
    async with working(database, agent, queues=["default", "gpu"]):
        run_id = await Fleet(web).submit("painter", "Paint.")
        await until(lambda: seen == ["begun"])
        web.run(run_id).cancel()
        with pytest.raises(RunCancelled):
            await Fleet(web).result(run_id, timeout=LONG)
        await until(lambda: seen == ["begun", "ended"], "the worker ends the call")
        await until(lambda: not rows(web), "nothing is left of the call")
    assert runs_made(web) == []


async def test_a_call_that_nobody_has_taken_goes_with_its_run(web, database):
    agent = painter(SCENE, finish("ok"))
    async with working(database, agent):
        run_id = await Fleet(web).submit("painter", "Paint.")
        await until(lambda: [row["id"] for row in rows(web)] == [f"{run_id}.T1"], "the run rests")
        now = status(web)
        assert now.without_worker == {"call render of painter": 1}
        assert await Fleet(web, dispatch=print).due(waiting=0) == []
        web.run(run_id).cancel()
        await until(lambda: not rows(web), "nothing is left of the call")


async def test_a_worker_that_ends_lets_its_call_end_within_the_grace(web, database):
    began, go = asyncio.Event(), asyncio.Event()
    made = []

    @tool(queue="gpu")
    async def slow() -> str:
        """Take a while."""
        made.append(1)
        began.set()
        await go.wait()
        return "there"

    agent = painter(call("slow"), finish("ok"), tools=[slow])
    async with working(database, agent):
        fleet = Fleet(web)
        run_id = await fleet.submit("painter", "Paint.")
        async with working(database, agent, queues=["gpu"], grace=LONG):
            await asyncio.wait_for(began.wait(), LONG)
            asyncio.get_running_loop().call_later(0.3, go.set)
        result = await fleet.result(run_id, timeout=LONG)
    assert (result.tickets[0].result, made) == ("there", [1])


@pytest.mark.parametrize(
    ("effect", "looks_up", "outcome", "times"),
    [("once", False, "in_doubt", 1), ("once", True, "ok", 1), ("idempotent", False, "ok", 2)],
)
async def test_a_worker_that_leaves_a_call(  # noqa: PLR0917
    web, database, effect, looks_up, outcome, times
):
    began = asyncio.Event()
    keys = []

    def lookup(context: Context) -> str:
        return f"found {context.key}"

    @tool(queue="gpu", effect=effect, reconcile=lookup if looks_up else None)
    async def send(context: Context) -> str:
        """Send."""
        keys.append(context.key)
        began.set()
        if len(keys) == 1:
            await asyncio.sleep(LONG)
        return "sent"

    agent = painter(call("send"), finish("ok"), tools=[send])
    async with working(database, agent):
        fleet = Fleet(web)
        run_id = await fleet.submit("painter", "Paint.")
        async with working(database, agent, queues=["gpu"], grace=0):
            await asyncio.wait_for(began.wait(), LONG)
        async with working(database, agent, queues=["gpu"]):
            result = await fleet.result(run_id, timeout=LONG)
    ticket = result.tickets[0]
    assert (ticket.outcome, keys) == (outcome, [f"{run_id}/T1"] * times)
    if looks_up:
        assert ticket.result == f"found {run_id}/T1"


def test_queues_and_places_are_checked(web):
    with pytest.raises(UsageError, match="expected the name of a queue"):
        tool(queue="Big GPU")(lambda: 1)
    with pytest.raises(UsageError, match="expected children='here' or 'anywhere'"):
        Fleet(web, children="there")


# Child runs.


def team(parent, child, *, child_tools=(), **options):
    """An agent with one below it, as a tool."""
    helper = Agent(child, tools=child_tools, name="helper", instructions="Help.")
    options.setdefault("name", "boss")
    return Agent(parent, tools=[helper.as_tool(name="ask")], **options)


def by_worker(seen, name, reply):
    """A model that notes which worker asks it."""

    def model(messages):
        seen.append((name, messages[-1]["content"]))
        return reply(messages) if callable(reply) else reply

    return model


async def test_a_child_run_is_driven_by_any_worker_while_its_parent_rests(web, database):
    seen = []
    ask = call("ask", task="How many?")

    def agents(name):
        return team(
            by_worker(seen, name, turns(ask, finish("It is 7."))),
            by_worker(seen, name, finish("7")),
        )

    fleet = Fleet(web)
    async with (
        working(database, agents("one"), slots=1, children="anywhere"),
        working(database, agents("two"), slots=1, children="anywhere"),
    ):
        ids = [await fleet.submit("boss", f"Count {n}.") for n in range(8)]
        results = [await fleet.result(run_id, timeout=LONG) for run_id in ids]
        await until(lambda: not rows(web))
    assert {result.value for result in results} == {"It is 7."}
    for run_id, result in zip(ids, results, strict=True):
        assert result.tickets[0].result == "7", result.tickets[0].error
        child = web.run(f"{run_id}.T1")
        assert (child.stop_reason, child.task) == ("finished", "How many?")
        assert web.runs(parent=run_id)[0].agent == "helper"
        for run in (web.run(run_id), child):
            assert replay(run).log == run.log
            assert [event.seq for event in run.log] == list(range(len(run.log)))
    assert {name for name, _ in seen} == {"one", "two"}
    assert runs_made(web) == []


async def test_many_children_of_one_run_are_driven_side_by_side(web, database):
    most = [0, 0]

    @tool
    async def work() -> str:
        """Work."""
        most[0] += 1
        most[1] = max(most)
        await asyncio.sleep(0.3)
        most[0] -= 1
        return "done"

    many = turns(*[call("ask", task=f"Do {n}.") for n in range(3)], finish("all"))
    agent = team(many, turns(call("work"), finish("ok")), child_tools=[work])
    async with working(database, agent, children="anywhere"):
        fleet = Fleet(web)
        ids = [await fleet.submit("boss", "Do it.", tenant="acme") for _ in range(4)]
        for run_id in ids:
            result = await fleet.result(run_id, timeout=LONG)
            assert [ticket.result for ticket in result.tickets] == ["ok"] * 3
    assert most[1] > 1
    assert len(web.runs(agent="helper")) == 12


async def test_approvals_and_cancels_reach_children_that_are_driven_elsewhere(web, database):
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    agent = team(
        turns(call("ask", task="Pay."), finish("ok")),
        turns(call("pay", amount=3), finish("paid")),
        child_tools=[pay],
    )
    async with working(database, agent, children="anywhere"):
        fleet = Fleet(web)
        first, second = [await fleet.submit("boss", "Pay.") for _ in range(2)]
        for run_id in (first, second):
            await until(lambda: web.tickets(run=f"{run_id}.T1", awaiting_approval=True))  # noqa: B023
        await until(lambda: not rows(web), "all rest")
        web.run(f"{first}.T1").approve("T1")
        assert (await fleet.result(first, timeout=LONG)).value == "ok"
        web.run(second).cancel()
        with pytest.raises(RunCancelled):
            await fleet.result(second, timeout=LONG)
        await until(lambda: web.run(f"{second}.T1").finished, "the child is cancelled too")
        await until(lambda: not rows(web))
    assert web.run(f"{second}.T1").stop_reason == "cancelled"


async def test_a_child_that_fails_is_a_failed_task(web, database):
    agent = team(turns(call("ask", task="x"), finish("sorry")), ScriptedModel([RuntimeError("no")]))
    async with working(database, agent, children="anywhere"):
        fleet = Fleet(web)
        result = await fleet.result(await fleet.submit("boss", "Try."), timeout=LONG)
    assert result.value == "sorry"
    assert "The agent failed" in result.tickets[0].error


async def test_limits_of_a_tree_count_what_all_workers_have_spent(web, database):
    def costly(*replies):
        said = turns(*replies)

        def model(messages):
            return ModelReply(said(messages), usage={"input_tokens": 100, "output_tokens": 0})

        return model

    agent = team(
        costly(*[call("ask", task=f"Do {n}.") for n in range(20)], finish("all")),
        costly(finish("ok")),
        limits=Limits(tokens=1_000, turns=None),
        on_limit="raise",
    )
    async with working(database, agent, children="anywhere"):
        fleet = Fleet(web)
        run_id = await fleet.submit("boss", "Do it.")
        with pytest.raises(LimitExceeded):
            await fleet.result(run_id, timeout=LONG)
    spent = web.query("SELECT sum(input_tokens) AS tokens FROM runs")[0]["tokens"]
    assert 1_000 <= spent <= 1_200
    run = web.run(run_id)
    assert replay(run).log == run.log


async def test_a_watch_that_is_read_after_the_run_has_the_events_of_its_child_runs(web, database):
    child = Agent(turns(finish("below")), name="child")
    top = Agent(
        turns(call("down", task="b"), finish("top")),
        tools=[child.as_tool(name="down")],
        name="top",
    )
    fleet = Fleet(web)
    run_id = await fleet.submit("top", "a")
    watch = web.watch(run_id, children=True)
    async with working(database, top, children="anywhere"):
        await fleet.result(run_id, timeout=LONG)
    async with asyncio.timeout(LONG):
        seen = [event async for event in watch]
    assert [event.seq for event in seen if event.run_id == run_id] == list(
        range(len(web.run(run_id).log))
    )
    below = [event.seq for event in seen if event.run_id == f"{run_id}.T1"]
    assert below == list(range(len(web.run(f"{run_id}.T1").log)))


async def test_children_of_children_and_their_levels(web, database):
    bottom = Agent(turns(finish("bottom")), name="bottom")
    middle = Agent(
        turns(call("down", task="c"), finish("middle")),
        tools=[bottom.as_tool(name="down")],
        name="middle",
    )
    top = Agent(
        turns(call("down", task="b"), finish("top")),
        tools=[middle.as_tool(name="down")],
        name="top",
        limits=Limits(depth=1),
    )
    fleet = Fleet(web)
    deep = await fleet.submit("top", "a", limits=Limits(depth=2))
    # Before it begins: what its child runs did before that is not told.
    watch = web.watch(deep, children=True)
    async with working(database, top, children="anywhere"):
        async with asyncio.timeout(LONG):
            seen = {event.run_id async for event in watch}
        flat = await fleet.submit("top", "a")
        assert (await fleet.result(deep, timeout=LONG)).value == "top"
        assert (await fleet.result(flat, timeout=LONG)).value == "top"
    assert seen == {deep, f"{deep}.T1", f"{deep}.T1.T1"}
    assert web.run(f"{deep}.T1").tickets[0].result == "bottom"
    assert web.run(f"{flat}.T1").tickets == []


async def test_children_stay_where_they_are_when_the_option_changes(web, database):
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = team(
        turns(call("ask", task="Pay."), finish("ok")),
        turns(call("pay"), finish("p")),
        child_tools=[pay],
    )
    fleet = Fleet(web)
    ids = {}
    for kind in ("here", "anywhere"):
        async with working(database, agent, children=kind):
            ids[kind] = run_id = await fleet.submit("boss", "Pay.")
            await until(lambda: web.tickets(run=f"{run_id}.T1", awaiting_approval=True))  # noqa: B023
            await until(lambda: not rows(web), "all rest")
    other = {"here": "anywhere", "anywhere": "here"}
    for kind, run_id in ids.items():
        async with working(database, agent, children=other[kind]):
            web.run(f"{run_id}.T1").approve("T1")
            assert (await fleet.result(run_id, timeout=LONG)).value == "ok"


async def test_a_watch_follows_children_that_other_workers_drive(web, database):
    agent = team(turns(call("ask", task="x"), finish("ok")), turns(finish("child says")))
    fleet = Fleet(web)
    run_id = await fleet.submit("boss", "Go.")
    seen = set()
    async with working(database, agent, children="anywhere"):
        async with asyncio.timeout(LONG):
            async for event in web.watch(run_id, children=True):
                seen.add(event.run_id)
    assert seen == {run_id, f"{run_id}.T1"}
