"""Files of scripts, found by the worker that continues the run."""

import contextlib
import os
import signal
import time

import pytest

from callslip import PythonRunner, TicketStore
from callslip.fleet import Fleet
from callslip.sandbox._native import has_sandbox
from sandbox import leaving_files

LONG = 60

pytestmark = pytest.mark.skipif(
    not has_sandbox() and not os.environ.get("CI"), reason="this machine can't keep scripts apart"
)


@contextlib.contextmanager
def worker(database, files, *options):
    """A worker in a process of its own, which is killed at the end."""
    process = leaving_files.start(database, files, "--fleet", *options)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait(LONG)
        process.stdout.close()


def until(holds):
    end = time.monotonic() + LONG
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


async def submitted(store):
    return await Fleet(store).submit("writer", leaving_files.TASK)


def check(store, run_id):
    """The second script, which another worker has run, has read the files of the first one."""
    until(lambda: store.runs()[0].status == "finished")
    first, _, second = store.run(run_id).tickets
    assert [one["path"] for one in first.result["artifacts"]] == ["table.csv"]
    assert (second.result["stdout"], second.result.get("hints")) == (leaving_files.TOLD, None)
    assert "artifacts" not in second.result
    return first, second


async def test_a_run_that_rested_has_its_files_at_another_worker(database, tmp_path):
    files = tmp_path / "files"
    with TicketStore(database) as store:
        run_id = await submitted(store)
        with worker(database, files) as process:
            until(lambda: store.tickets(run=run_id, awaiting_approval=True))
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONG) == 0
        store.run(run_id).approve("T2")
        with worker(database, files):
            check(store, run_id)
        # Also for a process that works on no runs.
        runner = PythonRunner(files=files)
        saved = runner.save_files(store.run(run_id), tmp_path / "saved")
        assert sorted(path.name for path in saved) == ["notes", "stamp", "table.csv"]


async def test_a_run_whose_worker_is_killed_has_its_files_at_another_one(database, tmp_path):
    files = tmp_path / "files"
    with TicketStore(database) as store:
        run_id = await submitted(store)
        # It never gets the reply after the first script.
        with worker(database, files, "--hang", "1") as process:
            assert process.stdout.readline() == "hangs\n"
        with worker(database, files):
            until(lambda: store.tickets(run=run_id, awaiting_approval=True))
            store.run(run_id).approve("T2")
            check(store, run_id)


async def test_a_worker_that_was_frozen_in_a_script_does_not_harm_the_files(database, tmp_path):
    """It writes what its script has left after its successor has run the same script."""
    files = tmp_path / "files"
    with TicketStore(database) as store:
        run_id = await submitted(store)
        with worker(database, files, "--slow") as frozen:
            until((tmp_path / "files.begun").exists)
            frozen.send_signal(signal.SIGSTOP)
            with worker(database, files):
                until(lambda: store.tickets(run=run_id, awaiting_approval=True))
                before = set(files.rglob("*.tar.gz"))
                (tmp_path / "files.go_on").touch()
                frozen.send_signal(signal.SIGCONT)
                (late,) = until(lambda: set(files.rglob("*.tar.gz")) - before)
                store.run(run_id).approve("T2")
                first, second = check(store, run_id)
    assert late.name.removesuffix(".tar.gz") not in {
        first.result["checkpoint"],
        second.result["checkpoint"],
    }
