"""Compare callslip with its peers: `python -m comparison`, in the folder `benches`.

A whole run writes docs/comparison.json and, from it alone, docs/comparison.md. A run of some peers
or with `--quick` writes both into .cache/compare: the page always shows one run of all of them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from comparison.environments import CACHE, ROOT, installed, prepare, version
from comparison.kinds import BESIDE, KINDS, QUICK, Sizes
from comparison.page import render
from comparison.peers import PEERS, Peer
from comparison.processes import LIMIT


def compare(peers: list[Peer], sizes: Sizes, kinds: list[str]) -> dict[str, Any]:
    for peer in peers:
        prepare(peer)
    rows = {peer.name: row(peer) for peer in peers}
    full = [peer for peer in peers if peer.has_faults]
    began = time.perf_counter()
    for kind in kinds:
        since = time.perf_counter()
        for name, found in KINDS[kind](peers if kind in BESIDE else full, sizes).items():
            rows[name][kind] = found
        print(f"{kind}: {time.perf_counter() - since:.0f} s", file=sys.stderr)
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "machine": {
            "system": platform.system(),
            "kind": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "limit_s": LIMIT,
        "minutes": round((time.perf_counter() - began) / 60, 1),
        "sizes": {
            "turns": list(sizes.turns),
            "agents": list(sizes.agents),
            "durable": [f"{turns} x {runs}" for turns, runs in sizes.durable],
            "imports": sizes.imports,
        },
        "peers": rows,
    }


def row(peer: Peer) -> dict[str, Any]:
    """Return what is known of a peer before it is measured."""
    known: dict[str, Any] = {"title": peer.title}
    if not peer.has_faults:
        return known
    is_ours = peer.name == "callslip"
    return known | {
        "uses": peer.uses,
        "durability": peer.durability,
        "without": peer.without,
        "counts_syncs": "SQLite" in peer.durability,
        "pinned": [] if is_ours else [name for name in peer.needs if name != "openai"],
        "version": version() if is_ours else "",
        "installed": installed(peer),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=[peer.name for peer in PEERS])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--render", action="store_true", help="write the page from its data")
    options = parser.parse_args()
    is_whole = not (options.only or options.quick or len(options.kinds) < len(KINDS))
    folder = ROOT / "docs" if is_whole else CACHE
    data = folder / "comparison.json"
    if not options.render:
        peers = [peer for peer in PEERS if not options.only or peer.name in options.only]
        found = compare(peers, QUICK if options.quick else Sizes(), options.kinds)
        data.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    page = folder / "comparison.md"
    page.write_text(render(json.loads(data.read_text("utf-8"))), "utf-8")
    print(
        page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page, file=sys.stderr
    )


if __name__ == "__main__":
    main()
