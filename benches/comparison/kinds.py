"""What is measured of the peers, from outside: CPU, memory, durable turns, imports, faults.

Rounds go through all peers in turn, so that what changes on the machine meets all of them.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.environments import ROOT, python_of
from comparison.peers import Peer
from comparison.processes import LIMIT, Reading, cpu_of, measure, medians
from comparison.sizes import Sizes

sys.path.insert(0, str(ROOT / "tests" / "support"))

from faults.shim import build

REPEATED = 5.0
"""Seconds of CPU of a run that is not made once more."""

Found = dict[str, dict[str, Any]]
"""What was measured, by peer and size."""


def loop(peers: Sequence[Peer], sizes: Sizes) -> Found:
    """CPU a turn of runs that grow, until one is expected to take longer than the limit."""
    return growing(peers, sizes.turns, sizes.rounds, lambda peer, size: measure(peer, "loop", size))


def memory(peers: Sequence[Peer], sizes: Sizes) -> Found:
    """KB an agent of many, all alive."""
    return growing(peers, sizes.agents, 1, lambda peer, size: measure(peer, "memory", size))


def growing(
    peers: Sequence[Peer], sizes: Sequence[int], rounds: int, make: Callable[[Peer, int], Reading]
) -> Found:
    found: Found = {peer.name: {} for peer in peers}
    for size in sizes:
        readings: dict[str, list[Reading]] = {}
        for _ in range(rounds):
            for peer in peers:
                seen = readings.setdefault(peer.name, [])
                if not seen and expected(size, found[peer.name]) > LIMIT:
                    seen.append({"over": LIMIT})
                elif not seen or seen[-1].get("run_s", LIMIT) < REPEATED:
                    seen.append(make(peer, size))
        for name, seen in readings.items():
            found[name][str(size)] = medians(seen)
    return found


def expected(size: int, before: dict[str, Reading]) -> float:
    """Seconds of the next run, as far as those before it tell how it grows."""
    if any("run_s" not in one for one in before.values()):
        return math.inf
    times = [(int(one), float(reading["run_s"])) for one, reading in before.items()]
    if not times:
        return 0.0
    last, took = times[-1]
    exponent = 1.0
    if len(times) > 1:
        earlier, less = times[-2]
        exponent = max(1.0, math.log(took / less) / math.log(last / earlier))
    return float(took * (size / last) ** exponent)


def durable(peers: Sequence[Peer], sizes: Sizes) -> Found:
    """Turns a second that are kept, and what a crash loses; nothing if a peer keeps none."""
    kept = [peer for peer in peers if peer.durability]
    found: Found = {peer.name: {} for peer in peers}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shim = build(folder)
        for turns, runs in sizes.durable:
            readings: dict[str, list[Reading]] = {peer.name: [] for peer in kept}
            for number in range(sizes.rounds):
                for peer in kept:
                    if number and readings[peer.name][-1].get("run_s", LIMIT) > REPEATED:
                        continue
                    path = folder / f"{peer.name}-{turns}-{runs}-{number}"
                    path.mkdir()
                    watched = {"LD_PRELOAD": str(shim), "CALLSLIP_FAULT_PATH": str(path / FILE)}
                    one = measure(peer, "durable", path, turns, runs, environment=watched)
                    readings[peer.name].append(one)
            for peer in kept:
                found[peer.name][f"{turns} x {runs}"] = medians(readings[peer.name])
        for peer in kept:
            crash = folder / f"{peer.name}-crash"
            crash.mkdir()
            measure(peer, "killed", crash)
            found[peer.name]["crash"] = measure(peer, "resumed", crash)
    return found


def imports(peers: Sequence[Peer], sizes: Sizes) -> Found:
    """Milliseconds of CPU of the import, without those of a process that imports nothing."""
    seen: dict[str, list[Reading]] = {peer.name: [] for peer in peers}
    # The first round is not counted: it compiles, and reads from the disk.
    for number in range(sizes.imports + 1):
        for peer in peers:
            bare, full = (cpu_of(python_of(peer), code) for code in ("pass", peer.imports))
            if number:
                seen[peer.name].append({"pass_ms": bare * 1e3, "import_ms": full * 1e3})
    return {name: medians(readings) for name, readings in seen.items()}


def faults(peers: Sequence[Peer], _: Sizes) -> Found:
    """What comes of each fault of a model."""
    return {peer.name: measure(peer, "faults") for peer in peers}


def calls(peers: Sequence[Peer], _: Sizes) -> Found:
    """What comes of each fault of a tool call, with a strict service, by row of the page."""
    return {peer.name: measure(peer, "calls") for peer in peers}


KINDS: dict[str, Callable[[Sequence[Peer], Sizes], Found]] = {
    "faults": faults,
    "calls": calls,
    "loop": loop,
    "memory": memory,
    "durable": durable,
    "imports": imports,
}
BESIDE = ("loop", "memory")
"""The kinds that further rows of a peer, and the loop by hand, are measured in."""
