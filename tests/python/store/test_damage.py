"""What others do to the files of a store while it is open."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from callslip import StoreError, TicketStore
from fetching import agent

OPEN = """
import sys
sys.path[:0] = {paths!r}
from callslip import StoreError, TicketStore
try:
    with TicketStore({path!r}) as store:
        print(len(store.runs()))
except StoreError as error:
    print(error)
"""

SQL = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
print(database.execute(sys.argv[2]).fetchall())
"""


def elsewhere(script, *args):
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        check=True,
        text=True,
        capture_output=True,
        timeout=60,
    )
    return done.stdout.strip()


def opened_elsewhere(path):
    return elsewhere(OPEN.format(paths=sys.path, path=str(path)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems lock the name only")
@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_has_one_owner_under_all_its_names(path, tmp_path, is_new):
    if not is_new:
        TicketStore(path).close()
    with TicketStore(path) as store:
        agent(store).run_sync("one")
        link = tmp_path / "other" / "name.sqlite"
        link.parent.mkdir()
        os.link(path, link)
        told = opened_elsewhere(link)
        assert told.startswith(f"{link} is open in another process under another name")
        # Nothing has been done to it.
        agent(store).run_sync("two")
        assert len(store.runs()) == 2
        with TicketStore(link) as same:
            assert len(same.runs()) == 2
    assert opened_elsewhere(link) == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="open files are found in /proc")
def test_a_child_that_holds_the_open_files_does_not_keep_a_closed_store(path):
    store = TicketStore(path)
    agent(store).run_sync("one")
    held = [
        int(entry.name)
        for entry in Path("/proc/self/fd").iterdir()
        if os.path.realpath(entry) in (str(path), f"{path}.lock")
    ]
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=held
    ) as child:
        store.close()
        assert opened_elsewhere(path) == "1"
        assert child.poll() is None
        child.communicate(b"\n", timeout=60)


def log_of(path):
    return Path(f"{path}-wal")


def cut(path, part):
    os.truncate(path, int(path.stat().st_size * part))


CHANGES = {
    "log deleted": lambda path: log_of(path).unlink(),
    "log replaced": lambda path: (
        log_of(path).rename(f"{path}-old"),
        log_of(path).write_bytes(b""),
    ),
    "log emptied": lambda path: cut(log_of(path), 0),
    "log cut": lambda path: cut(log_of(path), 0.5),
    "shared memory deleted": lambda path: Path(f"{path}-shm").unlink(),
    "file emptied": lambda path: cut(path, 0),
    "file cut": lambda path: cut(path, 0.5),
}


@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_done_to_the_files_is_noticed_at_the_next_commit(path, change, durability):
    worker = agent(TicketStore(path, durability=durability))
    for task in ("one", "two", "three"):
        worker.run_sync(task)
    CHANGES[change](path)
    # What was cut may be seen by whoever reads it first.
    with pytest.raises(StoreError, match="while (it|the file) was open|disk I/O error") as caught:
        worker.run_sync("four")
    assert caught.value.run is not None
    if change.startswith("file"):
        # It goes on with no run, here or anywhere.
        for _ in range(2):
            with pytest.raises(StoreError):
                worker.run_sync("five")
        with pytest.raises(StoreError):
            TicketStore(path)
        return
    with contextlib.suppress(StoreError):
        worker.store.close()
    with TicketStore(path) as store:
        finished = [run.task for run in store.runs(status="finished")][::-1]
        if "cut" in change or "emptied" in change:
            # What stood in it is gone; what is left is whole.
            assert finished == ["one", "two", "three"][: len(finished)]
        else:
            assert finished == ["one", "two", "three"]
        assert store.query("pragma integrity_check") == [{"integrity_check": "ok"}]
        assert agent(store).run_sync("six").value == "done"


@pytest.mark.parametrize("sql", ["pragma wal_checkpoint(truncate)", "vacuum"])
def test_what_other_programs_may_do_to_a_file_does_not_stop_its_store(path, sql):
    with TicketStore(path) as store:
        worker = agent(store)
        for number in range(40):
            worker.run_sync(f"task {number} {'long ' * 400}")
        store.delete(*[run.run_id for run in store.runs()[2:]])
        for _ in range(3):
            elsewhere(SQL, str(path), sql)
            elsewhere(SQL, str(path), "pragma wal_checkpoint(truncate)")
            assert worker.run_sync("more").value == "done"
        assert len(store.runs()) == 5
