"""Models that rest after failures in a row, so that an outage costs its tries once."""

from __future__ import annotations

import random
import threading
import time
from weakref import WeakSet

from callslip._base.backoff import requested_wait
from callslip._base.failure import message_of, one_line
from callslip._base.redaction import redact_likely_secrets
from callslip._threads.forks import after_in_child
from callslip.models._retry_rules import is_of_request

__all__ = ["Rest"]

_LONGEST = 600.0
_JITTER = 1.1

_now = time.monotonic


class Rest:
    """Whether one model is asked, for all runs and threads that share it.

    Args:
        after: Failures in a row after which it rests.
        seconds: Seconds of the first rest, doubled with each further one; 0 for no rests.

    Attributes:
        until: The time until which it rests, by the monotonic clock.
        words: What is logged for a request that is not made.
    """

    def __init__(self, after: int, seconds: float) -> None:
        self._after = after
        self._seconds = seconds
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """Forget all failures."""
        self._lock = threading.Lock()
        self._failures = self._rests = 0
        self._is_probed = False
        self.until: float = 0.0
        self.words: str = ""

    def take(self) -> bool | None:
        """Whether the model may be asked now; `None` if it may, and the request tries it.

        After a rest one request tries the model. It ends with `succeeded`, `failed` or `release`.
        """
        with self._lock:
            if self._failures < self._after or not self._seconds:
                return True
            if self._is_probed or _now() < self.until:
                return False
            self._is_probed = True
            return None

    def succeeded(self) -> None:
        """Record a reply."""
        with self._lock:
            self._failures = self._rests = 0
            self._is_probed = False

    def release(self) -> None:
        """Record that the request that was to try the model was given up."""
        with self._lock:
            self._is_probed = False

    def failed(self, error: Exception, *, is_probe: bool) -> None:
        """Record a failure. One of the request itself shows that the service works.

        Args:
            error: The failure.
            is_probe: Whether the request was to try the model.
        """
        if is_of_request(error):
            self.succeeded()
            return
        with self._lock:
            self._failures += 1
            self._is_probed = self._is_probed and not is_probe
            if self._failures < self._after:
                return
            # Other attempts of the same outage make its rest no longer.
            if is_probe or self._failures == self._after:
                self._rests += 1
            seconds = requested_wait(error)
            if seconds is None:
                seconds = self._seconds * 2.0 ** min(self._rests - 1, 32)
                seconds *= random.uniform(1.0, _JITTER)  # noqa: S311
            self.until = _now() + min(seconds, _LONGEST)
            told = one_line(redact_likely_secrets(message_of(error)))
            self.words = f"resting after {self._failures} failures: {type(error).__name__}: {told}"


def _reset_all() -> None:
    for rest in _all:
        rest.reset()


_all: WeakSet[Rest] = WeakSet()
after_in_child(_reset_all)
