"""Which failed calls the runtime makes again, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from callslip._base.failure import is_transient, log_failure, unwrap_group
from callslip._base.options import check_whole
from callslip.errors import UsageError

__all__ = ["RETRIES", "RetryOn", "RetryRule", "retries_by_effect"]

RetryOn: TypeAlias = (
    "type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool] | None"
)
"""The failures after which a call is made again: types of exceptions, or a function of one."""

RETRIES = 2
"""Further attempts at a call that may be repeated."""


def retries_by_effect(effect: str, *, readonly: bool, most: int = RETRIES) -> int:
    """Return how many further attempts a call gets: `most` if it may be repeated, else 0."""
    return most if readonly or effect != "once" else 0


class RetryRule:
    """The options `retries` and `retry_on` of a tool.

    Args:
        retries: How many further attempts a call gets; `None` if that depends on the effect.
        retry_on: The failures to retry; `None` for transient failures.

    Attributes:
        retries: As the argument.
        retry_on: As the argument.

    Raises:
        UsageError: An option is out of range.
    """

    __slots__ = ("retries", "retry_on")

    def __init__(self, retries: int | None, retry_on: RetryOn) -> None:
        if retries is not None:
            check_whole("retries", retries)
        _check_retry_on(retry_on)
        self.retries: int | None = retries
        self.retry_on: Any = retry_on

    def count(self, effect: str, *, readonly: bool) -> int:
        """Return how many further attempts a call gets."""
        return (
            retries_by_effect(effect, readonly=readonly) if self.retries is None else self.retries
        )

    def applies_to(self, name: str, error: Exception) -> bool:
        """Whether a failure is followed by another attempt.

        Args:
            name: The name of the tool, for the log.
            error: The exception of the call.
        """
        signal = unwrap_group(error)
        if getattr(signal, "_is_final", False):
            return False
        if self.retry_on is None:
            return is_transient(error)
        if isinstance(self.retry_on, (type, tuple)):
            return isinstance(signal, self.retry_on)
        try:
            return bool(self.retry_on(signal))
        except Exception as fault:  # noqa: BLE001  # the call has failed in any case
            log_failure(name, fault)
            return False


def _check_retry_on(retry_on: object) -> None:
    if retry_on is None:
        return
    types = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if types and all(isinstance(one, type) and issubclass(one, Exception) for one in types):
        return
    if isinstance(retry_on, (type, tuple)) or not callable(retry_on):
        raise UsageError(
            "expected retry_on to be an exception type, a tuple of these, or a function of the "
            f"exception: got {retry_on!r}"
        )
