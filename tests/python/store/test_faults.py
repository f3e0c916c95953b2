"""A store on a disk that fails: every call below SQLite fails once, is torn, or is the last.

Not all of them are tried each time; `make seeds N=200000` tries all. CALLSLIP_FAULTS_WIDE=1 tries
all with more seeds, more runs side by side and bigger records.
"""

import json
import os
import random
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from callslip import TicketStore
from faults import durable
from faults.shim import Fault, Nursery, folder_in_memory
from random_cases import SEED, cases

WIDE = bool(os.environ.get("CALLSLIP_FAULTS_WIDE"))
# Each turn adds as many places; the first and the last are the ones that differ.
TURNS = 3 if WIDE else 2
# Places at which a test puts its fault, of all along the run; `make seeds` chooses others, or more.
MANY, USUAL, FEWER = cases(70), cases(50), cases(30)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the faults are Linux system calls"),
    pytest.mark.random_cases,
]


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    with Nursery(tmp_path_factory.mktemp("shim"), ["callslip", "faults.durable"]) as nursery:
        yield nursery


@pytest.fixture
def tmp_path():
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture(scope="module")
def whole(nursery, tmp_path_factory):
    """A run with no fault: what each other one is a prefix of, and how many calls it makes."""
    path = tmp_path_factory.mktemp("whole") / "whole.sqlite"
    ended = nursery.run("faults.durable:one_run", path, turns=TURNS)
    assert ended.returned == str(TURNS)
    ended = nursery.run("faults.durable:one_run", path.with_name("counted"), turns=TURNS)
    return ended.calls, logs(path)["a"]


def plain(record):
    """A record without what differs between two runs of the same: ids and times."""
    event = record["event"]
    return event["run_started"]["setup"] if "run_started" in event else event


def kinds(log):
    return [next(iter(record["event"])) for record in log]


def logs(path):
    """Each run's log by the name in its task, read by the product; the file must be sound."""
    with closing(TicketStore(path, durability="normal")) as store:
        found = {}
        for run in store.runs():
            log = [json.loads(line) for line in store.run(run.run_id).export().splitlines()]
            assert [record["seq"] for record in log] == list(range(len(log)))
            found[run.task.rpartition(" ")[2]] = log
        return found


def sound(path):
    """Ask SQLite itself, on a copy: what the store mends when it opens must not be mended here."""
    if not path.exists():
        return
    copy = path.with_name(path.name + ".copy")
    for end in ("", "-wal", "-journal"):
        if Path(f"{path}{end}").exists():
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    with closing(sqlite3.connect(copy)) as database:
        database.execute("pragma synchronous = off")
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


def holds_what_was_said(path, said, prefix_of, *, loses=False):
    """What is there is a prefix of the whole; `loses` allows that acknowledged ends are gone."""
    sound(path)
    found = logs(path)
    for name, log in found.items():
        assert len(log) <= len(prefix_of)
        assert kinds(log) == kinds(prefix_of)[: len(log)]
        if name == "a":
            assert [*map(plain, log)] == [*map(plain, prefix_of[: len(log)])]
    for word, *more in [] if loses else said:
        if word == "model":
            name, turn = more
            assert kinds(found[name]).count("model_asked") >= turn + 1
            assert kinds(found[name]).count("model_replied") >= turn
            assert kinds(found[name]).count("ticket_completed") >= turn
        elif word == "tool":
            name, number = more
            assert kinds(found[name]).count("ticket_opened") >= number + 1
        elif word == "finished":
            assert kinds(found[more[0]])[-1] == "run_finished"


def goes_on(path, turns=TURNS):
    """Every run that is there ends with the right value, and the store is as new."""
    with closing(TicketStore(path, durability="normal")) as store:
        agent = durable.agent(store)
        for run in store.runs():
            result = agent.resume_sync(run.run_id)
            assert result.value == str(turns)
        assert store.runs(status="running") == []
        assert store.tickets(status="IN_PROGRESS") == []
        assert agent.run_sync(durable.TASK.format(2, "new")).value == "2"


