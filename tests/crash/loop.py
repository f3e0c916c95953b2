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
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from callslip import TicketStore, replay
from crash import judge
from crash.jobs import MODELS, Job
from crash.judge import Logs, demand
from crash.ledger import Line, read

TESTS = Path(__file__).parent.parent
HANG = 60.0


@dataclass
class Life:
    """One process: what it said before it ended or was killed."""

    finished: dict[str, Any] = field(default_factory=dict)
    done: bool = False
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
        jobs = [
            Job(f"j{number}.{at}", protocol, self.random.randint(4, 20))
            for at, protocol in enumerate(self.random.choices(list(MODELS), k=count))
        ]
        self.seen["runs"] += count
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
            "driver": self.random.choice(["async", "sync"]),
            "streams": self.random.random() < 0.4,
            "mixed": self.random.random() < 0.3,
            "all": self.random.random() < 0.5,
        }
        path = batch.folder / "plan.json"
        path.write_text(json.dumps(plan))
        self.begin_reading(batch)
        longest = self.random.choice([0.05, 0.2, 0.6])
        life = live(path, self.random.uniform(0, longest) if may_kill else None)
        self.look(batch, life, plan)
        return life.done

    def begin_reading(self, batch: Batch) -> None:
        """Keep a reader at the file at times: what dies then leaves its shared memory in use."""
        if batch.reader is None and batch.database.exists() and self.random.random() < 0.2:
            uri = f"{batch.database.as_uri()}?mode=ro"
            batch.reader = sqlite3.connect(uri, uri=True, isolation_level=None)
        if batch.reader is not None:
            self.seen["lives with a reader"] += 1
            batch.reader.execute("begin")
            batch.reader.execute("select count(*) from sqlite_schema").fetchall()

    def look(self, batch: Batch, life: Life, plan: dict[str, Any]) -> None:
        """Compare what the logs say now with what they said and with what really happened."""
        lines = read(batch.ledger)
        logs = self.logs(batch)
        judge.nothing_was_repeated(batch.logs, lines[batch.lines :])
        judge.nothing_was_lost(batch.logs, logs, life.finished)
        over = set(logs.runs) - set(logs.unfinished())
        if life.killed and not life.done and len(over) < len(batch.jobs):
            self.seen["kills"] += 1
            batch.kills += 1
            most = max(self.seen["kills of the same runs, at most"], batch.kills)
            self.seen["kills of the same runs, at most"] = most
            self.seen[f"kills of {plan['driver']} drivers"] += 1
            self.seen["kills before anything was done"] += len(lines) == batch.lines
            self.flight(lines[batch.lines :])
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
        if batch.reader is not None:
            # What died between a commit and its acknowledgement is not there for those who share
            # its memory, but is found by whoever opens the file alone: a copy would say too much.
            if batch.reader.in_transaction:
                batch.reader.execute("rollback")
            return read_events(batch.reader, {job.task for job in batch.jobs})
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
                tasks = {job.task for job in batch.jobs}
                runs = [run.run_id for run in store.runs() if run.task in tasks]
                return Logs.of_texts({run: store.run(run).export() for run in runs})
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
            demand(not store.runs(status="running"), "runs are left running")
            for run in logs.runs:
                demand(replay(store.run(run)).stop_reason == "finished", "a replay ended otherwise")
                self.seen["runs replayed"] += 1
        finally:
            store.close()
        self.seen["in doubt"] += logs.told("in_doubt")
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
        self.tell(f"{self.seen['kills']} kills, {self.seen['runs']} runs")


def read_events(reader: sqlite3.Connection, tasks: set[str]) -> Logs:
    """Read logs from another process, through the views that are there for that."""
    logs = Logs()
    reader.execute("begin")
    for run, task in reader.execute("select run_id, task from runs").fetchall():
        if task in tasks:
            rows = reader.execute(
                "select seq, at, kind, data from events where run_id = ? order by seq", (run,)
            )
            logs.runs[run] = [
                {"seq": seq, "at": at, "event": {kind: json.loads(data)}}
                for seq, at, kind, data in rows
            ]
    reader.execute("rollback")
    return logs


def live(plan: Path, seconds: float | None) -> Life:
    """Run a process on a plan; kill it so many seconds after it is ready, or never."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "crash.child", str(plan)],
            cwd=TESTS,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
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
            demand(life.done, "a process ended without a word")
        return life
