"""What it costs to lose nothing: durable turns, syncs and CPU, as Markdown.

    python benches/store.py [--rounds 3]

A turn is one model reply, one call and its result; the model answers at once. Each measurement is a
process of its own with tests/support/faults/faults.c inside, which counts the syncs of the database
and its log and changes nothing. Rounds go through all rows in turn; the median is printed. Every
turn of ours makes two commits: the reply with the tickets it opens, then the outcome.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import itertools
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "support")]

import durable_peers as peers  # noqa: E402

from faults.shim import CALLS, build  # noqa: E402

ALONE = 200
SIDE_BY_SIDE = {1: 200, 10: 100, 100: 40, 1000: 10}
EVENTS = (10, 100, 1_000, 10_000)
RUNS = (10, 1_000, 100_000)
WINDOW = 60
REPLY_AND_OUTCOME = (3, 2)
"""Records in the two commits of a turn."""
RECORDS = sum(REPLY_AND_OUTCOME)
FINISH = json.dumps(
    {"thought": "done", "action": "FINISH", "final_answer": "ok", "task_successful": True}
)


class Script:
    """A react model that calls so often, then finishes; the messages say where it is."""

    def __init__(self, turns: int, note: Callable[[int], None] | None = None) -> None:
        self.turns = turns
        self.note = note
        self.first: int | None = None

    async def __call__(self, messages: Sequence[object]) -> str:
        # A run begins with the prompt, an example of several messages, and the task.
        if self.first is None:
            self.first = len(messages)
        turn = (len(messages) - self.first) // 2
        if self.note:
            self.note(turn)
        return peers.REPLY % turn if turn < self.turns else FINISH


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent(model: Script, store: Any) -> Any:
    from callslip import Agent, Limits, tool

    limits = Limits(turns=None, tickets=None)
    kept = {} if store is None else {"store": store}
    return Agent(model, protocol="react", tools=[tool(add)], limits=limits, **kept)


async def callslip(path: Path | None, turns: int, runs: int) -> int:
    """Run agents side by side on one file, or without one. Returns the commits it asks for."""
    from callslip import TicketStore

    store = None if path is None else TicketStore(path)
    worker = agent(Script(turns), store)
    results = await asyncio.gather(*(worker.run("count") for _ in range(runs)))
    assert all(result.value == "ok" for result in results)
    if store is not None:
        store.close()
    return runs * (2 + 2 * turns)


def log_of(turns: int) -> list[str]:
    """The lines of a run's log: what raw SQLite is given to keep."""
    from callslip import TicketStore

    with tempfile.TemporaryDirectory() as folder:
        store = TicketStore(Path(folder) / "log.sqlite", durability="memory")
        run = agent(Script(turns), store).run_sync("count").run
        store.close()
    return str(run.export()).splitlines()


# What a process measures: (work, turns, runs) -> the number of commits.
def perform(work: str, path: Path, turns: int, runs: int) -> int:
    match work:
        case "callslip":
            return asyncio.run(callslip(path, turns, runs))
        case "callslip, no store":
            return asyncio.run(callslip(None, turns, runs))
        case "LangGraph SqliteSaver":
            return peers.langgraph(path, turns)
        case "LangGraph, no saver":
            return peers.langgraph(None, turns)
        case "LangGraph AsyncSqliteSaver":
            return asyncio.run(peers.langgraph_async(path, turns, runs))
        case "LangGraph async, no saver":
            return asyncio.run(peers.langgraph_async(None, turns, runs))
    raise ValueError(work)


def measured(work: str, path: Path, turns: int, runs: int) -> dict[str, float]:
    """Be the process that is measured."""
    shim = ctypes.CDLL(None)
    records: list[str] = []
    if work.startswith("raw"):
        records = log_of(turns)
    elif not work.endswith("sync"):
        perform(work, path.with_suffix(".warm"), 3, 1)
    before = shim.faults_count(CALLS.index("sync"))
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    if work == "fsync":
        peers.syncs(path, turns, os.fsync)
        count = turns
    elif work == "fdatasync":
        peers.syncs(path, turns, os.fdatasync)
        count = turns
    elif work.startswith("raw"):
        # Ours keeps together what a reply leads to, then the outcome and the next question.
        count = peers.raw(path, records, (1,) if work == "raw" else (2, *REPLY_AND_OUTCOME * turns))
    else:
        count = perform(work, path, turns, runs)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    made = shim.faults_count(CALLS.index("sync")) - before
    return {"wall": wall, "cpu": cpu, "syncs": made, "commits": count, "turns": turns * runs}


