"""`make fleet-points`: processes die or freeze between any two messages to the database."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from fleets.judge import Wrong
from fleets.points import LIVES, Place, every_point
from postgres import Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="fleets.all_points", description=__doc__)
    parser.add_argument("lives", nargs="*", default=sorted(LIVES), help="default all")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--sample", type=int, help="how many points of each; default all")
    parser.add_argument("--lanes", type=int, default=6, help="how many processes at once")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    for name in options.lives:
        began = time.monotonic()

        def tell(text: str, name: str = name, began: float = began) -> None:
            print(f"\r{name}: {text}, {time.monotonic() - began:.0f} s", end="", flush=True)

        with tempfile.TemporaryDirectory() as folder, Server() as server:
            place = Place(server.new_database(), Path(folder))
            trying = every_point(
                place, LIVES[name], lanes=options.lanes, sample=options.sample, seed=options.seed,
                tell=tell,
            )  # fmt: skip
            try:
                seen = asyncio.run(trying)
            except Wrong as wrong:
                print(f"\n{wrong}\nseed {options.seed}", file=sys.stderr)
                return 1
            finally:
                place.close()
        print()
        for what, count in sorted(seen.items()):
            print(f"{count:>8}  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
