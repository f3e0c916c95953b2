"""The crash test: processes are killed at random moments and others go on, until all is done."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from callslip import TicketStore, replay
from crash import judge
from crash.agents import LEVELS
from crash.jobs import MODELS, Job
from crash.judge import demand
from crash.ledger import Line, read
from crash.logs import Logs, parent_of

SUPPORT = Path(__file__).parent.parent
HANG = 240.0


@dataclass
class Life:
    """One process: what it said before it ended or was killed."""

    finished: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    left: bool = False
    killed: bool = False


@dataclass
class Batch:
    """Some jobs in one store, and what was seen of them up to the last kill."""

    folder: Path
    database: Path
    jobs: list[Job]
    durability: str
    logs: Logs = field(default_factory=Logs)
    lines: int = 0
    kills: int = 0
    reader: sqlite3.Connection | None = None

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"


class CrashTest:
    """Kills `kills` processes that were at work; deterministic in its choices, not in timing."""

    def __init__(self, folder: Path, seed: int, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.tell = tell
        self.seen: Counter[str] = Counter()
        self.database = folder / "0.sqlite"

    def run(self, kills: int) -> Counter[str]:
        while self.seen["kills"] < kills:
            batch = self.new_batch()
            while True:
                left = kills - self.seen["kills"]
                if self.one_life(batch, may_kill=left > 0):
                    break
            self.finish(batch)
        return self.seen

    def new_batch(self) -> Batch:
        number = self.seen["batches"]
        self.seen["batches"] += 1
        if self.random.random() < 0.3:
            self.database = self.folder / f"{number}.sqlite"
        folder = self.folder / f"batch-{number}"
        folder.mkdir()
        count = self.random.randint(1, 6)
        jobs = []
        for at, protocol in enumerate(self.random.choices(list(MODELS), k=count)):
            levels = self.random.choice([0, 1, LEVELS])
            steps = self.random.randint(4, 20 - 5 * levels)
            jobs.append(Job(f"j{number}.{at}", protocol, steps, levels))
        for job in jobs:
            self.seen["jobs"] += 1
            self.seen[f"jobs with {job.levels} levels below"] += 1
        durability = self.random.choice(["full", "full", "normal"])
        return Batch(folder, self.database, jobs, durability)

    def one_life(self, batch: Batch, *, may_kill: bool) -> bool:
        """Let a process work, kill it at a random moment. Says whether all was done."""
        self.seen["lives"] += 1
        plan = {
            "database": str(batch.database),
            "ledger": str(batch.ledger),
            "durability": batch.durability,
            "jobs": [asdict(job) for job in batch.jobs],
            "driver": self.random.choices(
                ["async", "sync", "streamed", "nobody"], weights=[3, 3, 2, 1]
            )[0],
            "streams": self.random.random() < 0.4,
            "mixed": self.random.random() < 0.3,
            "all": self.random.random() < 0.5,
            "approves": self.random.choice(["thread", "loop"]),
            "visit": self.random.random() < 0.4,
            "chance": self.random.choice([0.5, 0.1, 0.0 if may_kill else 0.5]),
        }
        if plan["driver"] in {"sync", "nobody"}:
            plan["approves"] = "thread"
        plan["visit"] = plan["visit"] or plan["driver"] == "nobody"
        path = batch.folder / "plan.json"
        path.write_text(json.dumps(plan))
        self.begin_reading(batch)
        longest = self.random.choice([0.05, 0.2, 0.6, 1.2])
        life = live(path, self.random.uniform(0, longest) if may_kill else None)
        self.look(batch, life, plan)
        return life.done

    def begin_reading(self, batch: Batch) -> None:
        """Keep a reader at the file at times: what dies then leaves its shared memory in use."""
        if batch.reader is None and batch.database.exists() and self.random.random() < 0.2:
            uri = f"{batch.database.as_uri()}?mode=ro"
            batch.reader = sqlite3.connect(uri, uri=True, isolation_level=None)
        if batch.reader is None:
            return
        try:
            if batch.reader.execute("pragma journal_mode").fetchone() != ("wal",):
                # What died had made the file only in part: a reader would keep it so.
                return
            batch.reader.execute("begin")
            batch.reader.execute("select count(*) from sqlite_schema").fetchall()
            self.seen["lives with a reader"] += 1
        except sqlite3.OperationalError as error:
            # What died while it made the file has left it to be mended by somebody who may write.
            demand("readonly" in str(error), "the file can't be read", error)
            batch.reader.close()
            batch.reader = None

    def look(self, batch: Batch, life: Life, plan: dict[str, Any]) -> None:
        """Compare what the logs say now with what they said and with what really happened."""
        lines = read(batch.ledger)
        logs = self.logs(batch)
        judge.nothing_was_repeated(batch.logs, lines[batch.lines :])
        judge.nothing_was_lost(batch.logs, logs, life.finished)
        judge.nothing_is_left_below(logs)
        judge.approvals_hold(logs, lines)
        judge.approvals_count(logs, lines)
        over = logs.roots().keys() - logs.unfinished()
        if life.left:
            self.seen["visits between processes"] += 1
        elif life.killed and not life.done and len(over) < len(batch.jobs):
            self.seen["kills"] += 1
            batch.kills += 1
            most = max(self.seen["kills of the same runs, at most"], batch.kills)
            self.seen["kills of the same runs, at most"] = most
            self.seen[f"kills of {plan['driver']} drivers"] += 1
            self.seen["kills before anything was done"] += len(lines) == batch.lines
            self.flight(lines[batch.lines :])
            below = logs.unfinished() - logs.roots().keys()
            self.seen["runs below others under way"] += len(below)
            waiting = logs.asked_for() - set(logs.approved()) - logs.completed().keys()
            self.seen["calls waiting for approval"] += len(waiting)
        elif life.killed:
            self.seen["kills that came too late"] += 1
        batch.logs, batch.lines = logs, len(lines)

    def flight(self, since: list[Line]) -> None:
        """Count what the kill fell into."""
        open_calls: Counter[str] = Counter()
        for line in since:
            if line["at"] in {"start", "end"} and line.get("tool") != "audit":
                change = 1 if line["at"] == "start" else -1
                open_calls[line.get("tool", "model")] += change
        for name, count in open_calls.items():
            self.seen[f"{name} calls under way"] += count

    def logs(self, batch: Batch) -> Logs:
        """Read what the next process will find, without mending it for that process."""
        tasks = {job.task for job in batch.jobs}
        if batch.reader is not None:
            # What died between a commit and its acknowledgement is not there for those who share
            # its memory, but is found by whoever opens the file alone: a copy would say too much.
            if batch.reader.in_transaction:
                batch.reader.execute("rollback")
            return read_events(batch.reader, tasks)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.sqlite"
            if not batch.database.exists():
                return Logs()
            for end in ("", "-wal", "-journal"):
                source = Path(f"{batch.database}{end}")
                if source.exists():
                    shutil.copy(source, f"{copy}{end}")
            store = TicketStore(copy)
            try:
                (check,) = store.query("pragma integrity_check")
                demand("ok" in str(check), "the file is damaged", check)
                rows = [(run.run_id, run.parent_run, run.task) for run in store.runs()]
                runs = with_those_below(rows, tasks)
                logs = Logs.of_texts({run: store.run(run).export() for run in runs})
                waiting = store.tickets(awaiting_approval=True)
                logs.awaiting_approval = {(ticket.run_id, ticket.id) for ticket in waiting}
                return logs
            finally:
                store.close()

    def finish(self, batch: Batch) -> None:
        """Everything is done: judge the whole."""
        lines = read(batch.ledger)
        logs = self.logs(batch)
        if batch.reader is not None:
            batch.reader.close()
        judge.jobs_are_done(batch.jobs, logs, lines)
        judge.effects_are_as_declared(lines)
        store = TicketStore(batch.database)
        try:
            demand(not store.tickets(status="IN_PROGRESS"), "tickets are left in progress")
            demand(not store.tickets(awaiting_approval=True), "tickets are left awaiting approval")
            demand(not store.runs(status="running"), "runs are left running")
            for run, log in logs.runs.items():
                demand(replay(store.run(run)).stop_reason == "finished", "a replay ended otherwise")
                self.seen["runs replayed"] += 1
                self.seen["runs below others"] += parent_of(log) is not None
                below = [child.id for child in store.run(run).children]
                known = [
                    child for child, log in logs.runs.items() if (parent_of(log) or ("",))[0] == run
                ]
                demand(sorted(below) == sorted(known), f"run {run} has other children", below)
        finally:
            store.close()
        self.seen["in doubt"] += logs.told("in_doubt")
        self.seen["calls approved"] += len(logs.approved())
        self.seen["calls denied"] += len(logs.denied())
        decided = [line for line in lines if line["at"] == "decided"]
        self.seen["decisions while nobody worked"] += sum(line["alone"] for line in decided)
        self.seen["reconciled"] += sum(line["at"] == "reconcile" for line in lines)
        starts = Counter(
            (line["tool"], line["key"])
            for line in lines
            if line["kind"] == "tool" and line["at"] == "start"
        )
        for (name, _), count in starts.items():
            self.seen[f"{name} calls"] += 1
            self.seen[f"{name} calls made again"] += count - 1
        asked = Counter(
            (line["job"], line["turn"])
            for line in lines
            if line["kind"] == "model" and line["at"] == "start"
        )
        self.seen["model turns"] += len(asked)
        self.seen["model calls made again"] += asked.total() - len(asked)
        self.tell(f"{self.seen['kills']} kills, {self.seen['jobs']} jobs")


def with_those_below(rows: Iterable[tuple[str, str | None, str]], tasks: set[str]) -> list[str]:
    """The runs of these tasks, and all below them: of each its id, its parent and its task."""
    below: dict[str | None, list[str]] = defaultdict(list)
    runs = []
    for run, parent, task in rows:
        below[parent].append(run)
        if parent is None and task in tasks:
            runs.append(run)
    for run in runs:
        runs += below[run]
    return runs


def read_events(reader: sqlite3.Connection, tasks: set[str]) -> Logs:
    """Read logs from another process, through the views that are there for that."""
    logs = Logs()
    reader.execute("begin")
    views = reader.execute("select name from sqlite_schema where type = 'view'").fetchall()
    if not views:  # the process died at making the file
        reader.execute("rollback")
        return logs
    rows = reader.execute("select run_id, parent_run, task from runs").fetchall()
    for run in with_those_below(rows, tasks):
        events = reader.execute(
            "select seq, at, kind, data from events where run_id = ? order by seq", (run,)
        )
        logs.runs[run] = [
            {"seq": seq, "at": at, "event": {kind: json.loads(data)}}
            for seq, at, kind, data in events
        ]
    if logs.runs:  # else the file may not be made to its end
        waiting = reader.execute("select run_id, ticket from tickets where parked").fetchall()
        logs.awaiting_approval = set(waiting)
    reader.execute("rollback")
    return logs


def live(plan: Path, seconds: float | None) -> Life:
    """Run a process on a plan; kill it so many seconds after it is ready, or never."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "crash.child", str(plan)],
            cwd=SUPPORT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        timers: list[threading.Timer] = []
        life = Life()
        hang = threading.Timer(HANG, process.kill)
        hang.start()
        began = time.monotonic()
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                if line == "ready\n" and seconds is not None:
                    timers.append(threading.Timer(seconds, process.kill))
                    timers[-1].start()
                elif line == "done\n":
                    life.done = True
                elif line == "left\n":
                    life.left = True
                elif line.startswith("{") and line.endswith("\n"):
                    said = json.loads(line)
                    life.finished[said["run"]] = said["value"]
        for timer in (hang, *timers):
            timer.cancel()
            timer.join()
        errors.seek(0)
        demand(time.monotonic() - began < HANG, "a process hung", errors.read())
        life.killed = process.returncode == -9
        if not life.killed:
            errors.seek(0)
            demand(process.returncode == 0, f"exit {process.returncode}", errors.read()[-4000:])
            demand(life.done or life.left, "a process ended without a word")
        return life
