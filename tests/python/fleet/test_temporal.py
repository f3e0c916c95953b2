"""Runs that a real Temporal drives: its dev server, workers in processes of their own."""

import asyncio
import os
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus

from callslip import TicketStore, UsageError
from callslip.fleet import Fleet
from callslip.temporal import Wake, activities
from fleets import ledger
from fleets.on_temporal import fleet_on_temporal

SUPPORT = Path(__file__).parents[2] / "support"
LONG = 60


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.fixture(scope="module")
def temporal():
    """The address of a server."""
    port = free_port()
    command = [Path(sysconfig.get_path("scripts")) / "temporal", "server", "start-dev"]
    command += ["--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            asyncio.run(_answers(f"127.0.0.1:{port}"))
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()


async def _answers(address):
    end = time.monotonic() + LONG
    while True:
        try:
            await Client.connect(address)
        except RuntimeError:
            assert time.monotonic() < end, "the server does not answer"
            await asyncio.sleep(0.1)
        else:
            return


def environment():
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


class Worker:
    """A process that works for Temporal, and the next one once it was killed."""

    def __init__(self, *arguments):
        self._command = [sys.executable, "-m", "fleets.on_temporal", *arguments]
        self.start()

    def start(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=environment())
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self):
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def database(postgres):
    url = postgres.new_database()
    ledger.make(url)
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def worker(database, temporal):
    worker = Worker(database, temporal)
    yield worker
    worker.kill()


@pytest.fixture
def fleet(web, temporal, worker):
    return fleet_on_temporal(web, temporal)


async def until(holds, what):
    end = time.monotonic() + LONG
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.05)


async def ended(temporal, run_id):
    """Wait for the end of a workflow, and return how many activities its history has."""
    handle = (await Client.connect(temporal)).get_workflow_handle(run_id)
    await asyncio.wait_for(handle.result(), LONG)
    kinds = [event.event_type for event in (await handle.fetch_history()).events]
    return kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)


async def test_a_run_is_driven_to_its_end(fleet, temporal):
    run_id = await fleet.submit("storing", "Store five.")
    result = await fleet.result(run_id, timeout=LONG)
    assert (result.value, len(result.tickets)) == ("done", 5)
    # However long the run is: not one for each of its calls. Two were seen under load.
    assert await ended(temporal, run_id) <= 2


@pytest.mark.parametrize("where", ["another process", "a thread"])
async def test_a_run_at_rest_is_woken_from(where, web, fleet, database, temporal):
    run_id = await fleet.submit("paying", "Pay 7.")
    handle = (await Client.connect(temporal)).get_workflow_handle(run_id)
    at_rest = "SELECT FROM callslip.run WHERE id = $1 AND msg IS NULL AND next > 0"
    await until(lambda: web.query(at_rest, [run_id]), "it rests")
    end = time.monotonic() + LONG
    while (description := await handle.describe()).raw_description.pending_activities:
        assert time.monotonic() < end, "the workflow waits"
        await asyncio.sleep(0.05)
    assert description.status == WorkflowExecutionStatus.RUNNING
    assert description.history_length <= 12
    if where == "another process":
        await approve_elsewhere(database, temporal, run_id)
    else:
        # On another loop than the one on which the client was connected.
        await asyncio.to_thread(web.run(run_id).approve, "T1")
    result = await fleet.result(run_id, timeout=LONG)
    assert (result.value, result.tickets[0].result) == ("done", "paid 7")
    await ended(temporal, run_id)


APPROVE = """
import sys
from callslip import TicketStore
from fleets.on_temporal import fleet_on_temporal

url, address, run_id = sys.argv[1:]
with TicketStore(url) as store:
    fleet_on_temporal(store, address)
    store.run(run_id).approve("T1", by="Ann")
"""


async def approve_elsewhere(*arguments):
    command = [sys.executable, "-c", APPROVE, *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment(), timeout=LONG, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_worker_that_is_killed_in_a_call_is_followed_by_another(
    fleet, database, temporal, worker
):
    run_id = await fleet.submit("charging", "Charge 2.")
    await until(lambda: (run_id, "T2") in ledger.read(database), "the call is made")
    worker.kill()
    worker.start()
    result = await fleet.result(run_id, timeout=LONG)
    await ended(temporal, run_id)
    assert [ticket.outcome for ticket in result.tickets] == ["ok", "in_doubt"]
    made = {
        ticket: len(keys) for (run, ticket), keys in ledger.read(database).items() if run == run_id
    }
    assert made == {"T1": 1, "T2": 1}
    assert [event.seq for event in result.run.log] == list(range(len(result.run.log)))


async def test_a_run_that_was_never_dispatched_is_found(database, temporal, worker):
    # As from a process that ended right after its commit.
    with TicketStore(database) as store:
        silent = Fleet(store)
        run_id = await silent.submit("storing", "Store five.")
        assert (await silent.result(run_id, timeout=LONG)).value == "done"
    await ended(temporal, run_id)


@pytest.mark.parametrize(
    ("connect", "options", "hint"),
    [
        ("127.0.0.1:7233", {}, "a Client or an async function"),
        (free_port, {"heartbeat": 0}, "heartbeat to be a number of seconds from 1: got 0"),
        (free_port, {"heartbeat": "x"}, "heartbeat to be a number of seconds from 1: got 'x'"),
        (free_port, {"heartbeat": float("inf")}, "a number of seconds from 1: got inf"),
        (lambda address: None, {}, "expected connect to take no arguments: got a function that"),
        (free_port, {"task_queue": 3}, "expected task_queue to be text: got 3"),
        (
            free_port,
            {"task_queue": ""},
            "expected task_queue to be the name of a task queue: got ''",
        ),
    ],
)
def test_wrong_arguments_say_what_to_pass(connect, options, hint):
    with pytest.raises(UsageError, match=hint):
        Wake(connect, **{"task_queue": "agents", **options})


@pytest.mark.parametrize("fleet", [3, None, Fleet])
def test_activities_of_what_is_no_fleet(fleet):
    with pytest.raises(UsageError, match=r"^expected fleet=a Fleet: got "):
        activities(fleet)


async def test_what_connects_to_no_client():
    async def connect():
        return None

    for one in (connect, lambda: None):
        with pytest.raises(UsageError, match="^expected connect to return a Client: got None$"):
            await Wake(one, task_queue="agents")("a run")
