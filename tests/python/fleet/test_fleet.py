"""Giving workers runs, and what comes of them."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from callslip import (
    Agent,
    Context,
    Image,
    Limits,
    ModelError,
    ProtocolError,
    RunCancelled,
    ScriptedModel,
    StoreError,
    TicketStore,
    UsageError,
    Waiting,
    replay,
    tool,
)
from callslip.errors import Busy
from callslip.fleet import Fleet, status
from fleets.here import LONG, call, finish, pay, turns, until, working


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def agent_of(*replies, name="clerk", tools=(pay, add), **options):
    return Agent(turns(*replies), tools=tools, name=name, **options)


def queue_of(store):
    return store.query("SELECT id, msg, holder FROM callslip.run WHERE msg IS NOT NULL")


async def parked(store, run_id):
    """Wait until a run rests, with a call that awaits approval."""
    await until(lambda: store.tickets(run=run_id, awaiting_approval=True), "the call is parked")
    await until(lambda: not queue_of(store), "the run rests")


async def test_a_run_is_driven_by_a_worker_and_its_result_comes_back(web, database):
    async with working(database, agent_of(call("add", a=2, b=3), finish("five"))):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "Add 2 and 3.")
        result = await fleet.result(run_id, timeout=LONG)
        assert (result.value, result.tickets[0].result) == ("five", 5)
        await until(lambda: not queue_of(web))
    run = web.run(run_id)
    assert replay(run).log == run.log
    assert [event.seq for event in run.log] == list(range(len(run.log)))


async def test_a_fleet_with_the_agent_gives_answers_of_its_type(web, database):
    agent = agent_of(finish(7), returns=int, tools=())
    async with working(database, agent):
        fleet = Fleet(web, [agent])
        assert (await fleet.result(await fleet.submit("clerk", "?"), timeout=LONG)).value == 7


async def test_a_failure_is_raised_to_those_who_wait(web, database):
    agent = agent_of("nonsense", limits=Limits(max_violations=1))
    async with working(database, agent):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "?")
        with pytest.raises(ProtocolError) as caught:
            await fleet.result(run_id, timeout=LONG)
        assert caught.value.run.id == run_id


async def test_a_task_with_an_image_and_limits_of_its_own(web, database):
    pixel = Image(b"\x89PNG\r\n\x1a\n" + b"0" * 30)
    async with working(database, agent_of(finish())):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", ["Look at\0 this:", pixel], limits=Limits(turns=3))
        await fleet.result(run_id, timeout=LONG)
    run = web.run(run_id)
    assert run.parts["U1"].data == pixel.data
    assert run.task.startswith("Look at\0 this:\n[")
    assert web.runs()[0].task == run.task
    assert json.loads(run._core.limits)["steps"] == 3


async def test_the_same_key_gives_the_same_run(web, database):
    fleet = Fleet(web)
    first = await fleet.submit("clerk", "one", key="order-7")
    assert await fleet.submit("clerk", "one", key="order-7") == first
    assert await fleet.submit("clerk", "one", key="order-8") != first
    assert status(web).queued == 2


async def test_a_run_may_begin_later(web, database):
    async with working(database, agent_of(finish())):
        fleet = Fleet(web)
        at = datetime.now(UTC) + timedelta(seconds=4)
        run_id = await fleet.submit("clerk", "later", at=at)
        with pytest.raises(TimeoutError):
            await fleet.result(run_id, timeout=0.3)
        await fleet.result(run_id, timeout=LONG)
    assert web.runs()[0].started_at >= at.timestamp() - 0.2


async def test_a_queue_that_is_too_long_takes_no_more(web, database):
    fleet = Fleet(web, backlog=2)
    for number in range(2):
        await fleet.submit("clerk", str(number))
    with pytest.raises(Busy, match="submit the run later"):
        await fleet.submit("clerk", "3")
    await fleet.submit("clerk", "3", queue="batch")


async def test_a_run_rests_until_somebody_approves(web, database):
    async with working(database, agent_of(call("pay", amount=7), finish("all paid"))):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "Pay 7.")
        await parked(web, run_id)
        now = status(web)
        assert (now.resting, now.awaiting_approval) == (1, 1)
        assert now.queues[0].in_progress == 0
        run = web.run(run_id)
        (ticket,) = run.awaiting_approval
        run.approve(ticket, by="Ann")
        result = await fleet.result(run_id, timeout=LONG)
        assert (result.value, result.tickets[0].result) == ("all paid", "paid 7")
        with pytest.raises(UsageError, match="approved already"):
            web.run(run_id).approve("T1")
    assert web.run(run_id).trace().tickets[0].approval.by == "Ann"


async def test_the_first_of_two_decisions_wins_before_a_worker_has_seen_it(web, database):
    async with working(database, agent_of(call("pay", amount=7), finish())):
        run_id = await Fleet(web).submit("clerk", "Pay 7.")
        await parked(web, run_id)
    run = web.run(run_id)
    run.deny("T1", "too much", by="Bob")
    with pytest.raises(UsageError, match="Bob has decided already"):
        run.approve("T1")
    assert web.tickets(awaiting_approval=True) == []
    async with working(database, agent_of(call("pay", amount=7), finish())):
        result = await Fleet(web).result(run_id, timeout=LONG)
    assert result.tickets[0].outcome == "denied"
    assert "too much" in result.tickets[0].error


async def test_edited_arguments_are_checked_before_the_run_is_told(web, database):
    async with working(database, agent_of(call("pay", amount=7), finish())):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "Pay 7.")
        await parked(web, run_id)
        run = web.run(run_id)
        with pytest.raises(UsageError, match="amount"):
            run.approve("T1", arguments={"amount": "much"})
        run.approve("T1", arguments={"amount": 5})
        assert (await fleet.result(run_id, timeout=LONG)).tickets[0].result == "paid 5"


async def test_what_a_run_is_told_stands_in_its_log_once(web, database):
    async with working(database, agent_of(call("pay", amount=7), finish())):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "Pay 7.")
        await parked(web, run_id)
        said = web.run(run_id).send("Be quick.\0")
        web.run(run_id).approve("T1")
        assert (await asyncio.wait_for(said, LONG)).value == "done"
        again = await asyncio.wait_for(web.run(run_id).send("And once more."), LONG)
        assert again.value == "done"
    told = [event.text for event in web.run(run_id).log if event.kind == "user_said"]
    assert told == ["Be quick.\0", "And once more."]
    assert status(web).messages == 0


async def test_a_run_is_cancelled_wherever_it_is(web, database):
    began = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        began.set()
        await asyncio.sleep(3600)

    agent = agent_of(call("wait"), finish(), tools=[wait])
    async with working(database, agent):
        fleet = Fleet(web)
        under_way = await fleet.submit("clerk", "under way")
        await asyncio.wait_for(began.wait(), LONG)
        web.run(under_way).cancel()
        with pytest.raises(RunCancelled):
            await fleet.result(under_way, timeout=LONG)
    queued = await Fleet(web).submit("clerk", "queued")
    web.run(queued).cancel()
    async with working(database, agent):
        with pytest.raises(RunCancelled):
            await Fleet(web).result(queued, timeout=LONG)


async def test_another_process_follows_a_run_event_by_event(web, database):
    seen = []

    async def follow(run_id):
        async for event in web.watch(run_id):
            if not isinstance(event, Waiting):
                seen.append(event)

    async with working(database, agent_of(call("pay", amount=7), finish())):
        run_id = await Fleet(web).submit("clerk", "Pay 7.")
        following = asyncio.create_task(follow(run_id))
        await until(lambda: any(event.kind == "ticket_opened" for event in seen))
        web.run(run_id).approve("T1")
        await asyncio.wait_for(following, LONG)
    assert seen == web.run(run_id).log
    items = [item async for item in web.watch(run_id, after=3)]
    late = [item.seq for item in items if not isinstance(item, Waiting)]
    assert late == [event.seq for event in seen[4:]]


async def test_a_tree_of_runs_rests_as_one_and_its_calls_are_approved(web, database):
    child = agent_of(call("pay", amount=7), finish("child done"), name="cashier")
    parent = Agent(
        turns(call("cashier", task="Pay 7."), finish("parent done")),
        tools=[child.as_tool(description="Pays.")],
        name="boss",
    )
    seen = []

    async def follow(run_id):
        async for event in web.watch(run_id, children=True):
            if not isinstance(event, Waiting):
                seen.append((event.run_id, event.kind))

    async with working(database, parent):
        fleet = Fleet(web)
        run_id = await fleet.submit("boss", "Have 7 paid.")
        following = asyncio.create_task(follow(run_id))
        await parked(web, f"{run_id}.T1")
        assert status(web).resting == 1
        web.run(run_id).approve(web.tickets(awaiting_approval=True)[0])
        assert (await fleet.result(run_id, timeout=LONG)).value == "parent done"
        await asyncio.wait_for(following, LONG)
    assert {one.stop_reason for one in web.runs()} == {"finished"}
    assert (f"{run_id}.T1", "run_finished") in seen


async def test_a_worker_that_ends_leaves_its_runs_to_the_next_one(web, database):
    began = asyncio.Event()
    gate = asyncio.Event()

    async def model(messages):
        began.set()
        await gate.wait()
        return finish("done by the second")

    async with working(database, Agent(model, name="clerk")):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "?")
        await asyncio.wait_for(began.wait(), LONG)
    assert web.runs()[0].status == "running"
    gate.set()
    started = time.monotonic()
    async with working(database, Agent(model, name="clerk")):
        assert (await fleet.result(run_id, timeout=LONG)).value == "done by the second"
    # It need not wait for the end of the lease, which is 30 seconds.
    assert time.monotonic() - started < 20


async def test_calls_under_way_have_time_to_end(web, database):
    began = asyncio.Event()
    made = []

    @tool
    async def slow() -> str:
        """Slow."""
        began.set()
        await asyncio.sleep(0.5)
        made.append(1)
        return "ended"

    async with working(database, agent_of(call("slow"), finish(), tools=[slow]), grace=10):
        run_id = await Fleet(web).submit("clerk", "?")
        await asyncio.wait_for(began.wait(), LONG)
    (ticket,) = web.tickets(run=run_id)
    assert (ticket.outcome, ticket.result) == ("ok", "ended")
    async with working(database, agent_of(call("slow"), finish(), tools=[slow])):
        await Fleet(web).result(run_id, timeout=LONG)
    assert made == [1]


async def test_a_worker_without_the_agent_leaves_a_run_in_its_queue(web, database):
    async with working(database, agent_of(finish(), name="another")) as fleet:
        run_id = await fleet.submit("clerk", "?")
        with pytest.raises(TimeoutError):
            await fleet.result(run_id, timeout=1.5)
        assert [(one.name, one.waiting) for one in status(web).queues if one.waiting] == [
            ("default", 1)
        ]


async def test_a_run_goes_on_only_with_an_agent_of_its_shape(web, database):
    old = agent_of(call("pay", amount=7), finish("old"))
    async with working(database, old):
        run_id = await Fleet(web).submit("clerk", "Pay 7.")
        await parked(web, run_id)
    web.run(run_id).approve("T1")
    changed = agent_of(finish("new"), tools=[add])
    async with working(database, changed):
        with pytest.raises(TimeoutError):
            await Fleet(web).result(run_id, timeout=1)
    # It is left in its queue, for a worker that can drive it.
    assert web.query("SELECT msg_id FROM pgmq.q_callslip_later") == []
    async with working(database, changed, accept=[old]):
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "old"


async def test_at_most_so_many_runs_of_a_tenant_are_driven_at_once(web, database):
    now, most = 0, 0

    async def model(messages):
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.05)
        now -= 1
        return finish()

    async with working(database, Agent(model, name="clerk"), slots=16):
        fleet = Fleet(web, limits={"acme": 3})
        runs = [await fleet.submit("clerk", str(n), tenant="acme") for n in range(20)]
        other = await fleet.submit("clerk", "other", tenant="other")
        await fleet.result(other, timeout=LONG)
        assert sum(one.status == "finished" for one in web.runs()) < 20
        for run_id in runs:
            await fleet.result(run_id, timeout=LONG)
    assert most <= 4


async def test_a_run_that_is_driven_is_refused_elsewhere(web, database):
    gate = asyncio.Event()

    async def model(messages):
        await gate.wait()
        return finish()

    agent = Agent(model, name="clerk")
    async with working(database, agent):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "?")
        await until(lambda: any(run.protocol for run in web.runs()))
        with pytest.raises(StoreError, match="in progress in another process"):
            await agent.replace(store=web).resume(run_id)
        with pytest.raises(StoreError, match="in progress in another process"):
            web.delete(run_id)
        gate.set()
        await fleet.result(run_id, timeout=LONG)
        await until(lambda: not queue_of(web))
    assert web.delete(run_id) == 1


async def test_a_program_with_an_engine_drives_a_run_itself(web):
    fleet = Fleet(web, [agent_of(call("pay", amount=7), finish("paid"))])
    run_id = await fleet.submit("clerk", "Pay 7.")
    assert await fleet.drive(run_id) == "rests"
    web.run(run_id).approve("T1")
    assert await fleet.drive(run_id) == "over"
    assert (await fleet.result(run_id)).value == "paid"
    with pytest.raises(StoreError, match="there is no run"):
        await fleet.drive("nothing")
    with pytest.raises(UsageError, match="expected an agent of the name 'clerk'"):
        await Fleet(web).drive(await fleet.submit("clerk", "?"))


async def test_a_run_that_ends_its_workers_is_given_up(web, database):
    agent = agent_of(call("pay", amount=7), finish())
    async with working(database, agent):
        run_id = await Fleet(web).submit("clerk", "Pay 7.")
        await parked(web, run_id)
    with psycopg.connect(database, autocommit=True) as connection:
        # As after five claims that have written nothing.
        connection.execute("UPDATE callslip.run SET claims = 5, claimed_next = next, msg = NULL")
        connection.execute("SELECT callslip.wake(%s)", [run_id])
    async with working(database, agent):
        with pytest.raises(ModelError, match="5 workers in a row"):
            await Fleet(web).result(run_id, timeout=LONG)
    # Somebody has looked at it, and says so.
    web.run(run_id).send("Go on.")
    async with working(database, agent):
        assert (await Fleet(web).result(run_id, timeout=LONG)).value == "done"


async def test_the_time_limit_of_a_run_leaves_out_its_rest(web, database):
    agent = agent_of(call("pay", amount=7), finish("in time"))
    async with working(database, agent):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "Pay 7.", limits=Limits(seconds=30))
        # Nothing wakes it before somebody decides.
        await parked(web, run_id)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("UPDATE callslip.event SET at = at - 60")
        web.run(run_id).approve("T1")
        result = await fleet.result(run_id, timeout=LONG)
        assert (result.value, result.stop_reason) == ("in time", "finished")
    run = web.run(run_id)
    assert replay(run).log == run.log


async def test_a_worker_that_is_cancelled_at_any_moment_keeps_no_run(web, database):
    """Also one that it has claimed and not opened: another worker has it at once."""
    fleet = Fleet(web)
    runs = [await fleet.submit("clerk", str(number)) for number in range(20)]
    with TicketStore(database) as store:
        for steps in range(40):
            task = asyncio.create_task(Fleet(store, [agent_of(finish())], lease=60).work())
            for _ in range(steps):
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.wait([task])
        async with working(database, agent_of(finish())):
            for run_id in runs:
                assert (await fleet.result(run_id, timeout=LONG)).value == "done"


async def test_a_run_of_this_process_is_approved_from_another(web, database):
    agent = agent_of(call("pay", amount=7), finish("paid"))
    with TicketStore(database) as store:
        running = asyncio.create_task(agent.replace(store=store).run("Pay 7.", approve=_never))
        await until(lambda: web.tickets(awaiting_approval=True))
        (ticket,) = web.tickets(awaiting_approval=True)
        web.run(ticket.run_id).approve(ticket, by="Ann")
        assert (await asyncio.wait_for(running, LONG)).value == "paid"


async def _never(ticket):
    await asyncio.sleep(3600)


async def test_deps_reach_the_tools(web, database):
    @tool
    def who(context: Context[str]) -> str:
        """Who."""
        return context.deps

    async with working(database, agent_of(call("who"), finish(), tools=[who]), deps="the deps"):
        fleet = Fleet(web)
        result = await fleet.result(await fleet.submit("clerk", "?"), timeout=LONG)
        assert result.tickets[0].result == "the deps"
        without = Fleet(web, [agent_of(tools=[who])])
        for needs in (without.work(), without.drive(result.run.id)):
            with pytest.raises(UsageError, match=r"the tool 'who'.*; pass deps=… to Fleet"):
                await needs


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda web: Fleet(TicketStore()), "postgresql://"),
        (lambda web: Fleet(web, ["agent"]), "pass Agent"),
        (lambda web: Fleet(web, [agent_of(finish()), agent_of(finish())]), "different names"),
        (lambda web: Fleet(web, accept=[agent_of(finish())]), "none of agents="),
        (lambda web: Fleet(web, lease=0), "lease"),
        (lambda web: Fleet(web, limits={"a": 0}), "a whole number from 1"),
        (lambda web: Fleet(web).submit("clerk", " "), "blank"),
        (lambda web: Fleet(web).submit("clerk", "x", queue="Not good"), "lowercase"),
        (lambda web: Fleet(web).submit("clerk", "x", queue="later"), "use another name"),
        (lambda web: Fleet(web).submit("clerk", "x", queue="1st"), "a lowercase letter, then"),
        (lambda web: Fleet(web).submit(agent_of(finish()), "x"), "pass 'clerk'"),
        (lambda web: Fleet(web).submit("clerk", "x", at=datetime.now()), "time zone"),  # noqa: DTZ005
        (lambda web: Fleet(web).submit("clerk", "x", at="noon"), "Unix seconds"),
        (lambda web: Fleet(web).submit("clerk", "x", at=float("nan")), "before the year 10000"),
        (lambda web: Fleet(web).submit("clerk", "x", at=1e18), "not milliseconds"),
        (lambda web: Fleet(web).submit("clerk", "x", key=""), "key of 1 to 200 characters"),
        (lambda web: Fleet(web).submit("clerk", " "), "expected the task: got blank text; pass"),
        (lambda web: Fleet(web).submit("clerk", "x", tenant="\0"), "tenant without"),
        (lambda web: Fleet(web).work(), "pass agents"),
        (lambda web: Fleet(web, [agent_of(finish())]).work(queues="a"), "list of texts"),
        (lambda web: Fleet(web, [agent_of(finish())]).work(slots=0), "slots"),
    ],
)
async def test_wrong_arguments_say_what_to_pass(web, wrong, hint):
    with pytest.raises(UsageError, match=hint):
        await _awaited(wrong(web))


async def _awaited(value):
    if hasattr(value, "__await__"):
        await value


async def test_resume_all_names_the_workers(web):
    with pytest.raises(UsageError, match="Fleet"):
        await agent_of(finish(), store=web).resume_all()


def test_a_scripted_agent_works_on_a_shared_store_as_on_a_file(web):
    agent = Agent(ScriptedModel([call("add", a=1, b=2), finish("three")]), tools=[add], store=web)
    assert agent.run_sync("Add.").value == "three"
    assert web.runs()[0].status == "finished"
