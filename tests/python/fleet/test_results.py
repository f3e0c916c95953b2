"""Results of runs of a database, whenever they are asked for."""

import asyncio

import pytest

from callslip import Agent, LimitExceeded, Limits, TicketStore, UsageError
from callslip.fleet import Fleet, _fleet
from fleets.boss import BOSS, ended_run, from_far
from fleets.here import LONG, call, finish, pay, turns, until, working
from postgres import Proxy

pytestmark = pytest.mark.timeout(120)


async def test_a_result_has_its_timeout_while_the_database_is_silent(database, monkeypatch):
    monkeypatch.setattr(_fleet, "_ANSWER", 0.2)
    with Proxy(database) as proxy, TicketStore(proxy.url) as web:
        fleet = Fleet(web)
        run_id = await ended_run(fleet, database)
        proxy.freeze()
        with pytest.raises(TimeoutError, match="no answer about run"):
            await fleet.result(run_id, timeout=0.1)
        proxy.resume()
        assert (await fleet.result(run_id, timeout=LONG)).value == "below"


@pytest.mark.parametrize("seconds", [0, 0.001, LONG])
async def test_a_run_that_has_ended_is_returned_with_any_timeout(here, database, seconds):
    fleet = Fleet(here)
    run_id = await ended_run(fleet, database)
    assert (await fleet.result(run_id, timeout=seconds)).value == "below"
    failing = Agent(
        turns(call("pay", amount=1)),
        tools=[pay],
        limits=Limits(turns=1),
        on_limit="raise",
        name="fails",
    )
    async with working(database, failing):
        run_id = await fleet.submit("fails", "a")
        await until(lambda: here.tickets(run=run_id, awaiting_approval=True))
        with pytest.raises(TimeoutError, match=f"run {run_id} goes on after 0 seconds"):
            await fleet.result(run_id, timeout=0)
        here.run(run_id).approve("T1")
        with pytest.raises(LimitExceeded):
            await fleet.result(run_id, timeout=LONG)
    with pytest.raises(LimitExceeded):
        await fleet.result(run_id, timeout=seconds)


async def test_a_run_that_goes_on_is_not_returned_as_it_was(here, far):
    agent = Agent(lambda messages: finish(str(len(messages))), name="clerk")
    fleet = Fleet(here)
    run_id = await fleet.submit("clerk", "a")
    assert await asyncio.wait_for(Fleet(far, [agent], lease=5).drive(run_id), LONG) == "over"
    first = (await fleet.result(run_id, timeout=0)).value
    far.run(run_id).send("more")
    with pytest.raises(TimeoutError):
        await fleet.result(run_id, timeout=0)
    waiting = asyncio.create_task(fleet.result(run_id, timeout=LONG))
    assert await asyncio.wait_for(Fleet(far, [agent], lease=5).drive(run_id), LONG) == "over"
    assert (await waiting).value != first


@pytest.mark.parametrize("is_far", [False, True], ids=["beside", "far"])
async def test_a_run_that_was_read_is_awaited_wherever_it_is_driven(here, database, is_far):
    run_id = await Fleet(here).submit("boss", "a")
    queued = here.run(run_id)
    waiting = [asyncio.create_task(result_of(queued)), asyncio.create_task(result_of(queued))]
    async with working(from_far(database) if is_far else database, BOSS):
        await until(lambda: here.tickets(run=run_id, awaiting_approval=True))
        resting = here.run(run_id)
        waiting.append(asyncio.create_task(result_of(resting)))
        for at, ticket in ((run_id, "T1"), (f"{run_id}.T2", "T1"), (run_id, "T3")):
            await until(lambda run=at: here.tickets(run=run, awaiting_approval=True))
            here.run(at).approve(ticket)
        results = await asyncio.wait_for(asyncio.gather(*waiting), LONG)
        assert [result.value for result in results] == ["done"] * 3
        # The objects are as the result is, however late they are asked.
        assert (queued.finished, resting.finished) == (True, True)
        assert (await queued).value == (await resting).value == "done"


async def result_of(run):
    return await run


async def test_a_result_is_of_the_type_of_a_version_that_fits(web, database):
    earlier = Agent(turns(finish("three")), returns=str, name="clerk")
    present = earlier.replace(model=turns(finish(3)), returns=int)
    async with working(database, earlier) as fleet:
        run_id = await fleet.submit("clerk", "?")
        assert (await fleet.result(run_id, timeout=LONG)).value == "three"
    assert (await Fleet(web).result(run_id, timeout=LONG)).value == "three"
    both = Fleet(web, [present], accept=[earlier])
    assert (await both.result(run_id, timeout=LONG)).value == "three"
    with pytest.raises(UsageError, match="is not of the type in returns: 'answer' must be an int"):
        await Fleet(web, [present]).result(run_id, timeout=LONG)
