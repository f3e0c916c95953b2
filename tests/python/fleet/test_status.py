"""What `status` says of a fleet beyond its queues."""

import asyncio
import shutil
import subprocess
import threading
from contextlib import contextmanager

import psycopg
import pytest

from callslip import Agent, tool
from callslip.cli import main
from callslip.fleet import Fleet, _worker, status
from fleets.here import call, finish, pay, turns, until, working
from postgres import find_postgres

pytestmark = pytest.mark.timeout(120)


async def test_runs_that_no_worker_is_there_for(web, database, capsys):
    fleet = Fleet(web)
    agent = Agent(turns(call("pay", amount=7), finish()), tools=[pay], name="clerk")
    async with working(database, agent):
        await fleet.submit("clerk", "Pay 7.")
        await fleet.submit("clerk", "?", queue="batch")
        await fleet.submit("nobody", "?", tenant="acme")
        await until(lambda: status(web).resting == 1, "the first run rests")
        await until(lambda: status(web).workers, "the worker has said that it is there")
        now = status(web)
    # The worker has its agent, but not its queue.
    assert now.without_worker == {"clerk": 1, "nobody": 1}
    ((shape, runs),) = now.shapes.items()
    assert (shape.split()[0], len(shape.split()[1]), runs) == ("clerk", 8, 1)
    batch = next(queue for queue in now.queues if queue.name == "batch")
    assert batch.oldest_of == {"": pytest.approx(batch.oldest, abs=5)}
    assert main(["status", database]) == 0
    said = capsys.readouterr().out
    assert "no worker for 1 runs of 'nobody': start one with that agent and their queue" in said
    assert f"begun: {shape} 1" in said


async def test_a_begun_run_whose_shape_no_worker_has(web, database, capsys, monkeypatch):
    monkeypatch.setattr(_worker, "_ANNOUNCE", 0.1)
    before = Agent(turns(call("pay", amount=7), finish()), tools=[pay], name="clerk")
    async with working(database, before):
        run_id = await Fleet(web).submit("clerk", "Pay 7.")
        await until(lambda: status(web).resting == 1, "the run rests")
    after = Agent(turns(finish()), name="clerk")
    async with working(database, after):
        await until(lambda: status(web).workers, "the worker has said that it is there")
        web.run(run_id).approve("T1")
        await until(lambda: status(web).without_worker, "nobody goes on with it")
        now = status(web)
        assert now.without_worker == {"clerk": 1}
        assert now.metric("without_worker") == 1
        assert main(["status", database]) == 0
        assert "no worker for 1 runs of 'clerk'" in capsys.readouterr().out
        async with working(database, before):
            await until(lambda: len(status(web).workers) == 2, "another worker is there")
            assert status(web).metric("without_worker") == 0


async def test_a_run_that_was_left_waits_from_then_on(web, database):
    began, ends = threading.Event(), threading.Event()

    def model(_):
        began.set()
        ends.wait(60)
        return finish()

    agent = Agent(model, name="clerk")
    async with working(database, agent, grace=0):
        await Fleet(web).submit("clerk", "?", tenant="acme")
        await until(began.is_set, "it is driven")
        # As if it had been driven for an hour.
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "UPDATE pgmq.q_callslip_default SET enqueued_at = enqueued_at - interval '1 hour'"
            )
        assert status(web).metric("queue_age") == 0
    ends.set()
    now = status(web)
    queue = next(queue for queue in now.queues if queue.name == "default")
    assert (queue.waiting, now.metric("queue_length")) == (1, 1)
    assert 0 < now.metric("queue_age") < 600
    assert queue.oldest_of == {"acme": pytest.approx(queue.oldest, abs=5)}


async def test_a_run_that_nobody_has_taken_waits_since_it_was_submitted(web, database):
    await Fleet(web).submit("clerk", "?")
    with psycopg.connect(database, autocommit=True) as connection:
        # An engine asks again and again what is due.
        connection.execute("SELECT callslip.due(0, 10)")
        connection.execute(
            "UPDATE pgmq.q_callslip_default SET enqueued_at = enqueued_at - interval '1 hour'"
        )
    assert status(web).metric("queue_age") >= 3600


async def test_a_run_that_waits_for_a_call_elsewhere_is_not_at_rest(web, database, capsys):
    began, ends = asyncio.Event(), asyncio.Event()

    @tool(queue="gpu")
    async def render() -> str:
        """Render."""
        began.set()
        await ends.wait()
        return "a picture"

    agent = Agent(turns(call("render"), finish()), tools=[render], name="painter")
    async with working(database, agent, queues=["default", "gpu"]) as fleet:
        run_id = await fleet.submit("painter", "?")
        await asyncio.wait_for(began.wait(), 30)
        await until(lambda: status(web).waiting_below == 1, "the run waits for the call")
        now = status(web)
        assert (now.queued, now.running, now.resting) == (0, 1, 0)
        assert main(["status", database]) == 0
        assert "1 running (0 at rest, 1 wait for others)" in capsys.readouterr().out
        ends.set()
        await fleet.result(run_id, timeout=30)
    now = status(web)
    assert (now.running, now.resting, now.waiting_below) == (0, 0, 0)


async def test_a_transaction_that_holds_up_vacuum(web, database):
    with psycopg.connect(database) as holding:
        holding.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holding.execute("SELECT 1 FROM callslip.run")
        for number in range(20):
            await Fleet(web).submit("clerk", str(number))
        assert status(web).oldest_xmin >= 20
    assert status(web).metric("oldest_xmin") < 20


@contextmanager
def receiving(url, folder):
    """Something that receives the log of the database, as a standby does."""
    beside = (find_postgres() / "postgres").resolve().parent / "pg_receivewal"
    program = beside if beside.exists() else shutil.which("pg_receivewal")
    assert program, "this PostgreSQL has no pg_receivewal"
    where = psycopg.conninfo.conninfo_to_dict(url)
    command = [
        str(program),
        "--synchronous",
        "-s",
        "1",
        "-D",
        str(folder),
        "-h",
        where["host"],
        "-p",
        where["port"],
    ]
    process = subprocess.Popen([*command, "-U", where["user"], "-n"], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_how_far_a_standby_is_behind(web, database, tmp_path):
    assert status(web).standby_lag == {}
    with receiving(database, tmp_path):
        await until(lambda: status(web).standbys, "it receives")
        assert status(web).standbys == {"pg_receivewal": "async"}
        await Fleet(web).submit("clerk", "?")
        await until(lambda: status(web).standby_lag["pg_receivewal"] is not None, "it has said so")
        assert status(web).standby_lag["pg_receivewal"] >= 0
