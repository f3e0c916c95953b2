"""The seeds of a local model's requests."""

from __future__ import annotations

import hashlib
import itertools

__all__ = ["Seeds"]

# The largest number of 32 bits tells the server to choose a seed itself.
_SEEDS = 2**32 - 1


class Seeds:
    """Draws a seed for each request of a model, from any thread.

    With one seed for all requests, each reply would begin with the same draws, and all runs would
    fail alike.

    Args:
        seed: The seed of the model.

    Attributes:
        given: The seed of the model.
    """

    def __init__(self, seed: int) -> None:
        self.given = seed
        self._requests = itertools.count()

    def next(self) -> int:
        """Return the seed of the next request."""
        return self.drawn(self.given, next(self._requests))

    @staticmethod
    def drawn(seed: int, number: int) -> int:
        """Return the seed that is drawn from a seed and a number."""
        digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % _SEEDS
