"""Tools that occupy every thread of asyncio hold up neither claims nor cancels nor the end."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from callslip import Agent, RunCancelled, tool
from callslip._threads import pool
from callslip.fleet import Fleet
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


PROGRAM = """
import asyncio, os, pathlib, signal, time
from callslip import Agent, TicketStore, tool
from callslip.fleet import Fleet
from fleets.here import call, finish, turns

# Whoever starts the tests may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

@tool
async def block() -> str:
    pathlib.Path(os.environ["BEGUN"]).touch()
    await asyncio.to_thread(time.sleep, 600)

agent = Agent(turns(call("block"), finish()), tools=[block], name="blocked")
fleet = Fleet(TicketStore(os.environ["URL"]), [agent], lease=5)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_although_a_tool_occupies_a_thread(web, database, tmp_path, number):
    begun = tmp_path / "begun"
    (tmp_path / "program.py").write_text(PROGRAM)
    paths = [str(tmp_path), *filter(None, sys.path)]
    env = {**os.environ, "URL": database, "BEGUN": str(begun), "PYTHONPATH": os.pathsep.join(paths)}
    words = [sys.executable, "-m", "callslip", "work", "program:fleet", "--grace", "0.1"]
    with subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL) as worker:
        try:
            run = asyncio.run(Fleet(web).submit("blocked", "go"))
            until = time.monotonic() + LONG
            while not begun.exists():
                assert time.monotonic() < until
                time.sleep(0.02)
            worker.send_signal(number)
            assert worker.wait(LONG) == (0 if number == signal.SIGTERM else 130)
        finally:
            worker.kill()
    # It was left to others, and its call is in doubt.
    assert not web.run(run).finished
