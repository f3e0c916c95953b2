"""Stores: what is kept, listed, read, deleted and refused."""

import asyncio
import gc
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from callslip import (
    Agent,
    Limits,
    ModelReply,
    ReplayError,
    StoreError,
    TicketStore,
    UsageError,
    replay,
    tool,
)

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


def call(name, **arguments):
    return json.dumps({"thought": "", "action": name, "args": json.dumps(arguments)})


@tool
def fetch(n: int) -> list[str]:
    """Fetch."""
    return [f"line {position} of {n}" for position in range(n)]


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("no")


REPLIES = [call("fetch", n=2), call("fail"), FINISH]


def model(messages):
    return REPLIES[sum(message["role"] == "assistant" for message in messages)]


def agent(store, **options):
    return Agent(model, tools=[fetch, fail], store=store, **options)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    with TicketStore(None if request.param == "memory" else tmp_path / "runs.sqlite") as store:
        yield store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def test_runs_are_listed_with_what_came_of_them(store):
    first = agent(store).run_sync("first").run
    second = agent(store, name="other", limits=Limits(steps=1), on_limit="raise")
    with pytest.raises(Exception, match="limit of steps") as caught:
        second.run_sync("second")
    listed = store.runs()
    assert [run.task for run in listed] == ["second", "first"]
    limited, finished = listed
    assert (finished.run_id, finished.agent, finished.protocol) == (first.id, "agent", "react")
    assert (finished.status, finished.stop_reason, finished.error) == ("finished", "finished", None)
    assert (finished.turns, finished.violations, finished.usage) == (3, 0, first.usage)
    assert finished.started_at == first.log[0].at
    assert finished.updated_at == finished.finished_at == first.log[-1].at
    assert limited.stop_reason == "limit"
    assert limited.error == str(caught.value)
    assert [run.task for run in store.runs(agent="other")] == ["second"]
    assert [run.task for run in store.runs(limit=1)] == ["second"]
    assert [run.task for run in store.runs(since=limited.started_at)] == ["second"]
    assert [run.task for run in store.runs(until=limited.started_at)] == ["first"]
    assert store.runs(status="running") == store.runs(parent=first.id) == []
    with pytest.raises(ValueError, match="expected status='running' or 'finished': got 'done'"):
        store.runs(status="done")


def test_tickets_are_listed_with_their_whole_results(store):
    run = agent(store, limits=Limits(result_bytes=10)).run_sync("go").run
    assert "[cut: 10 of " in run.messages[3]["content"]
    listed = store.tickets()
    assert listed == run.tickets[::-1]
    assert listed[1].result == ["line 0 of 2", "line 1 of 2"]
    assert (listed[0].outcome, listed[0].result) == ("error", None)
    assert listed[0].error == "Error calling tool 'fail': ValueError: no."
    assert [ticket.id for ticket in store.tickets(run=run.id, status="COMPLETED")] == ["T2", "T1"]
    assert [ticket.id for ticket in store.tickets(kind="tool_call", limit=1)] == ["T2"]
    assert store.tickets(status="IN_PROGRESS") == store.tickets(run="none") == []
    assert store.tickets(parent=run.id) == []
    with pytest.raises(ValueError, match="kind='tool_call'"):
        store.tickets(kind="other")


def test_a_run_is_read_as_it_was(store):
    run = agent(store).run_sync("go").run
    kept = store.run(run.id)
    assert kept.export() == run.export()
    assert kept.messages == run.messages
    assert (kept.task, kept.tickets, kept.usage) == ("go", run.tickets, run.usage)
    assert kept.finished
    with pytest.raises(StoreError, match="there is no run x"):
        store.run("x")


def test_a_run_is_exported_and_taken_in_elsewhere(store):
    run = agent(None).run_sync("go").run
    text = run.export()
    assert [json.loads(line)["seq"] for line in text.splitlines()] == list(range(len(run.log)))
    assert store.import_run(text) == run.id
    assert store.run(run.id).export() == text
    assert store.tickets(run=run.id) == run.tickets[::-1]
    with pytest.raises(StoreError, match="already"):
        store.import_run(text.splitlines())
    with pytest.raises(ReplayError, match="line 2 is no event of a run"):
        store.import_run(text.splitlines()[0] + "\n{}\n")
    with pytest.raises(ReplayError, match="first events are missing"):
        store.import_run(text.splitlines()[1:])
    with pytest.raises(ReplayError, match="the log is empty"):
        store.import_run("")


