"""Results from outside for runs of a database, whoever drives them and whoever answers."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import Agent, TicketStore, UsageError, ask_user, replay, tool
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, turns, until, working

pytestmark = pytest.mark.timeout(120)

QUESTION = {"question": "Which one?", "choices": ["red", "größer 😀"]}


def clerk():
    return Agent(turns(call("ask_user", **QUESTION), finish()), tools=[ask_user], name="clerk")


def is_at_rest(web):
    return not web.query("SELECT FROM callslip.run WHERE msg IS NOT NULL")


@pytest.mark.parametrize("is_driven", [True, False])
async def test_a_run_that_rests_is_answered(web, database, is_driven):
    async with working(database, clerk()):
        run_id = await Fleet(web).submit("clerk", "x")
        await until(lambda: web.tickets(awaiting="result"))
        await until(lambda: is_at_rest(web))
        if is_driven:
            await asyncio.to_thread(web.run(run_id).answer, "T1", "red", by="ann")
            assert (await Fleet(web).result(run_id, timeout=LONG)).value == "done"
    if not is_driven:
        with pytest.raises(UsageError, match="must be one of"):
            await asyncio.to_thread(web.run(run_id).answer, "T1", "green")
        await asyncio.to_thread(web.run(run_id).answer, "T1", "größer 😀", by="ann")
        # It is given, though it does not stand in the log yet.
        assert web.tickets(awaiting="result") == []
        with pytest.raises(UsageError, match="ann has answered it already"):
            await asyncio.to_thread(web.run(run_id).answer, "T1", "red")
        async with working(database, clerk()):
            assert (await Fleet(web).result(run_id, timeout=LONG)).value == "done"
    run = web.run(run_id)
    assert run.tickets[0].result in QUESTION["choices"]
    assert replay(run).export() == run.export()
    with pytest.raises(UsageError, match="ann (has )?answered (it )?already"):
        await asyncio.to_thread(run.answer, "T1", "red")


async def test_of_a_hundred_answers_from_elsewhere_one_counts(web, database):
    def answer(number):
        barrier.wait(LONG)
        try:
            stores[number % 4].run(run_id).answer("T1", QUESTION["choices"][number % 2], by="ann")
        except UsageError as error:
            return str(error)
        return None

    barrier = threading.Barrier(100)
    stores = [TicketStore(database) for _ in range(4)]
    async with working(database, clerk()):
        run_id = await Fleet(web).submit("clerk", "x")
        await until(lambda: web.tickets(awaiting="result"))
        with ThreadPoolExecutor(100) as pool:
            loop = asyncio.get_running_loop()
            told = await asyncio.gather(
                *(loop.run_in_executor(pool, answer, number) for number in range(100))
            )
        await Fleet(web).result(run_id, timeout=LONG)
    for store in stores:
        store.close()
    refused = [one for one in told if one is not None]
    assert len(refused) == 99
    assert [one for one in refused if "already" not in one] == []


async def test_a_time_limit_wakes_a_run_that_rests(web, database):
    @tool(external=True, timeout=3)
    def slow() -> str:
        """Take long."""

    agent = Agent(turns(call("slow"), finish()), tools=[slow], name="clerk")
    async with working(database, agent):
        run_id = await Fleet(web).submit("clerk", "x")
        result = await Fleet(web).result(run_id, timeout=LONG)
    (ticket,) = result.tickets
    assert ticket.error.endswith("TimeoutError: no result within 3 seconds.")
    assert 2.9 < ticket.seconds < LONG
