"""How long runs wait for a worker where not every worker can drive every run.

    python benches/waits.py [--runs 400] [--rate 40] [--rounds 3]

Runs of two agents come in one queue at a steady rate, and two processes work on it. In the first
line both have both agents, in the second each has one of them. In the third each has another
version of one agent, as during a deploy: all runs stop for an approval and go on only where the
tools are those with which they began. A wait is from the submission or the approval to the next
question to the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from callslip import Agent, Run, TicketStore, tool
from callslip.fleet import Fleet
from postgres import Server
from scripted import turn_of

THINKS = 0.02
"""Seconds that a reply takes."""

KINDS = {"one kind": ("ab", "ab"), "two kinds": ("a", "b"), "two versions": ("a1", "a2")}

FINISH = json.dumps(
    {"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": True}
)
PAY = json.dumps({"thought": "", "action": "pay", "args": {"amount": 7}})


async def _answering(messages: list[dict[str, Any]]) -> str:
    await asyncio.sleep(THINKS)
    return FINISH


async def _paying(messages: list[dict[str, Any]]) -> str:
    await asyncio.sleep(THINKS)
    return PAY if turn_of(messages) == 0 else FINISH


@tool(needs_approval=True)
async def pay(amount: int | None) -> str:
    """Pay."""
    return "paid"


@tool(name="pay", needs_approval=True)
async def pay_changed(amount: int | str) -> str:
    """Pay."""
    return "paid"


def agents(kind: str) -> list[Agent[Any]]:
    """The agents of a worker of this kind: `ab` has both, `a1` and `a2` are versions of one."""
    if kind in {"a1", "a2"}:
        return [Agent(_paying, tools=[pay if kind == "a1" else pay_changed], name="a")]
    return [Agent(_answering, name=name) for name in kind]


async def work(url: str, kind: str) -> None:
    with TicketStore(url) as store:
        await Fleet(store, agents(kind)).work(slots=16)


async def until(holds: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(holds):  # noqa: ASYNC110  # another process does it
        await asyncio.sleep(0.05)


def count(store: TicketStore, what: str) -> int:
    return int(store.query(f"SELECT count(*) AS n FROM {what}")[0]["n"])


async def waits(url: str, kinds: tuple[str, str], runs: int, rate: float) -> list[float]:
    """Seconds that each of so many runs waited, of which so many came in a second."""
    words = [sys.executable, __file__, "--work", url, "--kind"]
    # It takes no time that is measured.
    workers = [subprocess.Popen([*words, kind]) for kind in kinds]  # noqa: ASYNC220
    try:
        with TicketStore(url) as store:
            await until(lambda: count(store, "callslip.worker") == len(kinds))
            fleet, stops = Fleet(store), kinds == KINDS["two versions"]
            names = "aa" if stops else "ab"
            began = {}
            for number in range(runs):
                await asyncio.sleep(1 / rate)
                at = time.time()
                began[await fleet.submit(names[number % 2], "go")] = at
            if stops:
                await until(lambda: count(store, "callslip.ticket WHERE parked") == runs)
                for run_id in began:
                    await asyncio.sleep(1 / rate)
                    began[run_id] = time.time()
                    await asyncio.to_thread(store.run(run_id).approve, "T1")
            return [last_asked((await fleet.result(one)).run) - at for one, at in began.items()]
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()


def last_asked(run: Run[Any]) -> float:
    return max(event.at for event in run.log if event.kind == "model_asked")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the wait for a worker that fits.")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--rate", type=float, default=40, help="runs a second")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(given.work, given.kind))
        return
    seconds: dict[str, list[float]] = {name: [] for name in KINDS}
    with Server() as server:
        for _ in range(given.rounds):
            for name, kinds in KINDS.items():
                url = server.new_database()
                seconds[name] += asyncio.run(waits(url, kinds, given.runs, given.rate))
                server.drop_database(url)
    print("| workers | p50, ms | p99, ms | p99, times one kind |")
    print("|---|---|---|---|")
    usual = 0.0
    for name, values in seconds.items():
        values.sort()
        high = values[int(len(values) * 0.99) - 1] * 1000
        usual = usual or high
        middle = statistics.median(values) * 1000
        print(f"| {name} | {middle:.1f} | {high:.1f} | {high / usual:.2f} |")


if __name__ == "__main__":
    main()
