"""Tenants: they take turns, and their limits are never passed."""

import asyncio
import os
import random
import signal
import time
from collections import Counter

import psycopg
import pytest

from callslip import Agent, TicketStore
from callslip.fleet import Fleet
from fleets.agents import finish
from fleets.nursery import Nursery
from fleets.spans import make, most_at_once

LONG = 60
SEED = int(os.environ.get("CALLSLIP_FLEET_SEED", "11"))


@pytest.fixture
def web(database):
    """The store of a process that drives nothing."""
    with TicketStore(database) as store:
        yield store


async def until_all_have_ended(store, count):
    end = time.monotonic() + LONG
    while len(await asyncio.to_thread(lambda: store.runs(status="finished"))) < count:
        assert time.monotonic() < end, "all have ended"
        await asyncio.sleep(0.05)


async def test_a_hundred_tenants_take_turns(web, database):
    now, most, order = Counter(), Counter(), []

    async def model(messages):
        tenant = next(one["content"] for one in messages if "tenant-" in one["content"])
        tenant = tenant[tenant.index("tenant-") :].split()[0]
        order.append(tenant)
        now[tenant] += 1
        most[tenant] = max(most[tenant], now[tenant])
        await asyncio.sleep(0.02)
        now[tenant] -= 1
        return finish()

    fleet = Fleet(web, default_limit=2)
    tenants = ["tenant-0"] * 150 + [f"tenant-{number}" for number in range(1, 100)] * 2
    for tenant in tenants:
        await fleet.submit("clerk", tenant, tenant=tenant)
    working = asyncio.create_task(
        Fleet(web, [Agent(model, name="clerk")], default_limit=2).work(slots=16)
    )
    await until_all_have_ended(web, len(tenants))
    working.cancel()
    await asyncio.wait([working])
    assert max(most.values()) == 2
    assert len(most) == 100
    # Whoever has 150 runs, before all others, has no more at once than they have.
    last_other = max(at for at, tenant in enumerate(order) if tenant != "tenant-0")
    assert order[:last_other].count("tenant-0") < 75


async def test_the_limit_of_a_tenant_is_never_passed_when_workers_are_killed(
    web, database, tmp_path
):
    chance = random.Random(SEED)
    make(database)
    fleet = Fleet(web, limits={"a": 3, "b": 2})
    runs = [
        await fleet.submit("slow", f"TASK-{number}", tenant="a" if number % 3 else "b")
        for number in range(60)
    ]
    ended = {}
    with Nursery() as nursery, psycopg.connect(database, autocommit=True) as connection:

        def clock():
            return connection.execute("SELECT clock_timestamp()").fetchone()[0]

        alive = [nursery.start("work_slowly", tmp_path / "log", database) for _ in range(3)]
        for number in range(12):
            await asyncio.sleep(chance.uniform(0.1, 0.3))
            pid = alive[number % 3]
            ended[pid] = clock()
            os.kill(pid, signal.SIGKILL)
            await nursery.end(pid)
            alive[number % 3] = nursery.start("work_slowly", tmp_path / "log", database)
        await until_all_have_ended(web, len(runs))
    at_once = most_at_once(database, ended)
    assert at_once["a"] <= 3
    assert at_once["b"] <= 2
    assert sum(at_once.values()) >= 4
