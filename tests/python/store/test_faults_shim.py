"""The faults themselves, tried on Python's own sqlite3: they bite where they should."""

import contextlib
import sqlite3
import sys

import pytest

from faults.shim import Fault, Nursery, folder_in_memory

ROWS = 6
NONE = Fault()


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the faults are Linux system calls")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    with Nursery(tmp_path_factory.mktemp("shim"), ["sqlite3", "faults.raw"]) as nursery:
        yield nursery


@pytest.fixture
def tmp_path():
    with folder_in_memory() as folder:
        yield folder


def commits(nursery, path, fault=NONE, synchronous="full"):
    return nursery.run("faults.raw:commits", path, fault, synchronous=synchronous, count=ROWS)


def rows(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
        if not database.execute("select 1 from sqlite_schema where name = 'row'").fetchone():
            return None
        return database.execute("select number, text from row order by number").fetchall()


def check(path, ended):
    """A prefix of what was submitted is there. Returns how much is acknowledged but lost."""
    there = rows(path)
    if there is None:
        return len(ended.said)
    assert there == [(number, str(number) * 200) for number in range(len(there))]
    return len(ended.said) - 1 - len(there)


def faults(nursery, folder, what, call="any", *, synchronous="full", seeds=(0,)):
    """One run for every k that there is."""
    whole = commits(nursery, folder / "whole", synchronous=synchronous)
    assert whole.said == ["table", *range(ROWS)]
    last = whole.changes if call == "any" else whole.calls[call]
    assert last > 0
    for k in range(1, last + 1):
        for seed in seeds:
            path = folder / f"{k}-{seed}"
            fault = Fault(what, call, k, seed)
            yield path, commits(nursery, path, fault, synchronous), fault


def test_counting_sees_calls_of_every_kind(nursery, tmp_path):
    whole = commits(nursery, tmp_path / "whole")
    assert whole.error is None
    assert check(tmp_path / "whole", whole) == 0
    assert min(whole.calls.values()) > 0
    assert whole.calls["sync"] > ROWS
    lazy = commits(nursery, tmp_path / "lazy", synchronous="off")
    assert lazy.calls["sync"] == 0


def test_the_same_fault_ends_the_same_run_in_the_same_place(nursery, tmp_path):
    fault = Fault("powerloss", "any", 30, seed=5)
    ends = [commits(nursery, tmp_path / name, fault) for name in ("a", "b")]
    assert ends[0] == ends[1]
    assert ends[0].killed
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


@pytest.mark.parametrize("what", ["kill", "after"])
@pytest.mark.parametrize("synchronous", ["full", "off"])
def test_a_kill_loses_nothing_that_was_acknowledged(nursery, tmp_path, what, synchronous):
    for path, ended, fault in faults(nursery, tmp_path, what, synchronous=synchronous):
        assert ended.killed, fault
        assert check(path, ended) <= 0, fault


def test_a_torn_write_is_none(nursery, tmp_path):
    for path, ended, fault in faults(nursery, tmp_path, "torn", "write", seeds=(1, 2)):
        assert ended.killed, fault
        assert check(path, ended) <= 0, fault


def test_a_power_cut_loses_nothing_that_was_synced(nursery, tmp_path):
    for path, ended, fault in faults(nursery, tmp_path, "powerloss", seeds=range(4)):
        assert ended.killed, fault
        assert check(path, ended) <= 0, fault


def test_a_power_cut_loses_what_was_not_synced(nursery, tmp_path):
    lost = []
    for path, ended, fault in faults(nursery, tmp_path, "powerloss", synchronous="off"):
        assert ended.killed, fault
        with contextlib.suppress(sqlite3.DatabaseError):  # without syncs it may well be corrupt
            lost.append(check(path, ended))
    assert max(lost) >= ROWS // 2


def test_without_syncs_a_power_cut_can_leave_a_file_that_is_no_database(nursery, tmp_path):
    broken = 0
    for path, _, _ in faults(nursery, tmp_path, "powerloss", synchronous="off", seeds=(1, 2, 3)):
        try:
            rows(path)
        except (sqlite3.DatabaseError, AssertionError):
            broken += 1
    assert broken > 0


@pytest.mark.parametrize(
    ("what", "call"), [("eio", "read"), ("eio", "write"), ("eio", "sync"), ("enospc", "write")]
)
def test_a_failing_call_is_an_error_and_the_file_opens_again(nursery, tmp_path, what, call):
    failed = 0
    for path, ended, fault in faults(nursery, tmp_path, what, call):
        assert ended.signal is None, fault
        assert check(path, ended) <= 0, fault
        if ended.error:
            failed += 1
            assert "DatabaseError" in ended.error[0], (fault, ended.error)
    assert failed > 0


@pytest.mark.parametrize("call", ["read", "write"])
def test_half_a_read_or_write_is_taken_up_where_it_stopped(nursery, tmp_path, call):
    for path, ended, fault in faults(nursery, tmp_path, "short", call):
        assert ended.said == ["table", *range(ROWS)], fault
        assert check(path, ended) == 0, fault


def test_what_a_failed_sync_dropped_is_gone_although_the_next_one_succeeds(nursery, tmp_path):
    path = tmp_path / "file"
    ended = nursery.run("faults.raw:repeat_a_failed_sync", path, Fault("eio", "sync", 1))
    assert ended.killed
    assert ended.said == ["failed", "first", "second"]
    assert path.read_bytes() == bytes(len("first")) + b"second"


def test_sqlite_writes_again_what_a_failed_sync_dropped(nursery, tmp_path):
    whole = nursery.run("faults.raw:commit_until_power_is_cut", tmp_path / "0")
    assert whole.said == list(range(ROWS))
    failed = 0
    for k in range(1, 12):
        path = tmp_path / str(k)
        fault = Fault("eio", "sync", k)
        ended = nursery.run("faults.raw:commit_until_power_is_cut", path, fault)
        if not ended.error:
            numbers = [number for number in ended.said if number != "failed"]
            failed += len(numbers) < len(ended.said)
            assert {number for number, _ in rows(path)} >= set(numbers)
    assert failed > 0


def test_a_fault_that_is_none_is_refused(nursery, tmp_path):
    ended = commits(nursery, tmp_path / "a", Fault("flood"))
    assert ended.error is not None
    assert "flood" in ended.error[1]


def test_work_that_hangs_is_ended(nursery, tmp_path):
    ended = nursery.run("time:sleep", tmp_path / "a", seconds=0.2)
    assert ended.error is not None  # a path is no number of seconds
    ended = nursery.run("faults.raw:hang", tmp_path / "a", seconds=0.2)
    assert ended.hung
    assert not ended.killed
