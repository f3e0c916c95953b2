"""Agents beside those of other frameworks: the loop, many agents at once, imports, as Markdown.

    python benches/frameworks.py [--rounds 5] [--only loop many import]

All do the same: the model asks for one call of a trivial tool a turn, then finishes. Each
measurement is a process of its own. Rounds go through all rows in turn; the median is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from agent_peers import PEERS, Gate, Run, resident, warm  # noqa: E402

LENGTHS = (20, 100, 400, 2000)
LONG_ENOUGH = 0.3
"""Seconds that short runs are repeated for."""
BUDGET = 60.0
"""Seconds that one run may take; one that is expected to take longer is left out."""
AGAIN = 5.0
"""The same in all rounds but the first."""
MANY, FEWER = 5000, 200
TURNS = 5
DELAY = 0.1
IMPORTS = 5
DISTRIBUTIONS = ("pydantic-ai-slim", "langgraph", "langgraph-prebuilt", "openai-agents")

Reading = dict[str, float]


# What a process measures.
def loop(name: str, budget: float) -> list[Reading | None]:
    """CPU and wall a turn of runs that grow, as far as the budget lets them."""
    make, _ = PEERS[name]
    warm(make(3, None))
    found: list[Reading | None] = []
    walls: list[float] = []
    for place, turns in enumerate(LENGTHS):
        if expected(walls, place) > budget:
            found.append(None)
            continue
        reading = asyncio.run(alone(make(turns, None)))
        walls.append(reading["wall"])
        found.append({key: value / turns * 1e6 for key, value in reading.items()})
    return found


def expected(walls: list[float], place: int) -> float:
    """Seconds of the next run, as far as those before it tell how it grows."""
    if place > len(walls):
        return math.inf
    if place < 2:
        return 0.0
    before, last = walls[-2:]
    exponent = math.log(last / before) / math.log(LENGTHS[place - 1] / LENGTHS[place - 2])
    growth: float = (LENGTHS[place] / LENGTHS[place - 1]) ** max(1.0, exponent)
    return last * growth


async def alone(run: Run) -> Reading:
    gc.collect()
    times = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while True:
        assert await run() == "ok"
        times += 1
        taken = time.perf_counter() - wall
        if taken >= LONG_ENOUGH:
            return {"wall": taken / times, "cpu": (time.process_time() - cpu) / times}


async def all_at_once(run: Run, agents: int) -> None:
    assert set(await asyncio.gather(*(run() for _ in range(agents)))) == {"ok"}


def together(name: str, agents: int) -> Reading:
    """Wall, CPU and the peak of the memory of agents side by side."""

    async def wait(_: int) -> None:
        await asyncio.sleep(DELAY)

    run = PEERS[name][0](TURNS, wait)
    warm(run)
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(all_at_once(run, agents))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {"wall": wall, "cpu": cpu, "peak": int(status["VmHWM"].split()[0]) / 1024}


def memory(name: str, agents: int) -> Reading:
    """KB an agent while all of them wait for their last reply."""
    gate: Gate | None = None

    async def wait(turn: int) -> None:
        await asyncio.sleep(DELAY)
        if gate is not None:
            await gate(turn)

    run = PEERS[name][0](TURNS, wait)
    warm(run)
    before = resident()
    gate = Gate(TURNS, agents)
    asyncio.run(all_at_once(run, agents))
    return {"kb": (gate.resident - before) / 1024 / agents}


# Processes that import nothing but what they measure.
IMPORT = """
import time
began = time.perf_counter()
{statement}
taken = time.perf_counter() - began
print(taken * 1e3, int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20)
"""
FIRST = """
import sys, time
began = time.perf_counter()
sys.path.insert(0, {folder!r})
import agent_peers
async def first():
    return await agent_peers.PEERS[{name!r}][0](1, None)()
