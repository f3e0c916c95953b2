"""Following runs of a database: each event once, whoever drives, and never with the loop held."""

import asyncio

import psycopg
import pytest

from callslip import Agent, RunCancelled, StoreError, TicketStore, tool
from callslip.errors import UnknownRun
from callslip.fleet import Fleet
from fleets.boss import BOSS, QUICK, ended_run, from_far
from fleets.here import LONG, call, finish, turns, until, working
from postgres import Proxy

pytestmark = pytest.mark.timeout(120)


TOP = Agent(
    turns(call("quick", task="b"), finish("top")),
    tools=[QUICK.as_tool(description="Is quick.")],
    name="top",
)


async def events_of(watch):
    return [item async for item in watch if hasattr(item, "seq")]


def seqs(events, run_id):
    return [event.seq for event in events if event.run_id == run_id]


def all_seqs(store, run_id):
    return list(range(len(store.run(run_id).log)))


def assert_each_once(events, store, *run_ids):
    assert {one: seqs(events, one) for one in run_ids} == {
        one: all_seqs(store, one) for one in run_ids
    }
    assert {event.run_id for event in events} == set(run_ids)


# Each event once.


async def test_child_runs_that_are_driven_here_are_told_once(here):
    run = TOP.replace(store=here).start("a")
    async with asyncio.timeout(LONG):
        events = await events_of(run.watch(children=True))
    assert_each_once(events, here, run.id, f"{run.id}.T1")


async def test_child_runs_that_are_cancelled_here_are_told_once(here):
    agent = BOSS.replace(store=here, model=turns(call("child", task="Pay 2."), finish()))
    run = agent.start("a")
    watching = asyncio.create_task(events_of_cancelled(run.watch(children=True)))
    child = f"{run.id}.T1"
    await until(lambda: here.tickets(run=child, awaiting_approval=True), "the child run waits")
    run.cancel()
    events = await asyncio.wait_for(watching, LONG)
    assert_each_once(events, here, run.id, child)


async def events_of_cancelled(watch):
    events = []
    with pytest.raises(RunCancelled):
        async for item in watch:
            events.append(item)
    return [event for event in events if hasattr(event, "seq")]


@pytest.mark.parametrize("drivers", ["hhhh", "ffff", "hfhf", "fhfh", "hhff", "ffhh"])
async def test_each_event_is_told_once_whoever_drives(here, far, drivers):
    fleets = {"h": Fleet(here, [BOSS], lease=5), "f": Fleet(far, [BOSS], lease=5)}
    run_id = await fleets["f"].submit("boss", "a")
    child = f"{run_id}.T2"
    watching = [
        asyncio.create_task(events_of(store.watch(run_id, children=True))) for store in (here, far)
    ]
    rests = [(run_id, "T1"), (child, "T1"), (run_id, "T3")]
    for driver, (waiting, ticket) in zip(drivers, rests, strict=False):
        assert await asyncio.wait_for(fleets[driver].drive(run_id), LONG) == "rests"
        far.run(waiting).approve(ticket)
        # Others come and go.
        late = asyncio.create_task(events_of(here.watch(run_id, children=True)))
        await asyncio.sleep(0.1)
        late.cancel()
    assert await asyncio.wait_for(fleets[drivers[-1]].drive(run_id), LONG) == "over"
    for events in await asyncio.wait_for(asyncio.gather(*watching), LONG):
        assert_each_once(events, far, run_id, child)


@pytest.mark.parametrize("children", ["here", "anywhere"])
@pytest.mark.parametrize("is_far", [False, True], ids=["beside", "far"])
async def test_each_event_is_told_once_beside_a_worker(here, database, children, is_far):
    url = from_far(database) if is_far else database
    async with working(url, TOP, BOSS, children=children):
        fleet = Fleet(here)
        for _ in range(3):
            run_id = await fleet.submit("top", "a")
            async with asyncio.timeout(LONG):
                events = await events_of(here.watch(run_id, children=True))
            assert_each_once(events, here, run_id, f"{run_id}.T1")
        run_id = await fleet.submit("boss", "a")
        watching = asyncio.create_task(events_of(here.watch(run_id, children=True)))
        for waiting, ticket in ((run_id, "T1"), (f"{run_id}.T2", "T1"), (run_id, "T3")):
            await until(lambda run=waiting: here.tickets(run=run, awaiting_approval=True))
            here.run(waiting).approve(ticket)
        assert_each_once(await asyncio.wait_for(watching, LONG), here, run_id, f"{run_id}.T2")


