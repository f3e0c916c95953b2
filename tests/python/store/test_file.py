"""The file of a store: who has it, what becomes of it, and who waits for it."""

import asyncio
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from callslip import (
    Agent,
    StoreError,
    TicketStore,
    tool,
)
from fetching import FINISH, agent, call, model
from left_open import Open, check_nothing_is_left
from scripted import turn_of


def test_a_file_is_opened_again_with_all_that_was_in_it(path):
    with TicketStore(path) as store:
        run = agent(store).run_sync("go").run
    with TicketStore(path) as store:
        assert store.run(run.id).export() == run.export()
        assert store.tickets() == run.tickets[::-1]


@pytest.mark.parametrize(
    ("durability", "end"),
    [("full", "os.kill(os.getpid(), 9)"), ("normal", "os._exit(0)"), ("memory", "sys.exit(0)")],
)
def test_what_was_acknowledged_is_there_without_closing(path, durability, end):
    script = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from callslip import TicketStore
from fetching import agent
store = TicketStore({str(path)!r}, durability={durability!r})
print(agent(store).run_sync("go").run.id, flush=True)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, text=True, stdout=subprocess.PIPE, timeout=60
    )
    with TicketStore(path) as store:
        assert store.run(done.stdout.strip()).finished


def test_a_second_process_is_told_who_owns_the_file(path):
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from callslip import StoreError, TicketStore
try:
    TicketStore({str(path)!r})
except StoreError as error:
    print(error)
"""

    def second():
        return subprocess.run(
            [sys.executable, "-c", script], check=True, text=True, capture_output=True, timeout=60
        ).stdout

    with TicketStore(path):
        assert f"belongs to process {os.getpid()}" in second()
    assert second() == ""


def test_two_agents_share_one_file(path):
    one, two = agent(path), agent(str(path))
    first = one.run_sync("one").run
    assert two.store.run(first.id).finished
    with pytest.raises(StoreError, match="durability"):
        TicketStore(path, durability="normal")
    with pytest.raises(ValueError, match="expected durability="):
        TicketStore(path, durability="none")


def test_a_closed_store_says_so(path):
    store = TicketStore(path)
    worker = agent(store)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        worker.run_sync("go")
    assert agent(path).run_sync("go").value == "done"


def test_files_that_are_none_of_ours_are_refused_and_left_alone(tmp_path):
    def refused(path, words):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(StoreError, match=words) as caught:
            TicketStore(path)
        assert str(path) in str(caught.value)
        if before is not None:
            assert path.read_bytes() == before

    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be looked at\n" * 100)
    refused(text, "not an SQLite database")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("create table mine (a)")
    connection.close()
    refused(other, "another program")
    refused(tmp_path, "is a folder")
    with pytest.raises(StoreError, match="there is no folder"):
        TicketStore(tmp_path / "none" / "runs.sqlite")
    newer = tmp_path / "newer.sqlite"
    TicketStore(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    refused(newer, "schema version 99")


def test_a_file_that_this_process_holds_open_otherwise_is_refused(path):
    TicketStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("select * from runs").fetchall()
    try:
        with pytest.raises(StoreError, match="sqlite3"):
            TicketStore(path)
    finally:
        connection.close()
    TicketStore(path).close()


def _in_child(store, queue):
    try:
        store.runs()
    except StoreError as error:
        queue.put(str(error))
    else:
        queue.put("nothing")


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_store_does_not_survive_a_fork(path):
    with TicketStore(path) as store:
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_in_child, args=(store, queue))
        child.start()
        assert "fork" in queue.get(timeout=200)
        child.join(30)
        queue.close()
        queue.join_thread()
        assert agent(store).run_sync("go").value == "done"


@pytest.mark.parametrize("durability", ["full", "normal", "memory"])
def test_many_runs_side_by_side_are_all_kept(path, durability):
    with TicketStore(path, durability=durability) as store:
        worker = agent(store)

        async def many():
            return await asyncio.gather(*(worker.run(f"task {n}") for n in range(60)))

        results = asyncio.run(many())
        assert {run.task for run in store.runs()} == {f"task {n}" for n in range(60)}
        for result in results[::10]:
            assert store.run(result.run.id).export() == result.run.export()
        # Another loop, and threads of their own, wait on the same store.
        asyncio.run(many())
        threads = [threading.Thread(target=worker.run_sync, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.runs(status="finished")) == 128


def test_waiting_leaves_no_descriptor_with_the_loop(path):
    with TicketStore(path) as store:

        async def main():
            loop = asyncio.get_running_loop()
            await agent(store).run("one")
            selector = loop._selector
            return [key.fd for key in selector.get_map().values()]

        watched = asyncio.run(main())
        assert len(watched) == 1  # the loop's own


def test_a_run_on_uvloop_is_kept(path):
    uvloop = pytest.importorskip("uvloop")
    with TicketStore(path) as store, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(agent(store).run("go"))
        assert store.run(result.run.id).finished


def _elsewhere(path, sql):
    """Change the file in another process, as nobody should."""
    script = f"import sqlite3; sqlite3.connect({str(path)!r}).execute({sql!r}).connection.commit()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=200)


@pytest.mark.parametrize("wait", [False, True])
def test_a_run_that_could_not_be_written_goes_on_with_the_same_agent(path, wait):
    worker = agent(path)
    broken = "create trigger broken before insert on event when new.seq > 6 begin {} end"
    _elsewhere(path, broken.format("select raise(abort, 'no luck');"))

    def run():
        return asyncio.run(worker.run("go")) if wait else worker.run_sync("go")

    with pytest.raises(StoreError, match="no luck") as caught:
        run()
    failed = caught.value.run
    assert [event.kind for event in failed.log][6:8] == ["model_asked", "model_replied"]
    assert (failed.finished, failed.stop_reason) == (False, None)
    _elsewhere(path, "drop trigger broken")
    assert len(worker.store.run(failed.id).log) == 7
    assert [run.status for run in worker.store.runs()] == ["running"]
    result = worker.resume_sync(failed.id)
    assert result.value == "done"
    assert [ticket.outcome for ticket in result.tickets] == ["ok", "error"]
    assert run().value == "done"
    worker.store.close()


def test_a_failure_reaches_all_that_run_side_by_side(path):
    worker = agent(path)
    broken = "create trigger broken before insert on event when new.seq > 6 begin {} end"
    _elsewhere(path, broken.format("select raise(abort, 'no luck');"))

    async def many():
        runs = (worker.run(f"task {n}") for n in range(20))
        return await asyncio.gather(*runs, return_exceptions=True)

    errors = asyncio.run(many())
    assert {type(error) for error in errors} == {StoreError}
    assert len({error.run.id for error in errors}) == 20
    # None of them is told of the other runs, or of what came of going on regardless.
    assert {"no luck" in str(error) for error in errors} == {True}
    _elsewhere(path, "drop trigger broken")
    kept = worker.store.runs()
    results = asyncio.run(worker.resume_all())
    assert set(results) == {run.run_id for run in kept}
    assert all(result.value == "done" for result in results.values())
    worker.store.close()


def test_a_file_that_is_deleted_or_replaced_stops_its_store(path, tmp_path):
    for change in (path.unlink, lambda: path.rename(tmp_path / "moved")):
        worker = agent(path)
        worker.run_sync("one")
        change()
        with pytest.raises(StoreError, match="deleted or replaced while it was open"):
            worker.run_sync("two")
        with pytest.raises(StoreError, match="deleted or replaced"):
            worker.store.close()
        for left in tmp_path.glob("runs.sqlite*"):
            left.unlink()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_file_from_others(path):
    script = f"""