def along_a_run(path: Path) -> list[dict[str, float]]:
    """Be the process that measures a long run: what a turn costs after so many events."""
    per_turn = len(log_of(100)) / 100
    turns = [round(events / per_turn) for events in EVENTS]
    readings: list[tuple[float, float]] = []

    def note(_: int) -> None:
        readings.append((time.perf_counter(), time.process_time()))

    from callslip import TicketStore

    store = TicketStore(path)
    worker = agent(Script(turns[-1] + WINDOW, note), store)
    gc.collect()
    assert asyncio.run(worker.run("count")).value == "ok"
    store.close()
    return [a_turn(readings[turn : turn + WINDOW]) for turn in turns]


def a_turn(readings: Sequence[tuple[float, float]]) -> dict[str, float]:
    steps = [
        (after[0] - before[0], after[1] - before[1])
        for before, after in itertools.pairwise(readings)
    ]
    wall, cpu = (statistics.median(column) for column in zip(*steps, strict=True))
    return {"wall": wall, "cpu": cpu}


def beside_runs(path: Path, runs: int) -> dict[str, float]:
    """Be the process that measures a run on a file that holds so many runs."""
    from callslip import TicketStore

    fill(path, runs)
    began = time.perf_counter()
    store = TicketStore(path)
    opened = time.perf_counter() - began
    readings: list[tuple[float, float]] = []

    def note(_: int) -> None:
        readings.append((time.perf_counter(), time.process_time()))

    worker = agent(Script(WINDOW, note), store)
    assert asyncio.run(worker.run("count")).value == "ok"
    began = time.perf_counter()
    assert store.runs(status="running") == []
    listed = time.perf_counter() - began
    size = path.stat().st_size
    store.close()
    return {**a_turn(readings[5:]), "open": opened, "listed": listed, "size": size}


def fill(path: Path, runs: int) -> None:
    """Put finished runs into a file: a real one, and copies of its rows under other ids."""
    from callslip import TicketStore

    store = TicketStore(path)
    agent(Script(2), store).run_sync("count")
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("pragma synchronous = off")
        database.execute("begin")
        for table, names in {"run": ("key", "id"), "event": ("run",), "ticket": ("run",)}.items():
            own = {name: f"{name} + number" for name in names} | {"id": "'copy-' || number"}
            columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
            values = [own[name] if name in names else name for name in columns]
            database.execute(
                "with recursive copy(number) as"
                " (select 1 union all select number + 1 from copy where number < ?)"
                f" insert into {table} select {', '.join(values)} from copy, {table}",
                (runs - 1,),
            )
        database.execute("commit")
        database.execute("pragma wal_checkpoint(truncate)")