@pytest.mark.parametrize("children", ["here", "anywhere"])
@pytest.mark.parametrize("top_first", [False, True], ids=["below_first", "top_first"])
async def test_who_watches_a_run_and_who_watches_the_run_above_it_are_both_told(
    here, database, children, top_first
):
    gate = asyncio.Event()

    async def model(messages):
        await gate.wait()
        return finish("inner")

    inner = Agent(model, name="inner")
    middle = Agent(
        turns(call("inner", task="c"), finish("middle")),
        tools=[inner.as_tool(description="Is the last.")],
        name="middle",
    )
    top = Agent(
        turns(call("middle", task="b"), finish("top")),
        tools=[middle.as_tool(description="Is in the middle.")],
        name="highest",
    )
    async with working(from_far(database), top, children=children):
        run_id = await Fleet(here).submit("highest", "a")
        below = f"{run_id}.T1"
        last = f"{below}.T1"
        begun = {"status": "running", "agent": "inner"}
        await until(lambda: here.runs(**begun), "the last run has begun")
        watching = {}
        for one in (run_id, below) if top_first else (below, run_id):
            watching[one] = asyncio.create_task(events_of(here.watch(one, children=True)))
            await asyncio.sleep(0.5)
        gate.set()
        events = {one: await asyncio.wait_for(task, LONG) for one, task in watching.items()}
    assert_each_once(events[run_id], here, run_id, below, last)
    # A run that somebody followed already is told from then on.
    told = seqs(events[below], last)
    assert told
    assert told == all_seqs(here, last)[-len(told) :]
    assert seqs(events[below], below) == all_seqs(here, below)


async def test_a_run_that_another_worker_has_taken_over_is_told_once(here, database):
    lost = asyncio.Event()

    @tool(effect="idempotent")
    async def work() -> str:
        """Work."""
        await lost.wait()
        return "worked"

    agent = Agent(turns(call("work"), finish()), tools=[work], name="clerk")
    async with working(database, agent, lease=2) as fleet:
        run_id = await fleet.submit("clerk", "?")
        await until(lambda: here.tickets(run=run_id), "the call is under way")
        watching = asyncio.create_task(events_of(fleet.store.watch(run_id, children=True)))
        await asyncio.sleep(0.1)
        with psycopg.connect(database, autocommit=True) as connection:
            sql = "UPDATE callslip.run SET epoch = epoch + 1 WHERE id = %s"
            connection.execute(sql, [run_id])
        lost.set()
        events = await asyncio.wait_for(watching, LONG)
    assert_each_once(events, here, run_id)


# The loop.


async def test_the_end_of_a_watch_leaves_the_loop_to_others_while_the_database_is_silent(database):
    with Proxy(database) as proxy, TicketStore(proxy.url) as web:
        run = web.run(await ended_run(Fleet(web), database))
        proxy.freeze()
        watching = asyncio.create_task(events_of(run.watch()))
        await asyncio.sleep(0.3)
        # Nobody but this loop can let the database answer.
        proxy.resume()
        assert len(await asyncio.wait_for(watching, LONG)) == len(run.log)


async def test_the_end_of_a_watch_leaves_the_loop_to_others_while_a_query_runs(here, database):
    run = here.run(await ended_run(Fleet(here), database))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
        query = asyncio.create_task(
            asyncio.to_thread(here.query, "SELECT pg_advisory_xact_lock(7) IS NULL AS x")
        )
        waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        await until(lambda: connection.execute(waits).fetchone() is not None, "the query waits")
        watching = asyncio.create_task(events_of(run.watch()))
        await asyncio.sleep(0.3)
        connection.execute("SELECT pg_advisory_unlock(7)")
        assert await asyncio.wait_for(query, LONG) == [{"x": False}]
        assert len(await asyncio.wait_for(watching, LONG)) == len(run.log)


async def test_a_watch_whose_database_is_away_at_its_end_waits_for_it(database):
    with Proxy(database) as proxy, TicketStore(proxy.url) as web:
        run = web.run(await ended_run(Fleet(web), database))
        proxy.drop()
        watching = asyncio.create_task(events_of(run.watch()))
        await asyncio.sleep(0.5)
        proxy.resume()
        assert len(await asyncio.wait_for(watching, LONG)) == len(run.log)


# Runs that are gone.


