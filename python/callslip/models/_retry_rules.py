"""Whether a failed request is worth another one, and how long to wait before it.

Everything is read by name, because none of the client libraries need be installed: status codes,
codes and types of errors, headers, and names of classes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

from callslip._failure import is_transient
from callslip.errors import CallslipError, ContextFull, ModelError, ModelRefused
from callslip.models._failures import causes_of, codes_of, is_context_full, is_refusal
from callslip.models._fields import field

__all__ = ["is_for_another_model", "is_retriable", "requested_wait"]

_STATUSES = frozenset({408, 409, 424, 425, 429})
"""Those below 500."""

_CODES = frozenset(
    {
        "aborted",
        "api_error",
        "deadline_exceeded",
        "internal",
        "internal_error",
        "internal_server_error",
        "overloaded",
        "overloaded_error",
        "request_timeout",
        "resource_exhausted",
        "server_error",
        "server_overloaded",
        "service_unavailable",
        "timeout",
        "timeout_error",
        "too_many_requests",
        "unavailable",
    }
)
_BEDROCK = frozenset(
    {
        "internalfailure",
        "internalserverexception",
        "modelerrorexception",
        "modelnotreadyexception",
        "modelstreamerrorexception",
        "modeltimeoutexception",
        "requesttimeout",
        "requesttimeoutexception",
        "serviceunavailable",
        "serviceunavailableexception",
        "slowdown",
        "throttlingexception",
        "toomanyrequestsexception",
    }
)
_QUOTA = frozenset(
    {
        "account_deactivated",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_quota",
        "servicequotaexceededexception",
    }
)
"""Codes of a limit that does not pass by itself."""

_CLASSES = frozenset(
    {
        "APIConnectionError",
        "APITimeoutError",
        "InferenceTimeoutError",
        "InternalServerError",
        "MidStreamFallbackError",
        "ModelConnectionError",
        "ModelRateLimitError",
        "ModelTimeoutError",
        "OverloadedError",
        "RateLimitError",
        "ServiceUnavailableError",
        # Transports: aiohttp, botocore, http.client, requests, urllib3.
        "ChunkedEncodingError",
        "ClientPayloadError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "IncompleteRead",
        "ProtocolError",
        "ReadTimeoutError",
        "ResponseStreamingError",
    }
)
_OWN_FAULTS = (
    AssertionError,
    AttributeError,
    ImportError,
    MemoryError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
)


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, CallslipError) and not isinstance(error, ModelError):
        return False
    if isinstance(error, (ContextFull, ModelRefused)):
        return False
    if is_context_full(error) or is_refusal(error):
        return False
    chain = list(_raised_from(error))
    codes = {code.lower() for one in chain for code in codes_of(one)}
    if codes & _QUOTA:
        return False
    for one in chain:
        answer = _decide(one, codes)
        if answer is not None:
            return answer
    return False


def is_for_another_model(error: BaseException) -> bool:
    """Whether another model may do better: the fault is not that of the program itself."""
    if isinstance(error, CallslipError):
        return isinstance(error, ModelError)
    return not isinstance(error, _OWN_FAULTS) or is_retriable(error)


def requested_wait(error: BaseException) -> float | None:
    """Return the seconds that the server asks to wait; `None` if it does not ask."""
    for one in _raised_from(error):
        headers = _headers(one)
        milliseconds = _seconds(headers.get("retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        wait = _retry_after(headers.get("retry-after"))
        if wait is None:
            wait = _retry_info(_safe(one, "details"))
        if wait is not None:
            return wait
    return None


def _decide(error: BaseException, codes: set[str]) -> bool | None:
    """Whether an exception is worth a retry; `None` if it does not say."""
    said = _headers(error).get("x-should-retry", "").lower()
    if said in ("true", "false"):
        return said == "true"
    if codes & _BEDROCK:
        # Services of AWS also send some of them with the status 400.
        return True
    status = _status(error)
    # A stream that began well reports its errors in events.
    if status is not None and status >= 400:
        return status in _STATUSES or status >= 500
    if codes & _CODES or any(code.startswith("rate_limit") for code in codes):
        return True
    if isinstance(error, ModelError):
        return error._is_transient or any(
            isinstance(code, int) and (code in _STATUSES or code >= 500) for code in error._codes
        )
    names = {one.__name__ for one in type(error).__mro__}
    if is_transient(error) or not names.isdisjoint(_CLASSES):
        return True
    return None


def _raised_from(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its direct causes: another one that was being handled says nothing."""
    expected: BaseException | None = error
    for one in causes_of(error):
        if one is not expected:
            return
        yield one
        expected = one.__cause__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of a client's exception."""
    response = _safe(error, "response")
    for value in (
        _safe(error, "status_code"),
        _safe(response, "status_code"),
        _safe(_safe(response, "ResponseMetadata"), "HTTPStatusCode"),
        _safe(error, "status"),
        _safe(error, "code"),
    ):
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            return value
    return None


def _headers(error: BaseException) -> dict[str, str]:
    """Return the headers of the response, with names in small letters."""
    for owner in (_safe(error, "response"), error):
        headers = _safe(owner, "headers")
        try:
            items = headers.items()  # type: ignore[attr-defined]
            return {str(name).lower(): str(value) for name, value in items}
        except Exception:  # noqa: BLE001, S112  # there are none
            continue
    return {}


def _safe(owner: object, name: str) -> object:
    try:
        return field(owner, name)
    except Exception:  # noqa: BLE001  # the exception's own fields are at fault
        return None


def _retry_after(text: str | None) -> float | None:
    """Read seconds, or an HTTP date."""
    seconds = _seconds(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _retry_info(details: object) -> float | None:
    """Read the `retryDelay` of Google's error details, such as `"17s"`."""
    inner = field(field(details, "error"), "details")
    entries = details if inner is None else inner
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        delay = entry.get("retryDelay") if isinstance(entry, Mapping) else None
        if isinstance(delay, str):
            return _seconds(delay.removesuffix("s"))
    return None