class Bench:
    """Starts a process for each measurement."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.shim = build(folder)
        self.number = 0

    def process(self, *arguments: object) -> Any:
        self.number += 1
        path = Path(os.path.realpath(self.folder)) / f"{self.number}.sqlite"
        environment = {
            **os.environ,
            "LD_PRELOAD": str(self.shim),
            "CALLSLIP_FAULT_PATH": str(path),
        }
        command = [sys.executable, str(HERE / "store.py"), "--measure", str(path)]
        done = subprocess.run(
            [*command, *map(str, arguments)], env=environment, stdout=subprocess.PIPE, check=True
        )
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        return json.loads(done.stdout)

    def medians(self, rows: Sequence[tuple[str, int, int]]) -> list[dict[str, float]]:
        """Measure each row once a round, in turn: what changes on the machine meets all of them."""
        seen: list[list[dict[str, float]]] = [[] for _ in rows]
        for _ in range(self.rounds):
            for row, readings in zip(rows, seen, strict=True):
                readings.append(self.process("work", *row))
        return [
            {key: statistics.median(reading[key] for reading in readings) for key in readings[0]}
            for readings in seen
        ]


def durable(bench: Bench) -> None:
    pairs = [
        ("callslip", "callslip, no store", ALONE if runs == 1 else SIDE_BY_SIDE[runs], runs)
        for runs in SIDE_BY_SIDE
    ]
    pairs.append(("LangGraph SqliteSaver", "LangGraph, no saver", 100, 1))
    pairs += [
        ("LangGraph AsyncSqliteSaver", "LangGraph async, no saver", turns, runs)
        for runs, turns in {1: 100, 10: 40, 100: 10}.items()
    ]
    rows = [("fsync", ALONE, 1), ("fdatasync", ALONE, 1), ("raw", ALONE, 1), ("raw pair", ALONE, 1)]
    for kept, free, turns, runs in pairs:
        rows += [(kept, turns, runs), (free, turns, runs)]
    results = dict(zip(rows, bench.medians(rows), strict=True))
    one = results["fdatasync", ALONE, 1]
    sync = one["wall"] / one["turns"]
    full = results["fsync", ALONE, 1]
    print(f"One fdatasync of 4 KB: {sync * 1e3:.2f} ms; ", end="")
    print(f"one fsync: {full['wall'] / full['turns'] * 1e3:.2f} ms.\n")
    print("| what | runs | durable turns/s | ms a turn, in fdatasyncs | syncs a turn |", end="")
    print(" commits a sync | CPU a turn, us | of that for keeping it | CPU a record |")
    print("|---|---|---|---|---|---|---|---|---|")
    labels = {"raw": "sqlite3, a commit a record", "raw pair": "sqlite3, two commits a turn"}
    for name in ("raw", "raw pair"):
        result = results[name, ALONE, 1]
        line(labels[name], 1, result, sync=sync, keeping=result["cpu"])
    for kept, free, turns, runs in pairs:
        result = results[kept, turns, runs]
        cpu = result["cpu"] - results[free, turns, runs]["cpu"]
        line(kept, runs, result, sync=sync, keeping=cpu)


def line(
    name: str,
    runs: int,
    result: dict[str, float],
    *,
    sync: float,
    keeping: float,
) -> None:
    turns = result["turns"]
    cells = [
        name,
        str(runs),
        f"{turns / result['wall']:,.0f}",
        f"{result['wall'] / turns * 1e3:.2f}, {result['wall'] / turns / sync:.2f}",
        f"{result['syncs'] / turns:.2f}",
        f"{result['commits'] / max(result['syncs'], 1):.1f}",
        f"{result['cpu'] / turns * 1e6:,.0f}",
        f"{keeping / turns * 1e6:,.0f}",
        "" if name.startswith("LangGraph") else f"{keeping / turns / RECORDS * 1e6:,.0f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def growth(bench: Bench) -> None:
    print("\n| events in the run | ms a turn | CPU a turn, us |")
    print("|---|---|---|")
    columns = zip(*(bench.process("events") for _ in range(bench.rounds)), strict=True)
    for events, readings in zip(EVENTS, columns, strict=True):
        wall, cpu = (statistics.median(one[key] for one in readings) for key in ("wall", "cpu"))
        print(f"| {events:,} | {wall * 1e3:.2f} | {cpu * 1e6:,.0f} |")
    print(
        "\n| runs in the file | MB | opened in ms | unfinished listed in ms | ms a turn |", end=""
    )
    print(" CPU a turn, us |")
    print("|---|---|---|---|---|---|")
    for runs in RUNS:
        readings = [bench.process("runs", runs) for _ in range(bench.rounds)]
        one = {key: statistics.median(each[key] for each in readings) for key in readings[0]}
        times = " | ".join(f"{one[key] * 1e3:.2f}" for key in ("open", "listed", "wall"))
        print(f"| {runs:,} | {one['size'] / 1e6:,.1f} | {times} | {one['cpu'] * 1e6:,.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        path, kind, *rest = options.measure
        match kind:
            case "work":
                found: Any = measured(rest[0], Path(path), int(rest[1]), int(rest[2]))
            case "events":
                found = along_a_run(Path(path))
            case "runs":
                found = beside_runs(Path(path), int(rest[0]))
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.rounds)
        durable(bench)
        growth(bench)


if __name__ == "__main__":
    main()