def waiters(fleet, run_id):
    async def awaited():
        return await fleet.store.run(run_id)

    return {
        "result": lambda: fleet.result(run_id),
        "watch": lambda: events_of(fleet.store.watch(run_id)),
        "watch with children": lambda: events_of(fleet.store.watch(run_id, children=True)),
        "await": awaited,
    }


@pytest.mark.parametrize("is_far", [False, True], ids=["here", "far"])
@pytest.mark.parametrize("state", ["queued", "resting"])
async def test_who_waits_for_a_run_is_told_that_it_was_deleted(here, far, state, is_far):
    fleet = Fleet(here)
    driver = Fleet(far, [BOSS], lease=5)
    run_id = await fleet.submit("boss", "a")
    if state == "resting":
        assert await asyncio.wait_for(driver.drive(run_id), LONG) == "rests"
    ways = waiters(fleet, run_id)
    waiting = [asyncio.create_task(way()) for way in ways.values()]
    await asyncio.sleep(0.5)
    assert [task.done() for task in waiting] == [False] * 4
    assert (far if is_far else here).delete(run_id) == 1
    done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), LONG)
    message = f"there is no run {run_id} in this store: it was deleted"
    assert [(type(one), str(one)) for one in done] == [(UnknownRun, message)] * 4


async def test_who_waits_with_a_store_that_is_closed_is_told_so(database, here):
    web = TicketStore(from_far(database))
    fleet = Fleet(web)
    run_id = await fleet.submit("boss", "a")
    waiting = [asyncio.create_task(way()) for way in waiters(fleet, run_id).values()]
    await asyncio.sleep(0.5)
    # Another object of the same store goes on.
    with TicketStore(from_far(database)) as other:
        going_on = asyncio.create_task(events_of(other.watch(run_id, children=True)))
        await asyncio.sleep(0.5)
        web.close()
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), LONG)
        message = "this store is closed: open it again to use it"
        assert [(type(one), str(one)) for one in done] == [(StoreError, message)] * 4
        driver = Fleet(here, [BOSS.replace(model=turns(finish()))], lease=5)
        assert await asyncio.wait_for(driver.drive(run_id), LONG) == "over"
        assert_each_once(await asyncio.wait_for(going_on, LONG), here, run_id)


@pytest.mark.parametrize("is_below", [False, True], ids=["its own log", "that of a child run"])
async def test_who_waits_for_a_run_is_told_that_its_log_cannot_be_read(
    here, far, database, is_below
):
    fleet = Fleet(here)
    driver = Fleet(far, [BOSS], lease=5)
    run_id = await fleet.submit("boss", "a")
    assert await asyncio.wait_for(driver.drive(run_id), LONG) == "rests"
    broken = run_id
    if is_below:
        far.run(run_id).approve("T1")
        assert await asyncio.wait_for(driver.drive(run_id), LONG) == "rests"
        broken = f"{run_id}.T2"
    waiting = [asyncio.create_task(way()) for way in waiters(fleet, run_id).values()]
    await asyncio.sleep(0.5)
    assert [task.done() for task in waiting] == [False] * 4
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO callslip.event SELECT run, seq + 1, at, 'later', '{\"type\":\"later\"}' "
            "FROM callslip.event JOIN callslip.run ON key = run WHERE id = %s "
            "ORDER BY seq DESC LIMIT 1",
            [broken],
        )
        connection.execute("UPDATE callslip.run SET next = next + 1 WHERE id = %s", [broken])
    done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), LONG)
    assert {type(one) for one in done} == {StoreError}
    for one in done:
        assert f" of run {broken} can't be read: unknown variant `later`" in str(one)


async def test_who_waits_hears_nothing_of_a_database_that_was_away(database, far):
    with Proxy(database) as proxy, TicketStore(proxy.url) as web:
        fleet = Fleet(web)
        run_id = await fleet.submit("boss", "a")
        waiting = [asyncio.create_task(way()) for way in waiters(fleet, run_id).values()]
        await asyncio.sleep(0.5)
        proxy.drop()
        await asyncio.sleep(4)
        assert [task.done() for task in waiting] == [False] * 4
        proxy.resume()
        driver = Fleet(far, [BOSS.replace(model=turns(finish()))], lease=5)
        assert await asyncio.wait_for(driver.drive(run_id), LONG) == "over"
        await asyncio.wait_for(asyncio.gather(*waiting), LONG)
