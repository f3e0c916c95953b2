"""What a fleet costs: a shared store beside a file in one run, and what takes how long.

A step is a reply of the model and the call that it asks for, with a model and a tool that take no
time: two commits and five events.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import psycopg

from callslip import Agent, Limits, TicketStore, tool
from callslip.fleet import Fleet, status
from postgres import Server

STEPS = 20


@tool(effect="idempotent")
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(needs_approval=True)
async def pay(amount: int) -> float:
    """Pay."""
    return time.time()


def call(name: str, **args: Any) -> str:
    return json.dumps({"thought": "Next.", "action": name, "args": args})


FINISH = json.dumps(
    {"thought": "Done.", "action": "FINISH", "final_answer": "1", "task_successful": True}
)


def agents() -> list[Agent[Any]]:
    return [
        Agent(_counting, tools=[add], name="steps", limits=Limits(turns=1_000_000, tickets=None)),
        Agent(_paying, tools=[pay], name="payer"),
    ]


def _done(messages: list[dict[str, Any]], task: str) -> tuple[str, int]:
    """Return the task, and how many replies there were after it."""
    at = next(at for at, message in enumerate(messages) if task in message["content"])
    return messages[at]["content"], (len(messages) - at) // 2


async def _counting(messages: list[dict[str, Any]]) -> str:
    task, done = _done(messages, "STEPS-")
    return call("add", a=done, b=1) if done < int(task.split("-")[1].split()[0]) else FINISH


async def _paying(messages: list[dict[str, Any]]) -> str:
    return FINISH if _done(messages, "Pay 7.")[1] else call("pay", amount=7)


async def work(url: str, slots: int, lease: float) -> None:
    with TicketStore(url) as store:
        await Fleet(store, agents(), lease=lease).work(slots=slots)


class Workers:
    """Processes that work."""

    def __init__(self, url: str, count: int, slots: int, lease: float = 30.0) -> None:
        words = [sys.executable, __file__, "--work", url, "--slots", str(slots)]
        self.processes = [subprocess.Popen([*words, "--lease", str(lease)]) for _ in range(count)]
        time.sleep(1.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def quantiles(values: list[float]) -> str:
    values = sorted(values)
    middle, high = statistics.median(values), values[int(len(values) * 0.99) - 1]
    return f"{middle * 1000:.1f} / {high * 1000:.1f} ms"


async def until(holds: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(holds):  # noqa: ASYNC110  # another process does it
        await asyncio.sleep(0.02)


def _is_idle(store: TicketStore) -> bool:
    query = "SELECT count(*) AS n FROM callslip.run WHERE msg IS NOT NULL OR next = 0"
    return bool(store.query(query)[0]["n"] == 0)


def _size(store: TicketStore) -> int:
    return int(store.query("SELECT pg_database_size(current_database()) AS n")[0]["n"])


async def alone(store: TicketStore, runs: int) -> float:
    agent = agents()[0].replace(store=store)
    await agent.run(f"STEPS-{STEPS} go")
    began = time.perf_counter()
    for _ in range(runs):
        await agent.run(f"STEPS-{STEPS} go")
    return (time.perf_counter() - began) / runs / STEPS


async def together(store: TicketStore, runs: int) -> float:
    agent = agents()[0].replace(store=store)
    began = time.perf_counter()
    await asyncio.gather(*(agent.run(f"STEPS-{STEPS} go") for _ in range(runs)))
    return runs * STEPS / (time.perf_counter() - began)


async def by_workers(url: str, count: int, slots: int, runs: int) -> tuple[float, float, float]:
    """Steps a second, and WAL and log bytes a step."""
    with TicketStore(url) as store, Workers(url, count, slots):
        fleet = Fleet(store)
        wal = store.query("SELECT pg_current_wal_lsn()::text AS at")[0]["at"]
        for _ in range(runs):
            await fleet.submit("steps", f"STEPS-{STEPS} go")
        began = time.perf_counter()
        await until(lambda: _is_idle(store))
        seconds = time.perf_counter() - began
        query = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1::pg_lsn)::bigint AS n"
        written = store.query(query, [wal])[0]["n"]
    return runs * STEPS / seconds, written / runs / STEPS, seconds


async def first_calls(url: str, count: int) -> list[float]:
    """Seconds from the submission of a run to the first question to its model."""
    with TicketStore(url) as store, Workers(url, 1, 16):
        fleet, seconds = Fleet(store), []
        for _ in range(count):
            began = time.time()
            run_id = await fleet.submit("steps", "STEPS-0 go")
            result = await fleet.result(run_id)
            asked = next(event for event in result.run.log if event.kind == "model_asked")
            seconds.append(max(0.0, asked.at - began))
        return seconds


async def approvals(url: str, resting: int, count: int) -> tuple[list[float], str]:
    """Seconds from an approval to the call, with so many runs at rest; what those cost."""
    with TicketStore(url) as store, Workers(url, 2, 64) as workers:
        fleet = Fleet(store)
        before = _size(store)
        began = time.perf_counter()
        ids = [await fleet.submit("payer", "Pay 7.") for _ in range(resting)]
        await until(lambda: _is_idle(store))
        parked = time.perf_counter() - began
        size = (_size(store) - before) / resting
        seconds = []
        for run_id in ids[:count]:
            run = store.run(run_id)
            began_at = time.time()
            await asyncio.to_thread(run.approve, "T1")
            result = await fleet.result(run_id)
            seconds.append(float(result.tickets[0].result) - began_at)
        memory = max(_memory(process.pid) for process in workers.processes)
        began = time.perf_counter()
        assert status(store).resting == resting - count
        asked = time.perf_counter() - began
    return seconds, (
        f"parked in {parked:.0f} s, {size / 1024:.1f} KB a run, workers {memory:.0f} MB, "
        f"`status` {asked * 1000:.0f} ms"
    )


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def takeovers(url: str, lease: float, count: int) -> list[float]:
    """Seconds from the death of a worker to the next event of its run."""
    seconds = []
    with TicketStore(url) as store:
        for _ in range(count):
            with Workers(url, 1, 4, lease) as first:
                fleet = Fleet(store)
                run_id = await fleet.submit("steps", "STEPS-100000 go")
                await until(lambda: bool(store.runs(status="running")))
                await asyncio.sleep(0.5)
                with Workers(url, 1, 4, lease):
                    first.processes[0].kill()
                    died = time.time()
                    resumed = (
                        "SELECT at FROM callslip.events WHERE run_id = $1 AND kind = 'noted' "
                        "AND data LIKE '%resumed%'"
                    )
                    while not (rows := store.query(resumed, [run_id])):  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                    seconds.append(rows[0]["at"] - died)
                    store.run(run_id).cancel()
                    await until(lambda: not store.runs(status="running"))
    return seconds


async def watching(url: str, runs: int) -> list[float]:
    """Seconds from an event to the time at which another process is told of it."""
    late: list[float] = []

    async def watch(store: TicketStore, run_id: str) -> None:
        async for event in store.watch(run_id):
            if event.seq > 3:
                late.append(time.time() - event.at)

    with TicketStore(url) as store, Workers(url, 1, 4):
        fleet = Fleet(store)
        for _ in range(runs):
            run_id = await fleet.submit("steps", f"STEPS-{STEPS} go")
            await watch(store, run_id)
    return late


BARE_LOOP = """
import asyncio