assert agent_peers.asyncio.run(first()) == "ok"
print((time.perf_counter() - began) * 1e3, agent_peers.resident() / 2**20)
"""


# What is printed of it.
def process(*arguments: object) -> str:
    quiet = {"LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **quiet}, stdout=subprocess.PIPE, check=True, timeout=600
    )
    return done.stdout.decode()


def measure(*arguments: object) -> Any:
    return json.loads(process(HERE / "frameworks.py", "--measure", *arguments))


def best(code: str) -> str:
    """Milliseconds and megabytes that this code prints, as two cells."""
    seen = [process("-c", code).split() for _ in range(IMPORTS)]
    return " | ".join(f"{min(map(float, column)):,.0f}" for column in zip(*seen, strict=True))


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def header(*cells: object) -> None:
    row(*cells)
    print("|" + "---|" * len(cells), flush=True)


def medians(readings: Iterable[Reading]) -> Reading:
    every = list(readings)
    return {key: statistics.median(one[key] for one in every) for key in every[0]}


def beside(value: float, base: float) -> str:
    """A figure with its ratio to the bare loop."""
    shown = f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
    ratio = value / base
    return f"{shown} ({ratio:.2f})" if ratio < 100 else f"{shown} ({ratio:,.0f})"


def print_loop(rounds: int) -> None:
    columns: dict[str, list[list[Reading | None]]] = {name: [] for name in PEERS}
    for number in range(rounds):
        for name, seen in columns.items():
            seen.append(measure("loop", name, AGAIN if number else BUDGET))
    found = {
        name: [
            medians(one for one in readings if one is not None) if readings[0] else None
            for readings in zip(*seen, strict=True)
        ]
        for name, seen in columns.items()
    }
    for kind in ("cpu", "wall"):
        word = {"cpu": "CPU", "wall": "wall time"}[kind]
        print(f"\nMicroseconds of {word} a turn (times the bare loop); runs of so many turns:\n")
        header("", *(f"{turns:,}" for turns in LENGTHS))
        for name, readings in found.items():
            cells = [
                beside(one[kind], base[kind]) if one and base else "-"
                for one, base in zip(readings, found["bare loop"], strict=True)
            ]
            row(name, *cells)
    print(f"\n-: more than {BUDGET:.0f} s are expected of one run, and it is not made. ", end="")
    print(f"Runs of which more than {AGAIN:.0f} s are expected are made once, not in each round.")


def print_many(rounds: int) -> None:
    rows = [(name, MANY) for name in ("bare loop", "callslip")]
    rows += [(name, FEWER) for name in PEERS]
    seen: dict[tuple[str, int], list[Reading]] = {key: [] for key in rows}
    for _ in range(rounds):
        for key, readings in seen.items():
            readings.append({**measure("together", *key), **measure("memory", *key)})
    found = {key: medians(readings) for key, readings in seen.items()}
    print(
        f"\nAgents of {TURNS} turns at once, {DELAY * 1e3:.0f} ms a reply (times the bare loop):\n"
    )
    header(
        "",
        "agents",
        "wall, s",
        "CPU, s",
        "CPU an agent, us",
        "peak RSS, MB",
        "KB an agent, all alive",
    )
    for (name, agents), one in found.items():
        base = found["bare loop", agents]
        row(
            name,
            f"{agents:,}",
            f"{one['wall']:.2f} ({one['wall'] / base['wall']:.2f})",
            f"{one['cpu']:.3f} ({one['cpu'] / base['cpu']:.2f})",
            f"{one['cpu'] / agents * 1e6:,.0f}",
            f"{one['peak']:,.0f}",
            beside(one["kb"], base["kb"]),
        )


def print_imports() -> None:
    print(f"\nThe best of {IMPORTS}; the memory is the whole process's, the interpreter's too:\n")
    header("", "import, ms", "RSS, MB", "import, agent and first run, ms", "RSS then, MB")
    for name, (_, statement) in PEERS.items():
        label = f"{name} (asyncio, json)" if name == "bare loop" else name
        first = FIRST.format(folder=str(HERE), name=name)
        row(label, best(IMPORT.format(statement=statement)), best(first))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=("loop", "many", "import"))
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        kind, name, *rest = options.measure
        match kind:
            case "loop":
                found: Any = loop(name, float(rest[0]))
            case "together":
                found = together(name, int(rest[0]))
            case "memory":
                found = memory(name, int(rest[0]))
        print(json.dumps(found))
        return
    versions = (f"{name} {importlib.metadata.version(name)}" for name in DISTRIBUTIONS)
    print(f"Python {platform.python_version()}, {', '.join(versions)}.")
    if "loop" in options.only:
        print_loop(options.rounds)
    if "many" in options.only:
        print_many(options.rounds)
    if "import" in options.only:
        print_imports()


if __name__ == "__main__":
    main()
