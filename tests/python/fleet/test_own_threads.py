"""Tools that occupy every thread of asyncio hold up neither claims nor cancels nor the end."""

import asyncio
import threading

import pytest

from callslip import Agent, RunCancelled, tool
from callslip._threads import pool
from fleets.here import LONG, call, finish, turns, working

pytestmark = pytest.mark.timeout(120)


async def test_the_threads_of_asyncio_are_not_those_of_a_worker(web, database):
    release, looks = threading.Event(), threading.Event()

    @tool
    async def look() -> str:
        """Look."""
        looks.set()
        await asyncio.Event().wait()

    quick = Agent(turns(finish("quick")), name="quick")
    slow = Agent(turns(call("look"), finish()), tools=[look], name="slow")
    loop = asyncio.get_running_loop()
    # What tools do that call `asyncio.to_thread`, of more slots than there are threads.
    blocked = [loop.run_in_executor(None, release.wait, LONG) for _ in range(64)]
    try:
        async with asyncio.timeout(LONG), working(database, quick, slow) as fleet:
            run = await fleet.submit("quick", "go")
            assert (await fleet.result(run)).value == "quick"
            run = await fleet.submit("slow", "go")
            while not looks.is_set():
                await asyncio.sleep(0.01)
            await pool.in_own_thread(web.run(run).cancel)
            with pytest.raises(RunCancelled):
                await fleet.result(run)
        assert not any(one.done() for one in blocked)
    finally:
        release.set()
        await asyncio.wait(blocked)
