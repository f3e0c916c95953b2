"""Retries of a model after transient failures."""

from __future__ import annotations

from dataclasses import replace

from callslip._base.backoff import backoff, requested_wait
from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_seconds, check_whole
from callslip.models._attempt import Attempt, Attempts
from callslip.models._retry_rules import is_retriable
from callslip.models._wrapper import Wrapper

__all__ = ["Retrying"]


@knows_names_of_class(
    {
        "max_retries": "tries=…",
        "retries": "tries=…",
        "attempts": "tries=…",
        "stop_after_attempt": "tries=…",
    }
)
class Retrying(Wrapper):
    """Retries a model after transient failures.

    These failures are retried: no connection, a timeout, the statuses 408, 409, 424, 425, 429 and
    500 or higher, errors that a server reports in a stream (`overloaded_error`, `rate_limit_error`,
    …), empty replies, and streams that break off, even without an exception. Refusals, content
    filters, full contexts, an exhausted quota and all other statuses are not retried. A server's
    header `x-should-retry` takes precedence. Once a call of the reply has started, the request is
    not retried.

    Each failed attempt is an event of the run (`model_attempt_failed`). Before the next attempt the
    run waits as long as the server asks (`Retry-After`, `retry-after-ms`, Google's `RetryInfo`), or
    with exponential backoff from `backoff` seconds and up to 50 % jitter. It never waits longer
    than `max_wait`.

    The retries of OpenAI's and Anthropic's clients are turned off, so that attempts do not
    multiply.

    Args:
        model: Any model.
        tries: The largest number of attempts at one reply, 1 or more. Default: 4.
        timeout: Seconds for one attempt: for a whole reply, or for the first piece of a stream and
            then for each next piece. An abandoned blocking call continues in its thread.
            Default: `None`, no limit but the client's own.
        backoff: Seconds before the second attempt, 0 or more. Default: 0.5.
        max_wait: The longest wait in seconds, 0 or more. Default: 60.

    Raises:
        UsageError: The model cannot be called, or an option is out of its range.
    """

    def __init__(
        self,
        model: object,
        *,
        tries: int = 4,
        timeout: float | None = None,
        backoff: float = 0.5,
        max_wait: float = 60.0,
    ) -> None:
        check_whole("tries", tries, 1)
        check_seconds("timeout", timeout, zero=False, none="no limit")
        check_seconds("backoff", backoff)
        check_seconds("max_wait", max_wait)
        super().__init__(model)
        self._calls = tuple(call.without_retries() for call in self._calls)
        self._tries = tries
        self._timeout = timeout
        self._backoff = backoff
        self._max_wait = max_wait

    def _attempts(self, attempt: Attempt) -> Attempts:
        """Yield attempts until one succeeds."""
        seconds = [one for one in (attempt.timeout, self._timeout) if one is not None]
        timeout = min(seconds, default=None)
        attempt = replace(attempt, timeout=timeout, is_retried=True)
        for number in range(1, self._tries + 1):
            try:
                yield from self._calls[0].attempts(attempt)
            except Exception as error:
                if number == self._tries or not is_retriable(error):
                    raise
                attempt = replace(attempt, wait=self._wait(error, number))
            else:
                return

    def _wait(self, error: Exception, number: int) -> float:
        asked = requested_wait(error)
        if asked is None:
            asked = backoff(self._backoff, number, self._max_wait)
        return min(asked, self._max_wait)

    def __repr__(self) -> str:
        return f"Retrying({self._inner!r}, tries={self._tries}, timeout={self._timeout})"
