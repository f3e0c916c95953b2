"""`make crash-test N=300`: kills that many processes at work, and says what that showed."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from crash.judge import Wrong
from crash.loop import CrashTest


def main() -> int:
    parser = argparse.ArgumentParser(prog="crash", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"\r{text}, {time.monotonic() - began:.0f} s", end="", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="callslip-crash-"))
    test = CrashTest(folder, options.seed, tell)
    try:
        seen = test.run(options.kills)
    except Wrong as wrong:
        print(f"\n{wrong}\nseed {options.seed}, the files are in {folder}", file=sys.stderr)
        return 1
    print()
    for name, count in sorted(seen.items()):
        print(f"{count:>8}  {name}")
    print(f"\nholds after {seen['kills']} kills in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
