"""Compare callslip with its peers: `python -m comparison`, in the folder `benches`.

A whole run writes docs/comparison.json and, from it alone, docs/comparison.md. A run of some peers
or with `--quick` writes both into .venv/compare. `--take` puts such a run on the page, which says
what was measured later, and what was not.
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
from comparison.kinds import BESIDE, KINDS
from comparison.later import take
from comparison.page import render, with_claims
from comparison.peers import PEERS, Peer
from comparison.processes import LIMIT
from comparison.sizes import QUICK, WHOLE, Sizes


def compare(peers: list[Peer], sizes: Sizes, kinds: list[str], file: Path) -> None:
    """Measure one kind after the other, and write each down: a run that is stopped is continued."""
    for peer in peers:
        prepare(peer)
    full = [peer for peer in peers if peer.has_faults]
    data = json.loads(file.read_text("utf-8")) if file.is_file() else begin(peers, sizes)
    for kind in (one for one in kinds if one not in data["minutes"]):
        since = time.perf_counter()
        for name, found in KINDS[kind](peers if kind in BESIDE else full, sizes).items():
            data["peers"][name][kind] = found
        data["minutes"][kind] = round((time.perf_counter() - since) / 60, 1)
        print(f"{kind}: {data['minutes'][kind]} minutes", file=sys.stderr)
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")


def begin(peers: list[Peer], sizes: Sizes) -> dict[str, Any]:
    """Return the data of a run before anything is measured."""
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "machine": {
            "system": platform.system(),
            "kind": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "limit_s": LIMIT,
        "minutes": {},
        "sizes": sizes.to_json(),
        "peers": {peer.name: row(peer) for peer in peers},
    }


def row(peer: Peer) -> dict[str, Any]:
    """Return what is known of a peer before it is measured."""
    known: dict[str, Any] = {"title": peer.title}
    if not peer.has_faults:
        return known
    is_ours = peer.is_ours
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
    parser.add_argument("--resume", action="store_true", help="continue a run that was stopped")
    parser.add_argument("--render", action="store_true", help="write the page from its data")
    parser.add_argument("--take", action="store_true", help="put a run of some kinds on the page")
    options = parser.parse_args()
    is_whole = not (options.only or options.quick or len(options.kinds) < len(KINDS))
    is_kept = is_whole or options.render or options.take
    folder = ROOT / "docs" if is_kept else CACHE
    data = folder / "comparison.json"
    if options.take:
        page = json.loads(data.read_text("utf-8"))
        rows = {peer.name: row(peer) for peer in PEERS}
        take(page, json.loads((CACHE / "comparison.json").read_text("utf-8")), rows)
        data.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", "utf-8")
    elif not options.render:
        peers = [peer for peer in PEERS if not options.only or peer.name in options.only]
        unfinished = CACHE / ("whole.json" if is_whole else "some.json")
        if not options.resume:
            unfinished.unlink(missing_ok=True)
        compare(peers, QUICK if options.quick else WHOLE, options.kinds, unfinished)
        unfinished.replace(data)
    page = folder / "comparison.md"
    page.write_text(render(json.loads(data.read_text("utf-8"))), "utf-8")
    print(page.relative_to(ROOT), file=sys.stderr)
    if folder == ROOT / "docs":
        readme = ROOT / "README.md"
        text = readme.read_text("utf-8")
        readme.write_text(with_claims(text, json.loads(data.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
