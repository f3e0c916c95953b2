"""What a model is told of a tool's failure: one line, without what is no business of its."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable

from callslip import _lazy

__all__ = [
    "ModelFacing",
    "Passing",
    "in_one_line",
    "is_cancelled",
    "is_failure",
    "is_transient",
    "log_failure",
    "lone",
    "one_line",
    "redacted",
    "words_of",
]

_MESSAGE = 500
_LEAVES = 3
"""Failures of a group that are told."""

# Bounded, so that no text takes long to look through.
_BEFORE = r"(?<![\w-])[\w-]{0,40}"
# A parser's "unexpected token: 'x'" is none.
_SECRET = rf"{_BEFORE}(?:api[_-]?key|access[_-]?key|secret|[_-]token|passw(?:or)?d|passphrase|pwd)"
_CREDENTIAL = (
    rf"{_BEFORE}(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd"
    r"|credentials|signature)"
)


@functools.cache
def _redactions() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    """Return what is replaced, and by what. Compiled for the first failure, not for the import."""
    return (
        # An address says nothing, and makes equal failures different.
        (re.compile(r" at 0x[0-9a-fA-F]+"), ""),
        (
            re.compile(
                r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?"
                r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
            ),
            "…",
        ),
        (re.compile(r"(?<=://)[^/\s@'\"]+@"), "…@"),
        (re.compile(r"(?<=[?&])((?:key|sig|auth)=)[^&\s'\"]+", re.IGNORECASE), r"\1…"),
        (
            re.compile(
                rf"((?:{_CREDENTIAL}=|{_SECRET}\s{{0,9}}[:=]\s{{0,9}}))(?:'[^']*'|\"[^\"]*\")",
                re.IGNORECASE,
            ),
            r"\1…",
        ),
        (re.compile(rf"({_CREDENTIAL}=)['\"]?[^&\s'\",;)…]+", re.IGNORECASE), r"\1…"),
        (re.compile(rf"({_CREDENTIAL}['\"]\s*:\s*)['\"][^'\"]*['\"]", re.IGNORECASE), r"\1…"),
        (re.compile(r"(\b(?:x-api-key|cookie)['\"]?\s*[:=]\s*)[^\s,]+", re.IGNORECASE), r"\1…"),
        (
            re.compile(
                r"(\bauthorization['\"]?\s{0,9}[:=]\s{0,9}['\"]?(?:(?:Bearer|Basic|Token)\s+)?)"
                r"[\w.~+/=-]{8,}",
                re.IGNORECASE,
            ),
            r"\1…",
        ),
        # "Basic authentication is required" is no credential.
        (
            re.compile(
                r"\b((?:Bearer|Basic|Token)\s+)(?=\S*\d|\S{20})[\w.~+/=-]{8,}", re.IGNORECASE
            ),
            r"\1…",
        ),
        # Keys that are known by their form.
        (re.compile(r"\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[pousr]_\w{20,}|\bAKIA\w{16}\b"), "…"),
        (
            re.compile(r"\bAIza[\w-]{20,}|\bya29\.[\w-]+|\bglpat-[\w-]{16,}|\bgithub_pat_\w{20,}"),
            "…",
        ),
        (re.compile(r"\bxox[abpr]-[\w-]{10,}|\beyJ[\w-]{10,}\.[\w.-]+"), "…"),
        (
            re.compile(r"(?:file://|(?<![\w:/.~-]))(/(?:[^\s/'\"<>|:,;()\[\]]+/)+)(?=[^\s/])"),
            _directory,
        ),
        (
            re.compile(r"(?<![\w/])~(?:[A-Za-z_][\w-]*)?/(?:[^\s/'\"<>|:,;()\[\]]+/)*(?=[^\s/])"),
            "…/",
        ),
        (re.compile(r"\b[A-Za-z]:(?:\\+[^\\\s'\"<>|:]+)*\\+(?=[^\\\s])"), r"…\\"),
    )


def lone(error: BaseException) -> BaseException:
    """Return what a task group raised, where it is one thing alone."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def is_cancelled(error: BaseException) -> bool:
    """Whether something was cancelled in asyncio."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def is_failure(error: BaseException) -> bool:
    """Whether what a function raised is a failure of its own, and does not end the program.

    For functions that nobody cancels from outside: sync ones, and those that run elsewhere.
    """
    return isinstance(error, (Exception, GeneratorExit)) or is_cancelled(error)


def words_of(error: BaseException) -> str:
    """Return what an exception says; nothing where its own `__str__` is at fault."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # the exception's own __str__ is at fault
        return ""
    return _whole(text)


def _whole(text: str) -> str:
    """Half a surrogate pair, as in a file's name, has no place in UTF-8, and so none in a log."""
    # A subclass of str may have methods of its own.
    return str.encode(text, "utf-16", "surrogatepass").decode("utf-16", "replace")


def in_one_line(error: BaseException) -> str:
    """Return what a model is told of a failure.

    An error's type and message, without directories of this machine, addresses and what looks like
    a credential; a `ModelFacing` one in its own words.
    """
    error = lone(error)
    if isinstance(error, ModelFacing):
        return error.text_for_model()
    kind = " ".join(type(error).__name__.split())
    if isinstance(error, BaseExceptionGroup):
        leaves = [in_one_line(one) for one in error.exceptions[:_LEAVES]]
        more = len(error.exceptions) - len(leaves)
        leaves += [f"{more} more"] if more else []
        text = one_line("; ".join([redacted(_whole(error.message)), *leaves]))
    else:
        text = one_line(redacted(words_of(error)))
    return f"{kind}: {text}" if text else kind


class ModelFacing(Exception):  # noqa: N818  # a base of signals, too
    """A failure that has words of its own for the model."""

    def text_for_model(self) -> str:
        """Return them, in one line."""
        raise NotImplementedError


class Passing(str):
    """What a model is told of a failure that may pass: the same call may be made again."""

    __slots__ = ()


def is_transient(error: BaseException) -> bool:
    """Return whether a failure may pass by itself: no connection, no answer in time, too busy.

    That of an exception of a program's own is its attribute `is_transient`.
    """
    error = lone(error)
    said = getattr(error, "is_transient", None)
    if isinstance(said, bool):
        return said
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status in {408, 425, 429, 502, 503, 504}
    # The clients of HTTP have errors of their own; none of them need be installed.
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
    """Return text in one line, without the full stop at its end, cut to so many characters."""
    text = " ".join(text[: 20 * _MESSAGE].split()).rstrip(".")
    return f"{text[:most]}…" if len(text) > most else text


def redacted(text: str) -> str:
    """Return text without directories of this machine, addresses and what looks like a secret."""
    text = text[: 20 * _MESSAGE]
    for pattern, instead in _redactions():
        text = pattern.sub(instead, text)
    return text


def _directory(path: re.Match[str]) -> str:
    """`/home/me/data/` is `…/` where there is a `/home` here: else it may be a route of an API."""
    _, first, *_ = path[1].split("/")
    return "…/" if os.path.isdir(f"/{first}") else path[0]  # noqa: PTH112  # `pathlib` is slow to import


def log_failure(name: str, error: BaseException) -> None:
    """Write a tool's failure into the log `callslip.tools`, with its whole traceback."""
    root = _lazy.logging.getLogger("callslip")
    if not root.handlers:
        # Without a handler of the program's own, nothing is to appear on its standard error.
        root.addHandler(_lazy.logging.NullHandler())
    _lazy.logging.getLogger("callslip.tools").warning(
        "tool '%s' failed", name, exc_info=(type(error), error, error.__traceback__)
    )