def faults_of(calls, what, call):
    """Make a fault for every call of a kind. Seed 0 loses all that is unsynced, others a part."""
    last = sum(calls[one] for one in calls if one != "read") if call == "any" else calls[call]
    if what not in {"torn", "powerloss"}:
        return [Fault(what, call, k) for k in range(1, last + 1)]
    seeds = range(8) if WIDE else [None]
    return [
        # Of each number its own, whichever numbers are chosen.
        Fault(what, call, k, random.Random(k).randrange(4) if seed is None else seed)
        for k in range(1, last + 1)
        for seed in seeds
    ]


def some(faults, at_most=USUAL):
    """Choose from all along the run."""
    if WIDE:
        return faults
    step = -(-len(faults) // at_most)
    return faults[SEED % step :: step]


@pytest.mark.parametrize(
    ("durability", "what"),
    [
        ("full", "kill"),
        ("full", "torn"),
        ("full", "powerloss"),
        ("normal", "kill"),
        ("normal", "powerloss"),
        ("memory", "powerloss"),
    ],
)
def test_a_process_that_dies_at_any_call(nursery, whole, tmp_path, what, durability):
    died = 0
    call = "write" if what == "torn" else "any"
    faults = faults_of(whole[0], what, call)
    # What promises less is tried at fewer places: it takes the same way through the code.
    for fault in some(faults, MANY if durability == "full" else FEWER):
        path = tmp_path / f"{fault.k}-{fault.seed}.sqlite"
        options = {"turns": TURNS, "durability": durability}
        ended = nursery.run("faults.durable:one_run", path, fault, **options)
        died += ended.killed
        assert ended.killed or ended.returned == str(TURNS), (fault, ended)
        loses = durability == "memory" or (durability == "normal" and what == "powerloss")
        holds_what_was_said(path, ended.said, whole[1], loses=loses)
        goes_on(path)
    assert died > TURNS


@pytest.mark.parametrize(("durability", "what"), [("memory", "kill"), ("normal", "powerloss")])
def test_what_promises_less_is_seen_to_keep_less(nursery, whole, tmp_path, durability, what):
    """Else the test above would say nothing of what `full` keeps."""
    for fault in reversed(faults_of(whole[0], what, "any")):
        path = tmp_path / f"{fault.k}.sqlite"
        options = {"turns": TURNS, "durability": durability}
        ended = nursery.run("faults.durable:one_run", path, fault, **options)
        try:
            holds_what_was_said(path, ended.said, whole[1])
        except (AssertionError, KeyError):
            holds_what_was_said(path, ended.said, whole[1], loses=True)
            return
    pytest.fail("nothing was ever lost")


@pytest.mark.parametrize("what", ["kill", "torn", "powerloss", "eio"])
def test_a_fault_while_a_run_is_resumed(nursery, whole, tmp_path, what):
    """A process died in mid-run; the next one meets a fault while it goes on."""
    dead = tmp_path / "dead.sqlite"
    # The syncs before this one create the tables.
    fault = Fault("kill", "sync", whole[0]["sync"] * 4 // 5)
    assert nursery.run("faults.durable:one_run", dead, fault, turns=TURNS).killed
    counted = nursery.run("faults.durable:unfinished", left_by(dead, tmp_path / "counted"))
    assert list(counted.returned.values()) == [str(TURNS)]
    # The log of this run is longer: the note that it was resumed stands in it.
    again = logs(tmp_path / "counted")["a"]
    call = {"torn": "write", "eio": "sync"}.get(what, "any")
    for fault in some(faults_of(counted.calls, what, call)):
        path = left_by(dead, tmp_path / f"{fault.k}-{fault.seed}.sqlite")
        ended = nursery.run("faults.durable:unfinished", path, fault)
        assert ended.killed or ended.error or ended.returned == counted.returned, (fault, ended)
        if ended.error:
            assert "StoreError" in ended.error[0], (fault, ended.error)
        holds_what_was_said(path, ended.said, again)
        goes_on(path)


def left_by(dead, path):
    """Copy what a dead process left."""
    for end in ("", "-wal"):
        if Path(f"{dead}{end}").exists():
            shutil.copy(f"{dead}{end}", f"{path}{end}")
    return path


@pytest.mark.parametrize("what", ["kill", "powerloss", "eio", "enospc"])
def test_a_fault_while_the_log_is_put_back_into_the_database(nursery, tmp_path, what):
    """Records so big that SQLite makes a checkpoint in mid-run: it writes to the file itself."""
    options = {"turns": TURNS, "size": 900_000}
    counted = nursery.run("faults.durable:one_run", tmp_path / "whole.sqlite", **options)
    assert counted.returned == str(TURNS)
    (log,) = logs(tmp_path / "whole.sqlite").values()
    call = {"eio": "sync", "enospc": "write"}.get(what, "any")
    every = faults_of(counted.calls, what, call)
    for fault in some(every, cases(15)):
        path = tmp_path / f"{fault.k}-{fault.seed}.sqlite"
        ended = nursery.run("faults.durable:one_run", path, fault, **options)
        assert ended.killed or ended.error or ended.returned == str(TURNS), (fault, ended)
        if ended.error:
            assert "StoreError" in ended.error[0], (fault, ended.error)
        holds_what_was_said(path, ended.said, log)
        goes_on(path)


@pytest.mark.parametrize(
    ("what", "call"), [("eio", "read"), ("eio", "write"), ("eio", "sync"), ("enospc", "write")]
)
def test_a_call_that_fails_is_a_store_error(nursery, whole, tmp_path, what, call):
    failed = 0
    for fault in some(faults_of(whole[0], what, call)):
        path = tmp_path / f"{fault.k}.sqlite"
        ended = nursery.run("faults.durable:one_run", path, fault, turns=TURNS)
        assert ended.signal is None, (fault, ended)
        if ended.error:
            failed += 1
            assert "StoreError" in ended.error[0], (fault, ended.error)
            assert str(path) in ended.error[1], (fault, ended.error)
        else:
            assert ended.returned == str(TURNS)
        holds_what_was_said(path, ended.said, whole[1])
        goes_on(path)
    assert failed > 0


def test_after_a_failed_sync_no_later_word_is_lost_with_the_power(nursery, whole, tmp_path):
    failed = 0
    for fault in faults_of(whole[0], "eio", "sync"):
        path = tmp_path / f"{fault.k}.sqlite"
        ended = nursery.run("faults.durable:until_power_is_cut", path, fault, turns=TURNS)
        assert ended.killed
        failed += any(word == "failed" for word, *_ in ended.said)
        holds_what_was_said(path, ended.said, whole[1])
        goes_on(path)
    assert failed > 0


@pytest.mark.parametrize("call", ["write", "sync", "read"])
def test_the_same_process_goes_on_after_an_error(nursery, whole, tmp_path, call):
    for fault in some(faults_of(whole[0], "eio", call)):
        path = tmp_path / f"{fault.k}.sqlite"
        ended = nursery.run("faults.durable:again_after_an_error", path, fault, turns=TURNS)
        assert ended.error is None, (fault, ended)
        assert ended.returned in {str(TURNS), "none"}
        goes_on(path)


def test_what_is_said_after_an_error_outlives_a_power_cut(nursery, whole, tmp_path):
    """Opened again after a failed sync, a file seems to hold what the disk never got."""
    finished = 0
    for fault in faults_of(whole[0], "eio", "sync"):
        path = tmp_path / f"{fault.k}.sqlite"
        options = {"turns": TURNS, "cut": True}
        ended = nursery.run("faults.durable:again_after_an_error", path, fault, **options)
        assert ended.killed, (fault, ended)
        sound(path)
        if ["finished", "a", str(TURNS)] in ended.said:
            finished += any(word == "failed" for word, *_ in ended.said)
            assert kinds(logs(path)["a"])[-1] == "run_finished", fault
        goes_on(path)
    assert finished > TURNS


@pytest.mark.parametrize("call", ["read", "write"])
def test_half_a_read_or_write_is_no_error(nursery, whole, tmp_path, call):
    for fault in some(faults_of(whole[0], "short", call)):
        path = tmp_path / f"{fault.k}.sqlite"
        ended = nursery.run("faults.durable:one_run", path, fault, turns=TURNS)
        assert ended.returned == str(TURNS), (fault, ended)
        assert kinds(logs(path)["a"]) == kinds(whole[1])


@pytest.mark.parametrize("what", ["kill", "powerloss", "eio"])
@pytest.mark.parametrize("driver", ["async", "threads"])
def test_runs_side_by_side(nursery, tmp_path, what, driver):
    """Several runs in one commit: each keeps what it was told is kept."""
    runs, size = (8, 3000) if WIDE else (4, 3000)
    options = {"turns": TURNS, "runs": runs, "size": size, "driver": driver}
    counted = nursery.run("faults.durable:runs_side_by_side", tmp_path / "all.sqlite", **options)
    assert counted.returned == [str(TURNS)] * runs
    path = tmp_path / "log.sqlite"
    assert nursery.run("faults.durable:one_run", path, turns=TURNS, size=size).error is None
    (log,) = logs(path).values()
    call = "sync" if what == "eio" else "any"
    every = faults_of(counted.calls, what, call)
    # What stands beside what changes from one try to the next, and a failed sync is quickly tried.
    every = every * 2 if what == "eio" else some(every, FEWER)
    for number, fault in enumerate(every):
        path = tmp_path / f"{number}.sqlite"
        ended = nursery.run("faults.durable:runs_side_by_side", path, fault, **options)
        assert ended.killed or ended.error or ended.returned, (fault, ended)
        if ended.error:
            assert "StoreError" in ended.error[0], (fault, ended.error)
        holds_what_was_said(path, ended.said, log)
        goes_on(path)


ORPHANS = """
    select 'event', count(*) from event where run not in (select key from run)
    union all select 'ticket', count(*) from ticket where run not in (select key from run)
    union all select 'blob', count(*) from blob where key not in
        (select blob from event where blob is not null union select blob from ticket
         where blob is not null)
"""


@pytest.mark.parametrize("what", ["kill", "torn", "powerloss"])
def test_a_process_that_dies_while_it_clears_up(nursery, tmp_path, what):
    """A run is there with all that is its own, or it is gone with all of it."""
    before = tmp_path / "before.sqlite"
    options = {"turns": TURNS, "runs": 3, "driver": "async"}
    assert nursery.run("faults.durable:runs_side_by_side", before, **options).error is None
    log = kinds(logs(before)["a"])
    counted = nursery.run("faults.durable:clear", left_by(before, tmp_path / "counted.sqlite"))
    assert counted.said == ["compacted", "deleted", "imported", "pruned"]
    call = "write" if what == "torn" else "any"
    for fault in some(faults_of(counted.calls, what, call)):
        path = left_by(before, tmp_path / f"{fault.k}-{fault.seed}.sqlite")
        ended = nursery.run("faults.durable:clear", path, fault)
        assert ended.killed, (fault, ended)
        sound(path)
        said = len(ended.said)
        with closing(TicketStore(path, durability="normal")) as store:
            found = {run.run_id: run.task.rpartition(" ")[2] for run in store.runs()}
            names = sorted("copy" if run == "copy" else name for run, name in found.items())
            # Each step is done or not: the one that was not said yet may be there or not.
            steps = [["a", "b", "c"]] * 2 + [["a", "c"], ["a", "c", "copy"], ["copy"]]
            assert names in steps[said : said + 2], (fault, ended.said)
            for run, name in found.items():
                there = [event.kind for event in store.run(run).log]
                folded = ["compacted"] if name == "a" and there != log else log
                assert there == folded, (fault, run)
                assert len(store.tickets(run=run)) == TURNS
                assert durable.agent(store).resume_sync(run).value == str(TURNS)
        with closing(sqlite3.connect(path)) as database:
            assert [count for _, count in database.execute(ORPHANS)] == [0, 0, 0], fault
