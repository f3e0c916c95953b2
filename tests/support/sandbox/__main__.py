"""Runs hostile scripts and says which of them do what they should not.

PYTHONPATH=tests/support python -m sandbox isolated restricted unconfined [--only ID …] [--user]
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from sandbox.cases import OWN, load
from sandbox.hostile import User, ordinary_user, run_cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="sandbox", description=__doc__)
    parser.add_argument("profiles", nargs="+")
    parser.add_argument("--only", nargs="+", default=[], help="ids, or beginnings of ids")
    parser.add_argument("--user", action="store_true", help="as an ordinary user")
    parser.add_argument("--cases", type=Path, default=OWN, help="a file of cases")
    parser.add_argument("--verbose", action="store_true", help="say what came of each")
    options = parser.parse_args()
    cases = load(options.cases)
    if options.only:
        cases = [case for case in cases if case.id.startswith(tuple(options.only))]
    wrong = 0
    with ordinary_user() if options.user else nullcontext(User()) as user:
        for profile in options.profiles:
            began = time.monotonic()
            answers = run_cases(cases, profile, user)
            for name, answer in sorted(answers.items()):
                if options.verbose:
                    print(name, answer)
                for problem in answer["wrong"]:
                    print(f"{profile}: {name}: {problem}")
            failed = sum(bool(answer["wrong"]) for answer in answers.values())
            seconds = time.monotonic() - began
            print(f"{profile}: {len(answers)} cases, {failed} fail, {seconds:.0f} s")
            wrong += failed
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
