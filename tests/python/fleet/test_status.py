"""What `status` says of a fleet beyond its queues."""

import shutil
import subprocess
from contextlib import contextmanager

import psycopg
import pytest

from callslip import Agent, TicketStore, tool
from callslip.cli import main
from callslip.fleet import Fleet, status
from fleets.here import call, finish, turns, until, working
from postgres import find_postgres

pytestmark = pytest.mark.timeout(120)


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture
def web(database):
    """The store of a process that drives nothing."""
    with TicketStore(database) as store:
        yield store


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
