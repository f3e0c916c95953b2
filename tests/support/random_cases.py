"""Random cases: the same ones each time, unless `make seeds N=…` asks for new ones, and more."""

import os

USUAL = 2000
"""What `CALLSLIP_CASES` is where nobody says it: each test tries as many as its source names."""

SEED = int(os.environ.get("PROPTEST_RNG_SEED") or 7)


def cases(usual):
    """Return how many cases a test tries that tries this many where nobody asks for more."""
    asked = int(os.environ.get("CALLSLIP_CASES") or USUAL)
    return max(1, -(-usual * asked // USUAL))


def seeds(usual):
    """Return the seeds of a test that tries this many where nobody asks for more."""
    first = SEED - 7
    return range(first, first + cases(usual))
