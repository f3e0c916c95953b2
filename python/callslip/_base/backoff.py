"""How long to wait before another attempt: as a server asks, or longer each time.

Everything is read by name, because none of the client libraries need be installed.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping

from callslip._base import _lazy

__all__ = [
    "backoff",
    "headers_of",
    "raised_from",
    "requested_wait",
    "retry_after",
    "safe_field",
]

_CAUSES = 8
"""The most exceptions of a chain that are read."""


def backoff(first: float, number: int, longest: float) -> float:
    """Return the seconds to wait after an attempt that failed.

    They double with each attempt, and up to a half is taken off at random, so that clients that
    failed together do not return together.

    Args:
        first: Seconds after the first attempt.
        number: The number of the attempt, from 1.
        longest: The longest wait in seconds.
    """
    # A larger exponent would be no float any more.
    doubled = first * 2.0 ** min(number - 1, 64)
    return min(doubled, longest) * random.uniform(0.5, 1.0)  # noqa: S311


def requested_wait(error: BaseException) -> float | None:
    """Return the seconds that the server asks to wait; `None` if it does not ask."""
    for one in raised_from(error):
        wait = retry_after(headers_of(one))
        if wait is None:
            wait = _retry_info(safe_field(one, "details"))
        if wait is not None:
            return wait
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that headers ask to wait; `None` if they do not ask.

    Args:
        headers: Headers by name in small letters.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _seconds(text)
    if seconds is not None or text is None:
        return seconds
    try:
        date = _lazy.email_utils.parsedate_to_datetime(text)
        return max(0.0, date.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def headers_of(error: BaseException) -> dict[str, str]:
    """Return the headers of the response that an exception has, with names in small letters."""
    for owner in (safe_field(error, "response"), error):
        headers = safe_field(owner, "headers")
        try:
            items = headers.items()  # type: ignore[attr-defined]
            return {str(name).lower(): str(value) for name, value in items}
        except Exception:  # noqa: BLE001, S112  # there are none
            continue
    return {}


def raised_from(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its direct causes, without exceptions that were only being handled."""
    following: BaseException | None = error
    for _ in range(_CAUSES):
        if following is None:
            return
        yield following
        following = following.__cause__


def safe_field(owner: object, name: str) -> object:
    """Return the field of an object or a dict; `None` if there is none, or reading it fails."""
    try:
        return owner.get(name) if isinstance(owner, Mapping) else getattr(owner, name, None)
    except Exception:  # noqa: BLE001  # the exception's own fields are at fault
        return None


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _retry_info(details: object) -> float | None:
    """Read the `retryDelay` of Google's error details, such as `"17s"`."""
    inner = safe_field(safe_field(details, "error"), "details")
    entries = details if inner is None else inner
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        delay = entry.get("retryDelay") if isinstance(entry, Mapping) else None
        if isinstance(delay, str):
            return _seconds(delay.removesuffix("s"))
    return None
