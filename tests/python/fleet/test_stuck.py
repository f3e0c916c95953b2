"""Runs that make no progress are given up, and taken up by others."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from callslip import Agent, Context, UsageError, tool
from callslip.errors import TakenOver
from callslip.fleet import Fleet
from fleets.crash import SUPPORT
from fleets.hanging import hanging_agent
from fleets.here import LONG, call, finish, turns, until, working

pytestmark = pytest.mark.timeout(120)

REASON = "wrote no event and no tool of it reported progress for 1 s"


@contextmanager
def hanging(url, *options):
    """A worker in a process of its own, whose tool holds the interpreter for good."""
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    command = [sys.executable, "-m", "fleets.hanging", url, *options]
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_a_run_whose_worker_hangs_is_taken_up_by_another(web, database):
    with hanging(database, "--stuck", "1.5") as process:
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "?")
        await until(lambda: web.tickets(run=run_id), "the call is under way")
        async with working(database, hanging_agent(hangs=False), stuck=None):
            result = await fleet.result(run_id, timeout=LONG)
        assert process.poll() is None
    assert (result.value, result.tickets[0].result) == ("done", "ended")


async def test_without_stuck_a_worker_that_hangs_keeps_its_run(web, database):
    """Its lease is lengthened by a thread that needs no interpreter."""
    with hanging(database):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "?")
        await until(lambda: web.tickets(run=run_id), "the call is under way")
        async with working(database, hanging_agent(hangs=False)):
            with pytest.raises(TimeoutError):
                await fleet.result(run_id, timeout=4)


async def test_a_tool_that_reports_progress_is_left_alone(web, database):
    calls = []

    @tool
    async def render(context: Context) -> str:
        """Render."""
        calls.append(time.monotonic())
        # Longer than a run may be silent, with pauses that a busy machine may lengthen.
        for number in range(18):
            context.progress(number)
            await asyncio.sleep(0.4)
        return "rendered"

    artist = Agent(turns(call("render"), finish("a picture")), tools=[render], name="artist")
    boss = Agent(
        turns(call("artist", task="Render."), finish("seen")),
        tools=[artist.as_tool(description="Renders.")],
        name="boss",
    )
    async with working(database, artist, boss, lease=4, stuck=4):
        fleet = Fleet(web)
        # The progress of a child run is that of the run above it.
        runs = [await fleet.submit(name, "?") for name in ("artist", "boss")]
        results = [await fleet.result(run_id, timeout=LONG) for run_id in runs]
        assert [result.value for result in results] == ["a picture", "seen"]
    assert len(calls) == 2


async def test_the_driver_is_told_why_it_lost_the_run(web, database, caplog):
    @tool
    async def silent() -> str:
        """Say nothing."""
        await asyncio.sleep(3)
        return "over"

    agent = Agent(turns(call("silent"), finish()), tools=[silent], name="clerk")
    fleet = Fleet(web, [agent], lease=1, stuck=1)
    run_id = await fleet.submit("clerk", "?")
    with (
        caplog.at_level("WARNING", logger="callslip.fleet"),
        pytest.raises(TakenOver, match=REASON),
    ):
        await fleet.drive(run_id)
    assert f"run {run_id} was left: run {run_id} {REASON}" in caplog.text
    assert [event.kind for event in web.run(run_id).log][-1] == "ticket_opened"


async def test_a_worker_that_does_not_hang_itself_may_take_the_run_up_again(web, database, caplog):
    calls = []

    @tool(effect="idempotent")
    async def silent() -> str:
        """Say nothing, the first time."""
        calls.append(1)
        if len(calls) == 1:
            await asyncio.sleep(3600)
        return "over"

    agent = Agent(turns(call("silent"), finish()), tools=[silent], name="clerk")
    fleet = Fleet(web)
    async with working(database, agent, lease=1, stuck=1):
        result = await fleet.result(await fleet.submit("clerk", "?"), timeout=LONG)
    assert (result.value, len(calls)) == ("done", 2)
    assert REASON in caplog.text


@pytest.mark.parametrize("stuck", [0, -1, float("nan")])
def test_a_wrong_stuck_is_refused(web, stuck):
    with pytest.raises(UsageError, match="stuck to be a number of seconds from 1, or None"):
        Fleet(web, stuck=stuck)


async def test_a_fleet_that_drives_nothing_leaves_the_lease_of_its_store(web):
    left = []

    @tool
    async def look() -> str:
        """Look for how long the run is this worker's."""
        ends = "SELECT extract(epoch FROM vt) AS time FROM pgmq.q_callslip_default"
        left.extend(row["time"] - time.time() for row in web.query(ends))
        return "seen"

    agent = Agent(turns(call("look"), finish()), tools=[look], name="clerk")
    fleet = Fleet(web, [agent], lease=5)
    Fleet(web)
    run_id = await fleet.submit("clerk", "?")
    assert await asyncio.wait_for(fleet.drive(run_id), LONG) == "over"
    assert [0 < seconds <= 5 for seconds in left] == [True]
