"""Errors of the gateway, before a face writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from callslip._base.backoff import headers_of, raised_from
from callslip._base.log import GuardedLogger
from callslip.errors import ContextFull, ModelRefused, StoreError, ToolError, UsageError
from callslip.models._failures import is_context_full, is_refusal
from callslip.models._retry_rules import status_of
from callslip.web._errors import TooLarge

__all__ = ["Refused", "refused_of"]

_log = GuardedLogger("callslip.gateway")

_PASSED_ON = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses of the model's service that clients know how to wait for."""


@dataclass
class Refused(Exception):  # noqa: N818  # an answer, as `callslip.console` has one
    """A request that gets an error.

    Attributes:
        status: The HTTP status.
        message: The error message for the client.
        code: A word for programs.
        param: The field of the request at fault, if one is.
        retry_after: Seconds to wait before the next attempt; `None` if waiting doesn't help.
    """

    status: int
    message: str
    code: str = "invalid_request"
    param: str | None = None
    retry_after: str | None = None

    def __str__(self) -> str:
        return self.message

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer."""
        found = {"cache-control": "no-store"}
        if self.retry_after is not None:
            found["retry-after"] = self.retry_after
        elif self.status not in _PASSED_ON:
            # SDKs repeat some statuses by themselves, at the full cost.
            found["x-should-retry"] = "false"
        return found


def refused_of(error: Exception) -> Refused:
    """Return the answer for an exception. The log has those that a client can't correct."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, TooLarge):
        return Refused(413, str(error), "request_too_large")
    if isinstance(error, UsageError | ToolError):
        return Refused(400, str(error))
    if isinstance(error, ContextFull) or is_context_full(error):
        return Refused(400, _context_full(error), "context_length_exceeded")
    if isinstance(error, ModelRefused) or is_refusal(error):
        return Refused(400, "the model's service refused to answer", "content_filter")
    if isinstance(error, StoreError):
        _log.warning("a request failed", exc_info=error)
        return Refused(503, "the store is not available: the log says why", "store_failed")
    for one in raised_from(error):
        status = status_of(one)
        if status in _PASSED_ON:
            _log.warning("the model failed", exc_info=error)
            wait = headers_of(one).get("retry-after")
            return Refused(
                status, f"the model's service answered {status}", "model_failed", None, wait
            )
    _log.warning("a request failed", exc_info=error)
    return Refused(502, "the model failed: the log of the server says why", "model_failed")


def _context_full(error: Exception) -> str:
    said = str(error) if isinstance(error, ContextFull) else "the conversation is too long"
    return f"maximum context length exceeded: {said}"