import os, sys, time
sys.path[:0] = {sys.path!r}
from callslip import TicketStore
store = TicketStore({str(path)!r})
child = os.fork()
if not child:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, text=True, stdout=subprocess.PIPE, timeout=60
    )
    child = int(done.stdout)
    try:
        TicketStore(path).close()
    finally:
        os.kill(child, 9)


def test_looking_at_the_lock_file_does_not_release_it(path):
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from callslip import StoreError, TicketStore
try:
    TicketStore({str(path)!r})
except StoreError as error:
    print(error)
"""
    with TicketStore(path):
        assert str(os.getpid()) in Path(f"{path}.lock").read_text()
        second = subprocess.run(
            [sys.executable, "-c", script], check=True, text=True, capture_output=True, timeout=60
        )
        assert f"belongs to process {os.getpid()}" in second.stdout


def test_event_loops_leave_nothing_open(path):
    worker = agent(path)
    asyncio.run(worker.run("first"))
    before = Open()
    for n in range(20):
        asyncio.run(worker.run(f"task {n}"))
    check_nothing_is_left(before, 20)
    worker.store.close()


def test_a_run_keeps_its_claim_when_its_store_is_closed_and_opened_again(path):
    started, go = threading.Event(), threading.Event()
    made = []

    @tool(effect="pure")
    def slow() -> str:
        """Be slow."""
        made.append(1)
        started.set()
        go.wait(30)
        return "done"

    replies = [call("slow"), FINISH]
    first = Agent(
        lambda messages: replies[turn_of(messages)],
        tools=[slow],
        store=path,
    )
    errors = []

    def work():
        try:
            first.run_sync("go")
        except StoreError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait(30)
    first.store.close()
    second = Agent(first._model, tools=[slow], store=path)
    assert second.resume_all_sync() == {}
    go.set()
    thread.join(30)
    assert "closed" in str(errors[0])
    ((run_id, result),) = second.resume_all_sync().items()
    assert (run_id, result.value) == (errors[0].run.id, "done")
    assert len(made) == 2
    second.store.close()


def test_a_program_that_ends_with_a_run_under_way_ends_in_the_ordinary_way(path):
    script = f"""