def test_runs_are_deleted_one_by_one_or_by_age_or_count(store):
    ids = [agent(store).run_sync(f"task {n}").run.id for n in range(5)]
    assert store.delete(ids[0]) == 1
    assert len(store.tickets()) == 8
    with pytest.raises(StoreError, match="there is no run"):
        store.run(ids[0])
    assert store.prune(older_than=timedelta(hours=1)) == 0
    assert store.prune(keep=3) == 1
    assert [run.run_id for run in store.runs()] == ids[:1:-1]
    time.sleep(0.01)
    assert store.prune(older_than=0, keep=2) == 1
    assert store.prune(older_than=0) == 2
    assert store.runs() == store.tickets() == []
    with pytest.raises(ValueError, match="say which"):
        store.prune()


def test_a_run_that_is_not_over_is_not_pruned(store):
    lines = agent(None).run_sync("go").run.export().splitlines()
    run_id = store.import_run(lines[:-1])
    assert store.prune(older_than=0) == store.prune(keep=0) == 0
    assert agent(store).resume_sync(run_id).value == "done"
    assert store.prune(keep=0) == 1


def test_a_compacted_run_is_read_and_resumed_as_before(store):
    run = agent(None).run_sync("go").run
    lines = run.export().splitlines()
    run_id = store.import_run(lines[:12])
    messages = store.run(run_id).messages
    store.compact(run_id)
    assert [event.kind for event in store.run(run_id).log] == ["compacted"]
    assert store.run(run_id).messages == messages
    assert store.tickets() == store.run(run_id).tickets[::-1]
    result = agent(store).resume_sync(run_id)
    assert result.messages == run.messages
    assert [ticket.result for ticket in result.tickets] == [t.result for t in run.tickets]
    with pytest.raises(ReplayError, match="compacted"):
        replay(store.run(run_id))
    text = store.run(run_id).export()
    store.delete(run_id)
    store.import_run(text)
    assert store.run(run_id).messages == run.messages
    with pytest.raises(StoreError, match="there is no run x"):
        store.compact("x")


def test_a_log_is_replayed_and_a_difference_is_named(tmp_path):
    run = agent(None).run_sync("go").run
    file = tmp_path / "run.jsonl"
    file.write_text(run.export())
    for log in (run, run.export(), run.export().splitlines(), file, str(file)):
        again = replay(log)
        assert (again.id, again.task, again.messages) == (run.id, "go", run.messages)
        assert again.export() == run.export()
    altered = run.export().replace("line 1 of 2", "line 7 of 2", 1)
    assert replay(altered).tickets[0].result == ["line 0 of 2", "line 7 of 2"]
    altered = run.export().replace('"tool":"fetch"', '"tool":"fail"', 1)
    with pytest.raises(ReplayError, match=r"event 3 differs: the log has \{"):
        replay(altered)
    with pytest.raises(FileNotFoundError):
        replay(tmp_path / "none.jsonl")


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
from test_store import TicketStore, agent
store = TicketStore({str(path)!r}, durability={durability!r})
print(agent(store).run_sync("go").run.id, flush=True)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, text=True, stdout=subprocess.PIPE, timeout=60
    )
    with TicketStore(path) as store:
        assert store.run(done.stdout.strip()).finished


def test_tables_can_be_queried_here_and_by_others(path):
    with TicketStore(path) as store:
        run = agent(store).run_sync("go").run
        sql = "select run_id, status, stop_reason from runs where task = ?"
        assert store.query(sql, ["go"]) == [
            {"run_id": run.id, "status": "finished", "stop_reason": "finished"}
        ]
        rows = store.query("select ticket, tool, outcome, result, error from tickets order by 1")
        assert [row["ticket"] for row in rows] == ["T1", "T2"]
        assert json.loads(rows[0]["result"]) == ["line 0 of 2", "line 1 of 2"]
        assert rows[1]["error"] == "Error calling tool 'fail': ValueError: no."
        kinds = store.query("select kind from events where run_id = ? order by seq", [run.id])
        assert [row["kind"] for row in kinds] == [event.kind for event in run.log]
        row = store.query(
            "select ? as a, ? as b, ? as c, ? as d, ? as e", [None, 2, 0.5, "x", b"y"]
        )
        assert row == [{"a": None, "b": 2, "c": 0.5, "d": "x", "e": b"y"}]
        with pytest.raises(StoreError, match="query"):
            store.query("delete from run")
        with pytest.raises(StoreError, match="no such table"):
            store.query("select * from absent")
        # Another process may read with any client, while this one holds the file.
        script = (
            f"import sqlite3; connection = sqlite3.connect({str(path)!r});"
            "print(*connection.execute('select task from runs'))"
        )
        other = subprocess.run(
            [sys.executable, "-c", script], check=True, text=True, capture_output=True, timeout=60
        )
        assert other.stdout.strip() == "('go',)"
        agent(store).run_sync("more")
    with pytest.raises(StoreError, match="in memory"):
        TicketStore().query("select 1")


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
        assert "fork" in queue.get(timeout=30)
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


