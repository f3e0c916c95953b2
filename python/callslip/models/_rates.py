"""Rates of requests and tokens, for threads and event loops alike."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from weakref import WeakSet

from callslip._base.options import check_number
from callslip._threads.forks import after_in_child

__all__ = ["Rates", "Reservation"]

_CHARACTERS = 4.0
"""Characters in a token, until a reply has shown their real number."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The share of one request.

    Attributes:
        wait: Seconds to wait before the request.
        characters: Characters of the messages.
        tokens: The estimated tokens of the messages and the reply.
    """

    wait: float
    characters: int
    tokens: float


class Rates:
    """Keeps requests and tokens within amounts a minute.

    Each amount is a bucket that fills evenly and holds one minute's worth. A request takes its
    share at once and waits until the bucket would have it, so requests are served in the order in
    which they come. Its tokens are an estimate, which the reported usage replaces.

    Args:
        per_minute: Requests a minute; `None` for no limit.
        tokens_per_minute: Input and output tokens a minute; `None` for no limit.

    Raises:
        UsageError: An amount is not a number above 0.
    """

    def __init__(self, per_minute: float | None, tokens_per_minute: float | None) -> None:
        for name, amount in (
            ("per_minute", per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            check_number(name, amount, zero=False, none="no limit")
        self._requests = None if per_minute is None else _Bucket(per_minute)
        self._tokens = None if tokens_per_minute is None else _Bucket(tokens_per_minute)
        self._characters = _CHARACTERS
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """Make a new lock: in a forked child another thread may have held it."""
        self._lock = threading.Lock()

    def reserve(self, characters: int, now: float | None = None) -> Reservation:
        """Take the share of one request.

        Args:
            characters: Characters of its messages.
            now: Seconds of a clock that only moves forward. Default: the system's.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            tokens = characters / self._characters
            waits = [0.0]
            if self._requests is not None:
                waits.append(self._requests.take(1, now))
            if self._tokens is not None:
                waits.append(self._tokens.take(tokens, now))
        return Reservation(max(waits), characters, tokens)

    def settle(self, reservation: Reservation, tokens: float) -> None:
        """Replace the estimate by the tokens that the client has reported."""
        if tokens <= 0:
            return
        with self._lock:
            if self._tokens is not None:
                self._tokens.level += reservation.tokens - tokens
            if reservation.characters:
                self._characters = reservation.characters / tokens

    def give_back(self, reservation: Reservation) -> None:
        """Return the share of a request that was not made."""
        with self._lock:
            if self._requests is not None:
                self._requests.level += 1
            if self._tokens is not None:
                self._tokens.level += reservation.tokens


class _Bucket:
    """An amount that fills evenly. Below zero it is owed to requests that wait.

    Attributes:
        level: What is left of the amount.
    """

    __slots__ = ("_at", "_capacity", "level")

    def __init__(self, per_minute: float) -> None:
        self._capacity = self.level = float(per_minute)
        self._at = -math.inf

    def take(self, amount: float, now: float) -> float:
        """Take an amount. Returns the seconds until it is there."""
        filled = max(0.0, now - self._at) * self._capacity / 60
        self.level = min(self._capacity, self.level + filled) - amount
        self._at = max(self._at, now)
        return max(0.0, -self.level * 60 / self._capacity)


def _reset_all() -> None:
    for rates in _all:
        rates.reset()


_all: WeakSet[Rates] = WeakSet()
after_in_child(_reset_all)
