"""Runs that are kept: turns a second, and what a killed process loses.

An adapter has `kept(folder, turns, runs, tool)`, which works on runs side by side and keeps each of
their turns, and `resumed(folder, turns, tool)`, which continues the first of them in a new process.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from comparison.task import add

FILE = "runs.sqlite"
TURNS = 20
KILLED_IN = 10
"""The call during which the process is killed, from 0."""


def speed(adapter: Any, folder: Path, turns: int, runs: int) -> dict[str, float]:
    """Turns a second that are kept, with their syncs and CPU."""
    with tempfile.TemporaryDirectory() as other:
        asyncio.run(adapter.kept(Path(other), 2, 1, add))
    shim = ctypes.CDLL(None)
    before = syncs(shim)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(adapter.kept(folder, turns, runs, add))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    every = turns * runs
    return {
        "turns_s": every / wall,
        "cpu_us": cpu / every * 1e6,
        "syncs": (syncs(shim) - before) / every,
        "run_s": wall,
    }


def syncs(shim: ctypes.CDLL) -> int:
    """Return how often the file of the runs was synced; `faults.c` counts it."""
    return int(shim.faults_count(2)) if hasattr(shim, "faults_count") else 0


def killed(adapter: Any, folder: Path) -> None:
    """Work on a run until the process is killed in the middle of a call."""
    asyncio.run(adapter.kept(folder, TURNS, 1, noting(folder, deadly=True)))


def resumed(adapter: Any, folder: Path) -> dict[str, Any]:
    """Continue the run that was killed, and tell how often each call was made in all."""
    error = ""
    try:
        asyncio.run(adapter.resumed(folder, TURNS, noting(folder, deadly=False)))
    except Exception as raised:  # noqa: BLE001
        error = f"{type(raised).__name__}: {raised}"[:200]
    times = Counter(map(int, (folder / "calls").read_text().split()))
    return {
        "again": sorted(call for call, count in times.items() if count > 1),
        "never": [call for call in range(TURNS) if not times[call]],
        "error": error,
    }


def noting(folder: Path, *, deadly: bool) -> Any:
    """Return a tool that notes its calls outside, and may kill its process in one of them."""

    async def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first number.
            b: The second number.
        """
        with (folder / "calls").open("a") as file:
            file.write(f"{a}\n")
        if deadly and a == KILLED_IN:
            os.kill(os.getpid(), signal.SIGKILL)
        return a + b

    return add