def test_a_large_result_is_kept_once(path):
    size = 2_000_000

    @tool(repeatable=True)
    def big() -> str:
        """Be big."""
        return "x" * size

    replies = [call("big")] * 4 + [FINISH]
    with TicketStore(path) as store:
        worker = Agent(
            lambda messages: replies[sum(m["role"] == "assistant" for m in messages)],
            tools=[big],
            store=store,
        )
        result = worker.run_sync("go")
        assert [len(ticket.result) for ticket in store.tickets()] == [size] * 4
        assert store.run(result.run.id).export() == result.run.export()
    assert Path(path).stat().st_size < 1.5 * size


def _elsewhere(path, sql):
    """Change the file in another process, as nobody should."""
    script = f"import sqlite3; sqlite3.connect({str(path)!r}).execute({sql!r}).connection.commit()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


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


def test_awkward_results_are_kept_exported_and_listed(store):
    awkward = ["a\u2028b\u2029c\x85d\x1ce\r\nf", "\ud800", 10**5000, float("nan"), "\0", 2.50, -0.0]

    @tool(repeatable=True)
    def give(n: int) -> object:
        """Give."""
        return awkward[n]

    replies = [call("give", n=n) for n in range(len(awkward))] + [
        FINISH.replace("done", "d\u2028e")
    ]
    worker = Agent(
        lambda messages: replies[sum(m["role"] == "assistant" for m in messages)],
        tools=[give],
        store=store,
    )
    run = worker.run_sync("go\u2028on").run
    assert run.export() == store.run(run.id).export()
    assert replay(run.export()).messages == run.messages
    listed = store.tickets()[::-1]
    assert listed == run.tickets
    assert listed[0].result == awkward[0]
    assert listed[2].result == "1" + "0" * 5000
    assert [event.kind for event in run.log][-1] == "run_finished"
    store.delete(run.id)
    store.import_run(run.export())
    assert store.run(run.id).task == "go\u2028on"


def test_wrong_bounds_are_refused(store, tmp_path):
    run = agent(store).run_sync("go").run
    for wrong in (float("nan"), -1, timedelta(seconds=-1)):
        with pytest.raises(ValueError, match="expected older_than to be 0 seconds or more"):
            store.prune(older_than=wrong)
    with pytest.raises(ValueError, match="expected keep to be 0 or more: got -1"):
        store.prune(keep=-1)
    with pytest.raises(ValueError, match="expected limit to be 0 or more: got -1"):
        store.runs(limit=-1)
    assert store.tickets(limit=0) == []
    with pytest.raises(ValueError, match=r"TicketStore\(\)"):
        TicketStore(":memory:")
    for empty in ("", "\n", []):
        with pytest.raises(ReplayError, match="the log is empty"):
            replay(empty)
    file = tmp_path / "run.jsonl"
    file.write_text(run.export())
    store.delete(run.id)
    assert store.import_run(file) == run.id


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"ticket":1,', '"ticket":0,'), "event 4 can't follow those before it"),
        (('"ticket":1,', '"ticket":7,'), "event 4 can't follow those before it"),
        (('"turn":1', '"turn":0'), "event 1 can't follow those before it"),
        (('"turn":1', '"turn":4294967295'), "event 1 can't follow those before it"),
        (('"seq":4', '"seq":5'), "event 5 where event 4 belongs"),
        (('"version":1', '"version":2'), "version 2"),
        (('"react"', '"other"'), "line 1 is no event of a run"),
        (('"turn":1', '"turn":-1'), "is no event of a run"),
    ],
)
def test_changed_logs_are_refused_and_say_why(store, change, words):
    text = agent(None).run_sync("go").run.export()
    assert change[0] in text
    for take in (store.import_run, replay):
        with pytest.raises(ReplayError, match=words):
            take(text.replace(*change))
    assert store.runs() == []


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


