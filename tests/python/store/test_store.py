"""Stores: what is kept, listed, read and deleted."""

import json
import subprocess
import sys
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
from fetching import FINISH, agent, call, fetch
from scripted import asked, turn_of


def test_runs_are_listed_with_what_came_of_them(store):
    first = agent(store).run_sync("first").run
    second = agent(store, name="other", limits=Limits(turns=1), on_limit="raise")
    with pytest.raises(Exception, match="limit of turns") as caught:
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
    assert "[cut: 10 of " in asked(run.messages)[2]["content"]
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
    with pytest.raises(ValueError, match="got neither"):
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


def test_a_large_result_is_kept_once(path):
    size = 2_000_000

    @tool(repeatable=True)
    def big() -> str:
        """Be big."""
        return "x" * size

    replies = [call("big")] * 4 + [FINISH]
    with TicketStore(path) as store:
        worker = Agent(
            lambda messages: replies[turn_of(messages)],
            tools=[big],
            store=store,
        )
        result = worker.run_sync("go")
        assert [len(ticket.result) for ticket in store.tickets()] == [size] * 4
        assert store.run(result.run.id).export() == result.run.export()
    assert Path(path).stat().st_size < 1.5 * size


def test_wrong_bounds_are_refused(store, tmp_path):
    run = agent(store).run_sync("go").run
    for wrong in (float("nan"), -1, timedelta(seconds=-1)):
        with pytest.raises(ValueError, match="older_than to be a number of seconds from 0"):
            store.prune(older_than=wrong)
    with pytest.raises(ValueError, match="expected keep to be a whole number from 0.*: got -1"):
        store.prune(keep=-1)
    with pytest.raises(ValueError, match="expected limit to be a whole number from 0.*: got -1"):
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


def test_a_task_that_is_no_text_is_refused(path):
    with TicketStore(path) as store:
        with pytest.raises(UsageError, match="half of a surrogate pair at 1"):
            agent(store).run_sync("x\ud800")
        assert store.runs() == []


def test_costs_that_are_no_amounts_count_as_none(path):
    said = [float("nan"), float("inf"), -1.0, 0.5]

    def costly(messages):
        n = turn_of(messages)
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


def test_a_run_that_is_started_in_a_call_is_linked_and_ends_with_it(path):
    depth = []

    @tool
    async def ask(task: str) -> str:
        """Ask another agent."""
        depth.append(task)
        return (await inner.run(task)).value

    inner = Agent(lambda messages: FINISH, store=path, name="inner")

    def outer_model(messages):
        return [call("ask", task="sub"), FINISH][turn_of(messages)]

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
