"""Whether a failed request is worth another one.

Everything is read by name, because none of the client libraries need be installed: status codes,
codes and types of errors, headers, and names of classes.
"""

from __future__ import annotations

from callslip._backoff import headers_of, raised_from, safe_field
from callslip._failure import is_transient
from callslip.errors import CallslipError, ContextFull, ModelError, ModelRefused
from callslip.models._failures import codes_of, is_context_full, is_refusal

__all__ = ["is_for_another_model", "is_retriable", "status_of"]

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
    chain = list(raised_from(error))
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


def _decide(error: BaseException, codes: set[str]) -> bool | None:
    """Whether an exception is worth a retry; `None` if it does not say."""
    said = headers_of(error).get("x-should-retry", "").lower()
    if said in ("true", "false"):
        return said == "true"
    if codes & _BEDROCK:
        # Services of AWS also send some of them with the status 400.
        return True
    status = status_of(error)
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


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a client's exception."""
    response = safe_field(error, "response")
    for value in (
        safe_field(error, "status_code"),
        safe_field(response, "status_code"),
        safe_field(safe_field(response, "ResponseMetadata"), "HTTPStatusCode"),
        safe_field(error, "status"),
        safe_field(error, "code"),
    ):
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            return value
    return None
