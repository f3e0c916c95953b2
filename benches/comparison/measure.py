"""What a process measures of one peer, as JSON: `python -m comparison.measure KIND PEER SECONDS …`.

It runs in the environment of the peer, which has nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from comparison import durable, fault_runs
from comparison.task import Gate, Run, resident, warm

LONG_ENOUGH = 0.3
"""Seconds that short runs are repeated for."""


def adapter(peer: str) -> Any:
    return importlib.import_module(f"comparison.peers.{peer}")


def loop(peer: str, turns: int) -> dict[str, float]:
    """Microseconds of CPU and wall a turn."""
    counter = adapter(peer).counter
    warm(counter, 3)
    return asyncio.run(alone(counter(turns, None), turns))


async def alone(run: Run, turns: int) -> dict[str, float]:
    gc.collect()
    times = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while True:
        assert await run() == "ok"
        times += 1
        taken = time.perf_counter() - wall
        if taken >= LONG_ENOUGH:
            spent = time.process_time() - cpu
            return {
                "cpu_us": spent / times / turns * 1e6,
                "wall_us": taken / times / turns * 1e6,
                "run_s": spent / times,
            }


def memory(peer: str, agents: int) -> dict[str, float]:
    """KB an agent while all of them wait for their last reply."""
    gate: Gate | None = None

    async def wait(turn: int) -> None:
        if gate is not None:
            await gate(turn)

    async def all_at_once() -> None:
        assert set(await asyncio.gather(*(run() for _ in range(agents)))) == {"ok"}

    run = warm(adapter(peer).counter, CALLS, wait)
    before = resident()
    gate = Gate(CALLS, agents)
    began = time.process_time()
    asyncio.run(all_at_once())
    return {
        "kb": (gate.resident - before) / 1024 / agents,
        "mb": gate.resident / 2**20,
        "run_s": time.process_time() - began,
    }


CALLS = 2
"""Calls that each agent has made when the memory is looked at."""


def main() -> None:
    kind, peer, limit, *rest = sys.argv[1:]
    # Of CPU, so that others on the machine make nothing take too long.
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
    found: Any
    match kind:
        case "loop":
            found = loop(peer, int(rest[0]))
        case "memory":
            found = memory(peer, int(rest[0]))
        case "durable":
            found = durable.speed(adapter(peer), Path(rest[0]), int(rest[1]), int(rest[2]))
        case "killed":
            durable.killed(adapter(peer), Path(rest[0]))
            raise RuntimeError("expected the process to be killed")
        case "resumed":
            found = durable.resumed(adapter(peer), Path(rest[0]))
        case "faults":
            found = fault_runs.all_of(adapter(peer), rest)
        case "calls":
            found = fault_runs.of_calls(adapter(peer), rest)
        case _:
            raise ValueError(kind)
    sys.stdout.flush()
    os.write(RESULTS, json.dumps(found).encode() + b"\n")
    # Threads of a peer that still wait keep nobody from ending.
    os._exit(0)


# What a peer prints does not mix with the results.
RESULTS = os.dup(1)
os.dup2(2, 1)

if __name__ == "__main__":
    main()
