"""Whether a failed request is worth another one.

Everything is read by name, because none of the client libraries need be installed: status codes,
codes and types of errors, headers, and names of classes.
"""

from __future__ import annotations

from callslip._base.backoff import headers_of, raised_from, safe_field
from callslip._base.failure import TRANSIENT_STATUSES, is_transient
from callslip.errors import CallslipError, ContextFull, ModelError, ModelRefused
from callslip.models._failures import codes_of, is_context_full, is_refusal, server_words

__all__ = [
    "is_for_another_model",
    "is_of_request",
    "is_refused_request",
    "is_retriable",
    "status_of",
]

_STATUSES = TRANSIENT_STATUSES | {409, 424}
"""Beside all from 500."""

_REFUSING = frozenset({400, 413, 422})

_CODES = frozenset({"apierror", "internal"})
_WORDS = (
    "aborted",
    "busy",
    "deadlineexceeded",
    "internalerror",
    "internalserver",
    "overload",
    "ratelimit",
    "resourceexhausted",
    "servererror",
    "throttl",
    "timedout",
    "timeout",
    "toomanyrequest",
    "unavailable",
)
"""Parts of codes, in small letters without anything between their words."""
_SAID = (
    "overloaded",
    "rate limit",
    "retry later",
    "temporarily unavailable",
    "too many requests",
    "try again later",
)
"""Words of a server that sends no code with them."""
_FINAL = ("invalid", "unsupported", "unknown")
"""Beginnings of codes of which no other part counts: `invalid_timeout`."""
_NUMBERS = frozenset({"1234", "1302", "1303", "1305", "1312"})
"""Codes of GLM for overload and for rates: https://docs.z.ai/api-reference/api-code"""
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
_QUOTA = ("quota", "billing", "balance", "arrear", "accountdeactivated", "paymentrequired")
_QUOTA_NUMBERS = frozenset({"1113", "1304", "1308", "1309", "1310"})
"""Codes of permanent limits, such as a used-up quota; the numbers are GLM's."""

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
    if codes & _QUOTA_NUMBERS or any(_has(code, _QUOTA) for code in codes):
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


def is_of_request(error: BaseException) -> bool:
    """Whether a failure says that the service works, and is the fault of this request alone."""
    if isinstance(error, ContextFull) or is_context_full(error):
        return True
    is_refused = isinstance(error, ModelRefused) or is_refusal(error)
    return is_refused or is_refused_request(error) or not is_for_another_model(error)


def is_refused_request(error: BaseException) -> bool:
    """Whether a service has refused a request as wrong, in words that say nothing else."""
    if isinstance(error, ModelRefused) or is_refusal(error):
        return False
    return any(
        (status_of(one) or _status_in(codes_of(one))) in _REFUSING for one in raised_from(error)
    )


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
    said_status = _status_in(codes)
    if said_status is not None:
        return said_status in _STATUSES or said_status >= 500
    if codes & _NUMBERS or any(_passes(code) for code in codes):
        return True
    has_server = isinstance(error, ModelError) or safe_field(error, "body") is not None
    if has_server and not codes and any(one in server_words(error).lower() for one in _SAID):
        return True
    if isinstance(error, ModelError):
        return error._is_transient
    names = {one.__name__ for one in type(error).__mro__}
    if is_transient(error) or not names.isdisjoint(_CLASSES):
        return True
    return None


def _status_in(codes: set[str]) -> int | None:
    """Return the status among codes: servers report it so inside of a stream."""
    numbers = (int(code) for code in codes if code.isascii() and code.isdigit() and len(code) == 3)
    return max((one for one in numbers if 400 <= one < 600), default=None)


def _passes(code: str) -> bool:
    """Whether a code, in any spelling, means a transient failure."""
    joined = _joined(code)
    return joined in _CODES or (not joined.startswith(_FINAL) and _has(code, _WORDS))


def _has(code: str, words: tuple[str, ...]) -> bool:
    joined = _joined(code)
    return any(word in joined for word in words)


def _joined(code: str) -> str:
    return "".join(one for one in code.lower() if one.isalnum())


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