def test_a_task_that_is_no_text_is_refused(path):
    with TicketStore(path) as store:
        with pytest.raises(UsageError, match="half of a surrogate pair at 1"):
            agent(store).run_sync("x\ud800")
        assert store.runs() == []


def test_numbers_of_any_length_come_back():
    text = "9" * 5000
    reply = f'<thoughts>x</thoughts><output>{{"type": "RETURN", "value": {text}}}</output>'
    worker = Agent(lambda messages: reply, protocol="ticket", limits=Limits(json_digits=6000))
    result = worker.run_sync("go")
    assert str(result.value) == text
    assert result.run.log[-1].data["value"] == result.value


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_file_from_others(path):
    script = f"""
import os, sys, time
sys.path[:0] = {sys.path!r}
from callslip import TicketStore
store = TicketStore({str(path)!r})
child = os.fork()
if not child:
    time.sleep(20)
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
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(20):
        asyncio.run(worker.run(f"task {n}"))
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
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
        lambda messages: replies[sum(m["role"] == "assistant" for m in messages)],
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


def test_costs_that_are_no_amounts_count_as_none(path):
    said = [float("nan"), float("inf"), -1.0, 0.5]

    def costly(messages):
        n = sum(message["role"] == "assistant" for message in messages)
        usage = {"input_tokens": 3, "output_tokens": -5, "cost": said[n]}
        return ModelReply(
            [call("fetch", n=n), call("fetch", n=n), call("fetch", n=n), FINISH][n], usage=usage
        )

    with TicketStore(path) as store:
        run = Agent(costly, tools=[fetch], store=store).run_sync("go").run
        assert (run.usage.cost, run.usage.input_tokens, run.usage.output_tokens) == (0.5, 12, 0)
        assert store.run(run.id).usage == store.runs()[0].usage == run.usage
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="None for no limit"):
            Limits(seconds=wrong)


def test_a_program_that_ends_with_a_run_under_way_ends_in_the_ordinary_way(path):
    script = f"""
import asyncio, sys
sys.path[:0] = {sys.path!r}
from test_store import Agent, FINISH, agent, call, tool

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


def test_a_run_that_is_started_in_a_call_is_linked_and_ends_with_it(path):
    depth = []

    @tool
    async def ask(task: str) -> str:
        """Ask another agent."""
        depth.append(task)
        return (await inner.run(task)).value

    inner = Agent(lambda messages: FINISH, store=path, name="inner")

    def outer_model(messages):
        return [call("ask", task="sub"), FINISH][sum(m["role"] == "assistant" for m in messages)]

    outer = Agent(outer_model, tools=[ask], store=path, name="outer")
    run = outer.run_sync("top").run
    store = outer.store
    (child,) = store.runs(parent=run.id)
    assert (child.task, child.parent_run, child.parent_ticket) == ("sub", run.id, "T1")
    assert store.tickets(parent=run.id) == []
    # As if the process had ended in the child's run.
    top, sub = run.export(), store.run(child.run_id).export()
    store.delete(run.id)
    assert store.runs() == []
    store.import_run("".join(top.splitlines(keepends=True)[:5]))
    store.import_run("".join(sub.splitlines(keepends=True)[:2]))
    assert inner.resume_all_sync() == {}
    result = outer.resume_all_sync()[run.id]
    assert [ticket.outcome for ticket in result.tickets] == ["in_doubt"]
    assert {run.task: run.stop_reason for run in store.runs()} == {
        "top": "finished",
        "sub": "cancelled",
    }
    store.close()


def test_a_changed_state_is_refused(store):
    run_id = store.import_run(agent(None).run_sync("go").run.export())
    store.compact(run_id)
    text = store.run(run_id).export()
    store.delete(run_id)
    for change in (
        ('"turn":3', '"turn":4'),
        ('"open":0', '"open":1'),
        ("line 1 of 2", "line 7 of 2"),
    ):
        assert change[0] in text
        with pytest.raises(
            ReplayError, match="the state in event 14 is not the one that was written"
        ):
            store.import_run(text.replace(change[0], change[1], 9))
    assert store.import_run(text) == run_id
