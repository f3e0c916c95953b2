"""Failures of tools as the model reads them: in one line, without anything private."""

from __future__ import annotations

import sys

from callslip._base import _lazy
from callslip._base.log import GuardedLogger
from callslip._base.redaction import redact_likely_secrets

__all__ = [
    "BUSY_STATUSES",
    "TRANSIENT_STATUSES",
    "ModelFacing",
    "describe_failure",
    "is_cancelled",
    "is_failure",
    "is_transient",
    "log_failure",
    "message_of",
    "one_line",
    "unwrap_group",
]

_MESSAGE = 500
_LEAVES = 3
"""Failures of a group that are listed."""


def unwrap_group(error: BaseException) -> BaseException:
    """Return the only exception of a group, at any depth; any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def is_cancelled(error: BaseException) -> bool:
    """Whether this is the `CancelledError` of asyncio."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def is_failure(error: BaseException) -> bool:
    """Whether an exception is the function's own failure and does not end the program.

    Only for functions that are not cancelled from outside: sync ones, and those on another loop.
    """
    return isinstance(error, (Exception, GeneratorExit)) or is_cancelled(error)


def message_of(error: BaseException) -> str:
    """Return the message of an exception; an empty text if its `__str__` fails."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # the exception's own __str__ is at fault
        return ""
    return _replace_surrogates(text)


def _replace_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, as in names of files: the log is UTF-8."""
    # A subclass of str may override methods.
    return str.encode(text, "utf-16", "surrogatepass").decode("utf-16", "replace")


def describe_failure(error: BaseException) -> str:
    """Return the text that the model reads for a failure.

    It consists of the type and message of the error, without directories of this machine, memory
    addresses and likely credentials. A `ModelFacing` error supplies its own text.
    """
    error = unwrap_group(error)
    if isinstance(error, ModelFacing):
        return error.text_for_model()
    kind = " ".join(type(error).__name__.split())
    if isinstance(error, BaseExceptionGroup):
        leaves = [describe_failure(one) for one in error.exceptions[:_LEAVES]]
        more = len(error.exceptions) - len(leaves)
        leaves += [f"{more} more"] if more else []
        text = one_line(
            "; ".join([redact_likely_secrets(_replace_surrogates(error.message)), *leaves])
        )
    else:
        text = one_line(redact_likely_secrets(message_of(error)))
    return f"{kind}: {text}" if text else kind


class ModelFacing(Exception):  # noqa: N818  # a base of signals, too
    """A failure that supplies its own text for the model."""

    def text_for_model(self) -> str:
        """Return the text, in one line."""
        raise NotImplementedError


BUSY_STATUSES = frozenset({425, 429, 503})
"""HTTP statuses of a busy server, which has not executed the request."""

TRANSIENT_STATUSES = BUSY_STATUSES | {408, 502, 504}
"""HTTP statuses of transient failures."""


def is_transient(error: BaseException) -> bool:
    """Whether a failure is transient: no connection, a timeout, a busy server.

    An exception of the program can decide this with an attribute `is_transient`.
    """
    error = unwrap_group(error)
    said = getattr(error, "is_transient", None)
    if isinstance(said, bool):
        return said
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status in TRANSIENT_STATUSES
    # By name, because none of the HTTP clients need be installed.
    names = {f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(error).__mro__}
    return not names.isdisjoint(_NO_CONNECTION)


_NO_CONNECTION = frozenset(
    {
        *(
            f"{one}.{kind}"
            for one in ("httpx", "httpx2")
            for kind in ("TimeoutException", "NetworkError")
        ),
        *(f"{one}.RemoteProtocolError" for one in ("httpx", "httpx2")),
        "requests.ConnectionError",
        "requests.Timeout",
        "urllib3.ConnectionError",
        "aiohttp.ClientConnectionError",
    }
)


def one_line(text: str, most: int = _MESSAGE) -> str:
    """Return a text in one line, without a full stop at the end, truncated to `most` characters."""
    text = " ".join(text[: 20 * _MESSAGE].split()).rstrip(".")
    return f"{text[:most]}…" if len(text) > most else text


def log_failure(name: str, error: BaseException) -> None:
    """Write a tool's failure into the log `callslip.tools`, with its whole traceback."""
    root = _lazy.logging.getLogger("callslip")
    if not root.handlers:
        # Without a handler, logging would write to the program's standard error.
        root.addHandler(_lazy.logging.NullHandler())
    GuardedLogger("callslip.tools").warning(
        "tool '%s' failed", name, exc_info=(type(error), error, error.__traceback__)
    )
