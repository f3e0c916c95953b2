"""What was claimed and cannot be driven just now is left to others, whatever happens meanwhile."""

import asyncio
import logging
import threading
import time

import pytest

from callslip import Agent, StoreError, TicketStore
from callslip._runtime.opening import take_in_thread
from callslip.errors import NoLease
from callslip.fleet import Fleet
from callslip.fleet._driven import Claim, ForRuns
from callslip.fleet._worker import Worker
from fleets.here import LONG, call, finish, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)


def clerk(*tools, name="clerk"):
    return Agent(turns(call("pay", amount=7), finish()), tools=tools or (pay,), name=name)


class Shared:
    """A shared store that admits claims, and is away when a run is given back."""

    def __init__(self, store):
        self.store = store
        self.let_go_of = []
        self.claims = threading.Event()
        self.goes_on = threading.Event()

    def claim(self, *_):
        self.claims.set()
        self.goes_on.wait(LONG)
        return [tuple(claim(one)) for one in ("one", "two")], 0

    def refuse(self, *_):
        raise StoreError("the database is away")

    def let_go(self, run_id, _):
        self.let_go_of.append(run_id)


def claim(run_id, claims=1, ago=0):
    at = time.monotonic() - ago
    return Claim(run_id, 1, "clerk", None, claims, False, "shape", None, at)


def worker_of(shared, fleet):
    program = ForRuns(None, None, False)
    queues = ["default"]
    return Worker(shared, fleet._agents, queues=queues, slots=4, grace=1, new=True, program=program)


async def test_a_run_is_started_although_another_one_cannot_be_given_back(web):
    fleet, shared = Fleet(web, [clerk()]), Shared(web)
    shared.goes_on.set()
    worker, started = worker_of(shared, fleet), []
    worker._start = lambda claim: started.append(claim.run_id)
    fleet._agents.failed.add("one")
    with pytest.raises(StoreError, match="away"):
        await worker._claim()
    assert (started, shared.let_go_of) == (["two"], ["one"])
    assert fleet._agents.failed == {"one"}


async def test_suspects_are_given_back_before_one_of_them_starts(web):
    """It may end the worker: the others' claims must not count as in vain then."""
    shared = Shared(web)
    worker, done = worker_of(shared, Fleet(web, [clerk()])), []
    shared.refuse = lambda run_id, _, __: done.append(f"{run_id} is back")
    worker._start = lambda claim: done.append(claim.run_id)
    suspects = [claim(f"suspect {number}", 3) for number in range(3)]
    await worker._start_all([*suspects, claim("other")])
    assert done == ["other", "suspect 1 is back", "suspect 2 is back", "suspect 0"]


@pytest.mark.parametrize(("so_far", "delay"), [(0, 0.2), (3, 3), (60, 10)])
async def test_suspects_wait_for_as_long_as_another_one_has_taken(web, so_far, delay):
    shared, done = Shared(web), []
    shared.refuse = lambda _, __, seconds: done.append(seconds)
    worker = worker_of(shared, Fleet(web, [clerk()]))
    worker._driven_suspect = lambda: claim("another", 3, so_far)
    await worker._start_all([claim("suspect", 3)])
    assert done == [pytest.approx(delay, abs=1)]


async def test_a_suspect_does_not_start_if_the_others_cannot_be_given_back(web):
    shared, started = Shared(web), []
    worker = worker_of(shared, Fleet(web, [clerk()]))
    worker._start = lambda claim: started.append(claim.run_id)
    with pytest.raises(StoreError, match="away"):
        await worker._start_all([claim("one", 3), claim("two", 3)])
    assert (started, sorted(shared.let_go_of)) == ([], ["one", "two"])


async def test_what_is_claimed_is_left_by_a_worker_that_is_cancelled_twice(web):
    fleet, shared = Fleet(web, [clerk()]), Shared(web)
    worker = worker_of(shared, fleet)
    task = asyncio.create_task(worker._claim())
    await asyncio.to_thread(shared.claims.wait, LONG)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task])
    shared.goes_on.set()
    await until(lambda: shared.let_go_of == ["one", "two"], "both are left")


async def test_an_error_of_what_is_opened_after_the_end_is_nobodys():
    loop, said, goes_on = asyncio.get_running_loop(), [], threading.Event()
    loop.set_exception_handler(lambda _, context: said.append(context["message"]))

    def take():
        goes_on.wait(LONG)
        raise NoLease("too late")

    task = asyncio.create_task(take_in_thread(take, lambda _: None))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task])
    del task
    goes_on.set()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(others)
    del others
    await asyncio.sleep(0.05)
    assert said == []


async def test_a_worker_says_once_that_it_has_no_agent_for_begun_runs(web, database, caplog):
    fleet = Fleet(web)
    async with working(database, clerk()):
        runs = [await fleet.submit("clerk", "?") for _ in range(2)]
        await until(lambda: len(web.tickets(awaiting_approval=True)) == 2, "both wait")
    for run_id in runs:
        web.run(run_id).approve("T1")
    with caplog.at_level(logging.WARNING, "callslip.fleet"), TicketStore(database) as store:
        changed = Agent(turns(finish()), name="clerk")
        task = asyncio.create_task(Fleet(store, [changed], lease=5).work(slots=1))
        await until(lambda: "was given back" in caplog.text, "it says so")
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
    assert caplog.text.count("was given back") == 1
    assert "pass the earlier one in accept=" in caplog.text


async def test_a_run_that_waits_for_a_worker_is_not_said_to_be_missing(web):
    run_id = await Fleet(web).submit("clerk", "?")
    agent = clerk().replace(store=web)
    with pytest.raises(StoreError, match=f"run {run_id} waits for a worker, which begins it"):
        await agent.resume(run_id)


async def test_runs_of_other_agents_are_not_touched(web, database):
    """Not even for a moment: a run that is given back waits for ten seconds."""
    others = [await Fleet(web).submit("other", "go") for _ in range(40)]
    async with working(database, Agent(turns(finish("mine")), name="mine"), slots=2) as fleet:
        mine = await fleet.submit("mine", "go")
        assert (await fleet.result(mine, timeout=LONG)).value == "mine"
        assert web.query("SELECT count(*) FROM pgmq.q_callslip_later")[0]["count"] == 0
        async with working(database, Agent(turns(finish("other")), name="other")) as second:
            for run in others:
                assert (await second.result(run, timeout=LONG)).value == "other"
            assert web.query("SELECT count(*) FROM pgmq.q_callslip_later")[0]["count"] == 0