async def main():
    while True:
        await asyncio.to_thread(int)
        await asyncio.sleep(1)

asyncio.run(main())
"""


async def idle(url: str, seconds: float) -> tuple[float, float]:
    """Seconds of CPU an hour of a worker without work, and of a loop that calls nothing."""
    bare = await asyncio.create_subprocess_exec(sys.executable, "-c", BARE_LOOP)
    try:
        with TicketStore(url) as store, Workers(url, 1, 64) as workers:
            await until(lambda: bool(status(store).workers))
            await asyncio.sleep(1)
            pids = workers.processes[0].pid, bare.pid
            before = [_cpu(pid) for pid in pids]
            await asyncio.sleep(seconds)
            worker, loop = (
                (_cpu(pid) - cpu) / seconds * 3600 for pid, cpu in zip(pids, before, strict=True)
            )
            return worker, loop
    finally:
        bare.kill()
        await bare.wait()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(options: argparse.Namespace) -> None:
    scale = options.scale
    with Server(fsync=True) as server, tempfile.TemporaryDirectory() as folder:
        new = server.new_database
        print("| what | SQLite, one process | PostgreSQL |\n|---|---|---|")
        with TicketStore(f"{folder}/runs.sqlite") as file, TicketStore(new()) as shared:
            ms = await alone(file, 10 * scale), await alone(shared, 10 * scale)
            print(f"| ms a step, one run | {ms[0] * 1000:.2f} | {ms[1] * 1000:.2f} |")
            rates = await together(file, 64 * scale), await together(shared, 64 * scale)
            print(
                f"| steps a second, {64 * scale} runs at once | {rates[0]:,.0f} | {rates[1]:,.0f} |"
            )

        async def workers(count: int, slots: int) -> str:
            rate, wal, _ = await by_workers(new(), count, slots, 200 * scale)
            return f"{rate:,.0f} ({wal / 1024:.1f} KB of WAL a step)"

        async def rest() -> str:
            seconds, cost = await approvals(new(), options.resting, 50)
            return f"{quantiles(seconds)}; {cost}"

        async def takeover() -> str:
            seconds = await takeovers(new(), 5.0, 3)
            return f"{max(seconds):.1f} s at most of {len(seconds)}"

        async def watch() -> str:
            late = sorted(await watching(new(), 10))
            return f"{late[int(len(late) * 0.95)] * 1000:.1f} ms"

        async def quiet() -> str:
            worker, loop = await idle(new(), 60)
            return (
                f"{worker:.0f} s of CPU an hour; a bare loop of asyncio that calls a thread once a "
                f"second: {loop:.0f} s"
            )

        async def first() -> str:
            return quantiles(await first_calls(new(), 100))

        rows: list[tuple[str, Callable[[], Awaitable[str]]]] = [
            ("steps a second, 1 worker of 64 slots", lambda: workers(1, 64)),
            ("steps a second, 3 workers of 64 slots", lambda: workers(3, 64)),
            ("submit to first question, p50 / p99", first),
            (f"approval to call, {options.resting:,} runs at rest, p50 / p99", rest),
            ("takeover after kill -9, lease 5 s", takeover),
            ("an event in another process, p95", watch),
            ("a worker without work", quiet),
        ]
        for name, row in rows:
            print(f"| {name} | - | {await row()} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npsycopg {psycopg.__version__}, this process {peak:.0f} MB at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--slots", type=int, default=64, help=argparse.SUPPRESS)
    parser.add_argument("--lease", type=float, default=30.0, help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=int, default=3, help="how long it measures")
    parser.add_argument("--resting", type=int, default=10_000, help="runs at rest")
    options = parser.parse_args()
    if options.work:
        asyncio.run(work(options.work, options.slots, options.lease))
    else:
        asyncio.run(measure(options))


if __name__ == "__main__":
    main()
