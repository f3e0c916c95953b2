"""A process with more open files than `select` can look at."""

import asyncio
import os

import pytest

from callslip import Agent
from fleets.here import LONG, call, finish, pay, turns, until

resource = pytest.importorskip("resource")

MOST_OF_SELECT = 1024


@pytest.fixture
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OF_SELECT + 500
    if before[1] != resource.RLIM_INFINITY and before[1] < wanted:
        pytest.skip("this user may not have as many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], wanted), before[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(MOST_OF_SELECT)]
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_descriptors")
async def test_a_decision_reaches_a_run_that_is_driven_there(here, far):
    run = Agent(turns(call("pay", amount=7), finish("paid")), tools=[pay], store=here).start("?")
    await until(lambda: far.tickets(run=run.id, awaiting_approval=True), "it waits")
    await asyncio.to_thread(lambda: far.run(run.id).approve("T1"))
    assert (await asyncio.wait_for(run, LONG)).value == "paid"
