"""Copies of a store's file, as docs/howto/operate.md says how to make them."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from callslip import Agent, StoreError, TicketStore, tool
from scripted import act, finish, turn_of

TURNS = 30

# As `sqlite3 FILE ".backup COPY"` and `VACUUM INTO`: in a process that does not own the file.
WAYS = {
    "backup": "source.backup(sqlite3.connect(copy))",
    "vacuum": "source.execute('VACUUM INTO ?', [copy])",
}


def copy_elsewhere(way, path, copy):
    script = (
        f"import sqlite3, sys\npath, copy = sys.argv[1:]\nsource = sqlite3.connect(path)\n{way}"
    )
    subprocess.run([sys.executable, "-c", script, path, copy], check=True, timeout=60)


def long_agent(store, made, wait=lambda turn: None):
    """Its run has many turns, and each of its calls is counted."""

    @tool(effect="once")
    def work(n: int) -> str:
        """Work."""
        made.append(n)
        return "worked " * 2000

    def model(messages):
        turn = turn_of(messages)
        wait(turn)
        return act("work", n=turn) if turn < TURNS else finish()

    return Agent(model, tools=[work], store=store, name="worker")


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_a_store_in_use_is_whole_and_its_runs_go_on(way, tmp_path):
    path, copies, reached = tmp_path / "runs.sqlite", [], {}
    going = {turn: (threading.Event(), threading.Event()) for turn in (3, 11, 27)}

    def wait(turn):
        if turn in going:
            going[turn][0].set()
            assert going[turn][1].wait(60)

    with TicketStore(path) as store:
        agent = long_agent(store, [], wait)
        running = threading.Thread(target=agent.run_sync, args=["go"])
        running.start()
        for turn, (there, on) in going.items():
            assert there.wait(60)
            (row,) = store.runs()
            reached[turn] = store.run(row.run_id).export().splitlines()
            # The run goes on while the copy is made.
            on.set()
            copies.append(tmp_path / f"copy{turn}.sqlite")
            copy_elsewhere(WAYS[way], path, copies[-1])
        running.join(60)
        whole = store.run(row.run_id).export().splitlines()
    for copy, log in zip(copies, reached.values(), strict=True):
        with TicketStore(copy) as store:
            assert store.query("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
            lines = store.run(row.run_id).export().splitlines()
            assert whole[: len(lines)] == lines
            assert lines[: len(log)] == log
            made = []
            result = long_agent(store, made).resume_sync(row.run_id)
            assert result.value == "done"
            known = [json.loads(line)["event"] for line in lines]
            begun = sum("ticket_opened" in event for event in known)
            assert made == list(range(begun, TURNS))


def test_a_file_that_is_copied_without_its_log_lacks_the_last_commits_and_is_whole(tmp_path):
    path, copy = tmp_path / "runs.sqlite", tmp_path / "copy.sqlite"
    with TicketStore(path) as store:
        long_agent(store, []).run_sync("go")
        copy_elsewhere("source.execute('PRAGMA wal_checkpoint(TRUNCATE)')", path, copy)
        long_agent(store, []).run_sync("again")
        shutil.copy(path, copy)
        assert len(store.runs()) == 2
    with TicketStore(copy) as store:
        assert [run.task for run in store.runs()] == ["go"]
        assert store.query("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    # Its last owner has put the log into it.
    shutil.copy(path, copy)
    with TicketStore(copy) as store:
        assert [run.task for run in store.runs()] == ["again", "go"]


def test_after_a_crash_the_file_and_its_log_together_have_all_that_was_acknowledged(tmp_path):
    path = tmp_path / "runs.sqlite"
    script = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from callslip import Agent, ScriptedModel, TicketStore
store = TicketStore({str(path)!r})
agent = Agent(ScriptedModel(["hello"]), protocol="chatty", store=store)
print(agent.run_sync("go").run.id, flush=True)
os.kill(os.getpid(), {signal.SIGKILL.value})
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, text=True, stdout=subprocess.PIPE, timeout=60
    )
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    with TicketStore(copy) as store:
        assert store.run(done.stdout.strip()).finished


def test_a_dump_as_sql_is_no_backup(tmp_path):
    path, copy = tmp_path / "runs.sqlite", tmp_path / "copy.sqlite"
    with TicketStore(path) as store:
        long_agent(store, []).run_sync("go")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        target.executescript("\n".join(source.iterdump()))
    with pytest.raises(StoreError, match="another program"):
        TicketStore(copy)
