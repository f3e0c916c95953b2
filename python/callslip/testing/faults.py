"""Faults: ways in which the reply of a model goes wrong, for `callslip.testing.Faults`.

A fault is a function of a whole reply and of the `Say` of its protocol. It returns what takes the
place of the reply, and raises `UsageError` if the reply has no place for the fault. The text of a
native reply is that of `Say("native")`: a line of JSON for each item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from callslip._base.options import check_seconds
from callslip.errors import UsageError
from callslip.models import ModelReply
from callslip.testing._call_text import CallText
from callslip.testing._reply_text import cut_text, reply_of, text_of, with_text
from callslip.testing._say import Say

__all__ = [
    "Fault",
    "Hang",
    "RateLimited",
    "cut",
    "duplicate_key",
    "empty",
    "hang",
    "invented_observation",
    "missing_argument",
    "never_stops",
    "prose_around",
    "two_moves",
    "unknown_tool",
    "wrong_type",
]

_UNKNOWN_TOOL: Final = "no_such_tool"


class RateLimited(Exception):
    """The exception of a client whose server answers with status 429.

    Args:
        retry_after: Seconds that the server asks to wait. Default: `None`, it does not say.

    Attributes:
        status_code: 429.
        headers: Retry-After, if the server sends it.

    Raises:
        UsageError: `retry_after` is not a number from 0.
    """

    status_code = 429

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("rate limit exceeded")
        check_seconds("retry_after", retry_after, none="no such header")
        self.retry_after = retry_after
        self.headers: dict[str, str] = (
            {} if retry_after is None else {"retry-after": str(retry_after)}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RateLimited, (self.retry_after,)


@dataclass(frozen=True, slots=True)
class Hang:
    """A wait before the reply; made by `hang`.

    Attributes:
        seconds: The length of the wait.

    Raises:
        UsageError: `seconds` is not a number above 0.
    """

    seconds: float

    def __post_init__(self) -> None:
        check_seconds("seconds", self.seconds, zero=False)


Fault: TypeAlias = (
    Callable[[str, Say], str | ModelReply | Iterable[str]]
    | Hang
    | BaseException
    | type[BaseException]
)
"""A function of a reply and of the `Say` of its protocol, a wait, or an exception of the client.

A function returns the reply in its place, or the pieces of a stream."""


def hang(seconds: float) -> Hang:
    """Return a fault: the model waits before it replies.

    Args:
        seconds: The length of the wait, more than 0.

    Raises:
        UsageError: `seconds` is no such number.
    """
    return Hang(seconds)


def cut(reply: str, say: Say) -> ModelReply:
    """Cut the reply off, as by a limit on its tokens: it has the finish reason `"length"`."""
    text = cut_text(text_of(reply, say))
    if not text:
        raise UsageError(f"expected a reply of two characters or more for cut: got {reply!r}")
    return reply_of(text, say, ModelReply(finish_reason="length"))


def two_moves(reply: str, say: Say) -> str:
    """Add a second move: an answer, or another call with the same `call_id` if answers are text.

    A native reply may have several calls; with `NativeProtocol(parallel=False)` it gets a second.
    """
    protocol = say._protocol
    if protocol._joins_calls:
        raise UsageError(
            f"expected a protocol of one move a reply for two_moves: got {protocol.name!r}, whose "
            "replies may have several calls; use another fault, or parallel=False"
        )
    if not protocol.native.answers_in_text:
        return f"{reply}\n{say.finish('a second move')}"
    found = CallText.find(reply, say, "two_moves")
    return found.followed_by({} if found.arguments else {"second": True})


def unknown_tool(reply: str, say: Say) -> str:
    """Call the tool `no_such_tool`."""
    return CallText.find(reply, say, "unknown_tool").with_tool(_UNKNOWN_TOOL)


def duplicate_key(reply: str, say: Say) -> str:
    """Write the first argument twice, with two values."""
    found = _with_arguments(reply, say, "duplicate_key")
    name, value = next(iter(found.arguments.items()))
    first = json.dumps(found.arguments, ensure_ascii=False)
    other = json.dumps({name: 0 if value is None else None}, ensure_ascii=False)
    return found.with_arguments_text(f"{first[:-1]}, {other[1:]}")


def missing_argument(reply: str, say: Say) -> str:
    """Leave all arguments out. A tool without required arguments can still be called."""
    return _with_arguments(reply, say, "missing_argument").with_arguments({})


def wrong_type(reply: str, say: Say) -> str:
    """Write an object for each argument; a list for an object."""
    found = _with_arguments(reply, say, "wrong_type")
    return found.with_arguments(
        {
            name: ["wrong type"] if isinstance(value, dict) else {"wrong": "type"}
            for name, value in found.arguments.items()
        }
    )


def empty(_reply: str, _say: Say) -> str:
    """Reply nothing."""
    return ""


def prose_around(reply: str, say: Say) -> str:
    """Write sentences before and after the move, which the reader drops or shows."""
    around = "Sure, this is the next step.", "I hope that this helps."
    return with_text(text_of(reply, say), *around)


def invented_observation(reply: str, say: Say) -> str:
    """Continue after a call with a result that the model has invented."""
    CallText.find(reply, say, "invented_observation")
    return with_text(text_of(reply, say), "", say._protocol._invented_result)


def never_stops(reply: str, say: Say) -> Iterable[str]:
    """Write the reply up to two thirds, and then letters without an end.

    `Limits.reply_bytes` ends such a reply.
    """
    text = cut_text(text_of(reply, say))
    return _without_end(text, type(text))


def _without_end(start: str, kind: type[str]) -> Iterator[str]:
    yield start
    while True:
        yield kind("x" * 4096)


def _with_arguments(reply: str, say: Say, fault: str) -> CallText:
    found = CallText.find(reply, say, fault)
    if not found.arguments:
        raise UsageError(f"expected a call with arguments for {fault}: got {reply!r}")
    return found
