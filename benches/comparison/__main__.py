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

from comparison.environments import CACHE, ROOT, prepare
from comparison.kinds import QUICK, Sizes, everything
from comparison.page import render
from comparison.peers import PEERS, Peer
from comparison.processes import LIMIT

KINDS = ("imports", "loop", "memory", "durable", "faults")


def compare(peers: list[Peer], sizes: Sizes, kinds: list[str]) -> dict[str, Any]:
    for peer in peers:
        prepare(peer)
    began = time.perf_counter()
    found = {peer.name: everything(peer, sizes, kinds) for peer in peers}
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
        "peers": found,
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
