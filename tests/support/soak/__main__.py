"""`make soak SECONDS=3600`: mixed runs in one process for so long, and what became of it."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from soak.checks import Wrong
from soak.soak import Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{text}, {time.monotonic() - began:.0f} s", flush=True)

    with tempfile.TemporaryDirectory(prefix="callslip-soak-") as folder:
        soak = Soak(Path(folder), options.seed, tell)
        try:
            seen = soak.run(options.seconds)
        except Wrong as wrong:
            print(f"{wrong}\nseed {options.seed}", file=sys.stderr)
            for name, count in sorted(soak.seen.items()):
                print(f"{count:>8}  {name}", file=sys.stderr)
            return 1
    for name, count in sorted(seen.items()):
        print(f"{count:>8}  {name}")
    print(f"\nholds after {seen['rounds']} rounds in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
