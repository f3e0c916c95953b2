"""What is measured of each peer, from outside: CPU, memory, durable turns, imports, faults."""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.environments import ROOT, installed, python_of
from comparison.peers import Peer
from comparison.processes import LIMIT, Reading, measure, medians, seconds

sys.path.insert(0, str(ROOT / "tests" / "support"))

from faults.shim import build

REPEATED = 10.0
"""Seconds after which a figure is not measured once more."""


@dataclass(frozen=True)
class Sizes:
    """How much is done of each kind."""

    turns: Sequence[int] = (20, 100, 400, 2000)
    agents: Sequence[int] = (1000, 5000)
    durable: Sequence[tuple[int, int]] = ((100, 1), (10, 100))
    """Turns of a run, and runs at once."""
    rounds: int = 3
    imports: int = 9


QUICK = Sizes(turns=(20, 100), agents=(100,), durable=((10, 1), (5, 10)), rounds=1, imports=3)


def loop(peer: Peer, sizes: Sizes) -> dict[str, Reading]:
    """CPU a turn of runs that grow, until one is expected to take longer than the limit."""
    found: dict[str, Reading] = {}
    for turns in sizes.turns:
        wait = expected(turns, {int(size): one for size, one in found.items()})
        if wait > LIMIT:
            found[str(turns)] = {"over": LIMIT}
            continue
        readings: list[Reading] = []
        began = time.perf_counter()
        while len(readings) < sizes.rounds and time.perf_counter() - began < REPEATED:
            readings.append(measure(peer, "loop", turns))
        found[str(turns)] = medians(readings)
    return found


def memory(peer: Peer, sizes: Sizes) -> dict[str, Reading]:
    """KB an agent of many, all alive."""
    found: dict[str, Reading] = {}
    for agents in sizes.agents:
        wait = expected(agents, {int(size): one for size, one in found.items()})
        over = {"over": LIMIT}
        found[str(agents)] = over if wait > LIMIT else measure(peer, "memory", agents)
    return found


def expected(size: int, before: dict[int, Reading]) -> float:
    """Seconds of the next run, as far as those before it tell how it grows."""
    if any("run_s" not in one for one in before.values()):
        return math.inf
    if not before:
        return 0.0
    times = sorted((one, reading["run_s"]) for one, reading in before.items())
    last, took = times[-1]
    exponent = 1.0
    if len(times) > 1:
        earlier, less = times[-2]
        exponent = max(1.0, math.log(took / less) / math.log(last / earlier))
    return float(took * (size / last) ** exponent)


def durable(peer: Peer, sizes: Sizes) -> dict[str, Any] | None:
    """Turns a second that are kept, and what a crash loses; none if the peer keeps nothing."""
    if not peer.durability:
        return None
    found: dict[str, Any] = {}
    with fresh_folder() as folder:
        shim = build(folder)
        for turns, runs in sizes.durable:
            readings = []
            for number in range(sizes.rounds):
                path = folder / f"{turns}-{runs}-{number}"
                path.mkdir()
                watched = {"LD_PRELOAD": str(shim), "CALLSLIP_FAULT_PATH": str(path / FILE)}
                reading = measure(peer, "durable", path, turns, runs, environment=watched)
                readings.append(reading)
                if reading.get("run_s", LIMIT) > REPEATED:
                    break
            found[f"{turns} x {runs}"] = medians(readings)
        crash = folder / "crash"
        crash.mkdir()
        measure(peer, "killed", crash)
        found["crash"] = measure(peer, "resumed", crash)
    return found


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name).resolve()


def imports(peer: Peer, sizes: Sizes) -> dict[str, float]:
    """Milliseconds of the import, and of a process that imports nothing."""
    python = python_of(peer)
    for code in ("pass", peer.imports):
        seconds(python, code)
    times = [
        [seconds(python, code) for code in ("pass", peer.imports)] for _ in range(sizes.imports)
    ]
    bare, full = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    return {"pass_ms": round(bare, 1), "import_ms": round(full, 1)}


def faults(peer: Peer, _: Sizes) -> Reading:
    """What comes of each fault of a model."""
    return measure(peer, "faults", limit=600)


def version() -> str:
    """Return the version of this repository."""
    settings = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    return str(settings["package"]["version"])


def everything(peer: Peer, sizes: Sizes, kinds: Sequence[str]) -> dict[str, Any]:
    """Return all that is measured of a peer."""
    makers = {
        "loop": loop,
        "memory": memory,
        "durable": durable,
        "imports": imports,
        "faults": faults,
    }
    found: dict[str, Any] = {
        "title": peer.title,
        "uses": peer.uses,
        "durability": peer.durability,
        "without": peer.without,
        "counts_syncs": "SQLite" in peer.durability,
    }
    if peer.has_faults:
        ours = peer.name == "callslip"
        found["pinned"] = [] if ours else [name.lower() for name in peer.needs if name != "openai"]
        if ours:
            found["version"] = version()
        found["installed"] = installed(peer)
    for kind, make in makers.items():
        if kind in kinds and (peer.has_faults or kind in {"loop", "memory"}):
            began = time.perf_counter()
            found[kind] = make(peer, sizes)
            print(f"{peer.title}: {kind}, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return found
