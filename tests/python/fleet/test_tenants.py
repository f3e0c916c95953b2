"""Tenants: they take turns, and their limits are never passed."""

import asyncio
import os
import random
import signal
import time
from collections import Counter

import psycopg
import pytest

from callslip import Agent, tool
from callslip.fleet import Fleet, migrate, status
from fleets import here
from fleets.agents import finish
from fleets.here import until, working
from fleets.nursery import Nursery
from fleets.spans import make, most_at_once

LONG = 60
SEED = int(os.environ.get("CALLSLIP_FLEET_SEED", "11"))


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


@pytest.mark.random_cases
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


class Busy:
    """An agent whose runs stay under way until they may end, and which of them are."""

    def __init__(self):
        self.now, self.order, self.ends = Counter(), [], Counter()
        self.agent = Agent(self._model, name="clerk")

    async def _model(self, messages):
        tenant = messages[-1]["content"].split()[-1]
        self.now[tenant] += 1
        self.order.append(tenant)
        try:
            while not self.ends[tenant]:
                await asyncio.sleep(0.01)
            self.ends[tenant] -= 1
        finally:
            # A call that is given up is no longer under way: its run may be taken once more.
            self.now[tenant] -= 1
        return finish()

    async def settle(self, **wanted):
        """Wait until so many are under way, and see that it stays so."""
        await until(lambda: +self.now == Counter(wanted), f"{wanted}")
        await asyncio.sleep(0.3)
        assert +self.now == Counter(wanted)


async def test_tenants_that_submit_by_turns_have_their_limits_at_once(web, database):
    busy = Busy()
    fleet = Fleet(web, limits={"acme": 2}, default_limit=3)
    for _ in range(8):
        for tenant in ("acme", "zeta", "beta"):
            await fleet.submit("clerk", tenant, tenant=tenant)
    async with working(database, busy.agent, slots=32):
        await busy.settle(acme=2, zeta=3, beta=3)
        # One that goes on for long holds up no other one.
        for rest in range(6, 0, -1):
            busy.ends["acme"] += 1
            await until(lambda rest=rest: busy.order.count("acme") == 9 - rest, "the next one")
        await busy.settle(acme=2, zeta=3, beta=3)
        busy.ends.update(acme=2, zeta=8, beta=8)
        await until_all_have_ended(web, 24)


@pytest.mark.parametrize(("slots", "limit"), [(1, 1), (1, 4), (2, 4), (4, 2), (2, None)])
async def test_tenants_take_turns_whatever_the_slots(web, database, slots, limit):
    busy = Busy()
    busy.ends.update(acme=20, zeta=3)
    fleet = Fleet(web, default_limit=limit)
    for tenant in ["acme"] * 20 + ["zeta"] * 3:
        await fleet.submit("clerk", tenant, tenant=tenant)
    async with working(database, busy.agent, slots=slots):
        await until_all_have_ended(web, 23)
    last = max(at for at, tenant in enumerate(busy.order) if tenant == "zeta")
    assert busy.order[: last + 1].count("acme") <= 3 + slots


async def test_a_limit_holds_for_all_queues_and_all_workers_of_a_tenant(web, database):
    busy = Busy()
    fleet = Fleet(web, limits={"acme": 3})
    for number in range(12):
        await fleet.submit(
            "clerk", "acme", tenant="acme", queue="batch" if number % 2 else "default"
        )
    queues = ["default", "batch"]
    async with (
        working(database, busy.agent, queues=queues),
        working(database, busy.agent, queues=queues),
        working(database, busy.agent, queues=["batch"]),
    ):
        await busy.settle(acme=3)
        busy.ends["acme"] += 2
        await until(lambda: len(busy.order) == 5, "two more")
        await busy.settle(acme=3)
        busy.ends["acme"] += 10
        await until_all_have_ended(web, 12)


async def test_a_limit_that_was_raised_holds_for_the_runs_that_were_given_it(web, database):
    busy = Busy()
    for limit, count in ((2, 3), (4, 3)):
        for _ in range(count):
            await Fleet(web, limits={"acme": limit}).submit("clerk", "acme", tenant="acme")
    async with working(database, busy.agent):
        # Two of the first three, and of the others as many as fill up their limit.
        await busy.settle(acme=4)
        busy.ends["acme"] += 6
        await until_all_have_ended(web, 6)


