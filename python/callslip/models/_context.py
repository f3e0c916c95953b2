"""Telling that a model's context is full, in the words of each server and client."""

from __future__ import annotations

from collections.abc import Iterator

from callslip.models._fields import field

__all__ = ["is_context_full"]

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_CLASSES = frozenset({"ContextWindowExceededError", "ContextOverflowError"})
_WORDS = (
    "maximum context length",
    "exceeds the context window",
    "exceed context window",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the model's maximum context",
    "longer than the model's context length",
    "input tokens exceed the configured limit",
    "exceeds the maximum number of tokens allowed",
    "prompt is too long",
    "input is too long",
    "prompt has too many tokens",
    "too many input tokens",
    "`inputs` tokens + `max_new_tokens` must be",
)
# Other fields of a request have lengths of their own.
_OF_OTHERS = ("string_above_max_length", "string too long")

_CAUSES = 8


def is_context_full(error: BaseException | None, told: str = "") -> bool:
    """Whether a call failed because the transcript is longer than the model can read.

    Args:
        error: What the client raised, or what was raised because of that.
        told: What is known of it where the exception is not there any more.
    """
    return any(map(_says_so, _causes(error))) or _is_said(told)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _says_so(error: BaseException) -> bool:
    if any(one.__name__ in _CLASSES for one in type(error).__mro__):
        return True
    body = field(error, "body")
    for told in (error, body, field(body, "error")):
        for name in ("code", "type"):
            value = field(told, name)
            if isinstance(value, str) and value in _CODES:
                return True
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # a client's exception may not know its own words
        return False
    return _is_said(text)


def _is_said(text: str) -> bool:
    text = text.lower()
    return any(one in text for one in _WORDS) and not any(one in text for one in _OF_OTHERS)