import asyncio, sys
sys.path[:0] = {sys.path!r}
from callslip import Agent, tool
from fetching import FINISH, call

@tool
async def slow() -> None:
    await asyncio.sleep(60)

worker = Agent(lambda messages: call("slow"), tools=[slow], store={str(path)!r})
loop = asyncio.new_event_loop()
task = loop.create_task(worker.run("go"))
loop.run_until_complete(asyncio.sleep(0.3))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "panic" not in done.stderr
    with TicketStore(path) as store:
        assert [run.task for run in store.runs()] == ["go"]


def test_handles_of_one_file_are_opened_and_closed_in_any_order(path):
    errors = []

    def work():
        try:
            for _ in range(40):
                with TicketStore(path) as store:
                    store.runs()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_run_whose_handle_is_closed_can_be_resumed_through_another(path):
    first, second = agent(path), agent(path)
    seen = []

    def closing(messages):
        if turn_of(messages) > 0 and not seen:
            seen.append(1)
            first.store.close()
        return model(messages)

    first._model = type(first._model)(closing)
    with pytest.raises(StoreError, match="closed"):
        first.run_sync("go")
    assert [run.status for run in second.store.runs()] == ["running"]
    ((_, result),) = second.resume_all_sync().items()
    assert result.value == "done"
    second.store.close()


def test_waits_that_are_cancelled_leave_nothing_open(path):
    worker = agent(path)
    asyncio.run(worker.run("first"))
    before = Open()

    async def cancelled():
        runs = [asyncio.create_task(worker.run(f"task {n}")) for n in range(8)]
        for _ in range(20):
            await asyncio.sleep(0)
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

    for _ in range(15):
        asyncio.run(cancelled())
    check_nothing_is_left(before, 15)
    worker.store.close()


# The query has no end, and its process ends without waiting for it.
QUERYING = """
import os, sys, threading, time
sys.path[:0] = {places!r}
from callslip import TicketStore
from fetching import agent
store = TicketStore({path!r}, durability="memory")
agent(store).run_sync("go")
slow = "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n"
thread = threading.Thread(target=store.query, args=(slow,), daemon=True)
thread.start()
# Nothing else in this process needs the processor.
begun = time.process_time()
while time.process_time() < begun + 0.2:
    time.sleep(0.01)
store.close()
print(thread.is_alive(), flush=True)
sys.stdin.readline()
os._exit(0)
"""


def test_a_query_under_way_does_not_keep_a_store_from_closing(path):
    script = QUERYING.format(places=sys.path, path=str(path))
    with subprocess.Popen(
        [sys.executable, "-c", script], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as querying:
        assert querying.stdout.readline() == "True\n"
        with TicketStore(path) as store:
            assert store.runs()[0].status == "finished"
        assert querying.poll() is None


def test_a_child_that_its_finished_call_left_behind_goes_on_by_itself(path):
    @tool
    def begin() -> str:
        """Begin."""
        return "begun"

    replies = [call("begin"), FINISH]

    def ask(messages):
        return replies[turn_of(messages)]

    outer = Agent(ask, tools=[begin], store=path, name="outer")
    run = outer.run_sync("top").run
    lines = run.export().splitlines(keepends=True)
    child = agent(None).run_sync("sub").run.export().splitlines(keepends=True)
    start = child[0].replace(
        '"task":"sub"', f'"parent":{{"run_id":"{run.id}","ticket":1}},"task":"sub"'
    )
    store = outer.store
    for cut, left in ((6, "finished"), (5, "cancelled")):
        # The call is completed in the sixth event.
        for kept in store.runs():
            store.delete(kept.run_id)
        store.import_run("".join(lines[:cut]))
        store.import_run("".join([start, *child[1:4]]))
        others = agent(store).resume_all_sync()
        assert len(others) == (left == "finished")
        outer.resume_all_sync()
        assert {run.task: run.stop_reason for run in store.runs()}["sub"] == left
    store.close()


def test_a_relative_path_means_the_same_file_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worker = agent("runs.sqlite")
    assert worker.store.path == str(tmp_path / "runs.sqlite")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = worker.run_sync("go").run
    worker.store.close()
    with TicketStore(tmp_path / "runs.sqlite") as store:
        assert store.run(run.id).finished


def test_resume_all_raises_what_it_meets_as_it_is(path):
    worker = agent(path)
    worker.store.close()
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(worker.resume_all())
    with pytest.raises(ValueError, match="at_once"):
        asyncio.run(worker.resume_all(at_once=0))