async def test_runs_without_a_tenant_take_turns_with_those_that_have_one(web, database):
    busy = Busy()
    busy.ends.update(nobody=20, acme=2)
    fleet = Fleet(web, default_limit=4)
    for _ in range(20):
        await fleet.submit("clerk", "nobody")
    for _ in range(2):
        await fleet.submit("clerk", "acme", tenant="acme")
    async with working(database, busy.agent, slots=1):
        await until_all_have_ended(web, 22)
    assert "acme" in busy.order[:2]


async def test_a_worker_that_takes_no_new_runs_takes_one_that_waits_behind_them(web, database):
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    replies = (here.call("pay"), here.finish("begun"))
    agent = Agent(here.turns(*replies), tools=[pay], name="clerk")
    fleet = Fleet(web, limits={"acme": 1})
    begun = await fleet.submit("clerk", "?", tenant="acme")
    async with working(database, agent):
        await until(lambda: status(web).resting == 1, "it rests")
    new = await fleet.submit("clerk", "?", tenant="acme")
    web.run(begun).approve("T1")
    async with working(database, agent, new=False):
        assert (await fleet.result(begun, timeout=LONG)).value == "begun"
    assert web.query("SELECT next FROM callslip.run WHERE id = $1", [new]) == [{"next": 0}]


async def test_a_run_that_is_left_makes_room_at_once(web, database):
    """Workers that hear of nothing look only once in a while."""
    with psycopg.connect(database, autocommit=True) as listening:
        listening.execute("LISTEN callslip_queue")
        busy = Busy()
        busy.ends["acme"] += 1
        await Fleet(web, limits={"acme": 1}).submit("clerk", "acme", tenant="acme")
        async with working(database, busy.agent):
            await until_all_have_ended(web, 1)
            await until(
                lambda: web.query("SELECT FROM callslip.run WHERE msg IS NULL"), "it is left"
            )
        told = [notice.payload for notice in listening.notifies(timeout=5, stop_after=2)]
    assert told == ["default", "default"]


async def test_lanes_of_the_earlier_version_become_those_of_this_one(web, database):
    fleet = Fleet(web, limits={"acme": 2, "zeta": 3})
    runs = {
        await fleet.submit("clerk", tenant or "nobody", tenant=tenant): tenant
        for tenant in ("acme", "acme", "acme", "zeta", "zeta", "free", None)
    }
    with psycopg.connect(database) as connection:
        # As versions 2 and 1 had them: the first of acme, and those of zeta.
        connection.execute(
            "UPDATE callslip.run SET lane = CASE WHEN lanes IS NULL THEN '' "
            "ELSE tenant || '/' || key % lanes END"
        )
        connection.execute("UPDATE callslip.run SET lanes = NULL WHERE tenant = 'zeta'")
        connection.execute(
            "UPDATE pgmq.q_callslip_default AS q SET headers = jsonb_build_object("
            "'x-pgmq-group', coalesce(nullif(run.lane, ''), run.id)) "
            "FROM callslip.run WHERE run.msg = q.msg_id"
        )
        connection.execute(
            "DROP VIEW callslip.runs, callslip.tickets; "
            "ALTER TABLE callslip.run DROP COLUMN owner, ADD UNIQUE (submit_key); "
            "DROP INDEX IF EXISTS callslip.run_submit_key; "
            "ALTER TABLE callslip.ticket DROP COLUMN awaits_result, DROP COLUMN external, "
            "DROP COLUMN answer_key, DROP COLUMN untrusted; "
            "DROP INDEX callslip.inbox_cancel; ALTER TABLE callslip.worker DROP COLUMN misfits; "
            "DROP TABLE callslip.tenant; DROP INDEX pgmq.q_callslip_default_lane; "
            "ALTER TABLE callslip.worker DROP COLUMN refuses; UPDATE callslip.meta SET version = 2"
        )
    assert migrate(database) == (2, 4)
    lanes = {row["id"]: row["lane"] for row in web.query("SELECT id, lane FROM callslip.run")}
    # Of version 1 nothing is left but the lanes themselves.
    expected = {"acme": "/2/acme", "zeta": "/2/zeta", "free": "//free", None: ""}
    assert lanes == {run_id: expected[tenant] for run_id, tenant in runs.items()}
    busy = Busy()
    async with working(database, busy.agent):
        await busy.settle(acme=2, zeta=2, free=1, nobody=1)
        busy.ends.update(acme=3, zeta=2, free=1, nobody=1)
        await until_all_have_ended(web, 7)
