"""What the failure of a client means, in the words of each server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from callslip._failure import words_of
from callslip.models._fields import field

__all__ = ["is_context_full", "is_refusal"]


@dataclass(frozen=True)
class _Meaning:
    """How failures of one kind are told: by a code, by the name of a class, or in words."""

    codes: frozenset[str]
    classes: frozenset[str]
    words: tuple[str, ...]
    # Words of other failures that hold some of these.
    unless: tuple[str, ...] = ()


_CODES = ("code", "type")
"""The fields that hold them."""

_FULL = _Meaning(
    frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"}),
    frozenset({"ContextWindowExceededError", "ContextOverflowError"}),
    (
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
    ),
    # Other fields of a request have lengths of their own.
    ("string_above_max_length", "string too long"),
)
_REFUSED = _Meaning(
    frozenset({"content_policy_violation", "content_filter", "invalid_prompt", "bio_policy"}),
    frozenset({"ContentPolicyViolationError"}),
    (
        "blocked by content filtering policy",
        "violating our usage policy",
        "content management policy",
    ),
)

_CAUSES = 8


def is_context_full(error: BaseException | None, told: str = "") -> bool:
    """Whether a call failed because the transcript is longer than the model can read.

    Args:
        error: What the client raised, or what was raised because of that.
        told: What is known of it where the exception is not there any more.
    """
    return _means(_FULL, error, told)


def is_refusal(error: BaseException | None, told: str = "") -> bool:
    """Whether a call failed because the service refuses to answer. As `is_context_full`."""
    return _means(_REFUSED, error, told)


def _means(meaning: _Meaning, error: BaseException | None, told: str) -> bool:
    return any(_says(meaning, one) for one in _causes(error)) or _is_said(meaning, told)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _says(meaning: _Meaning, error: BaseException) -> bool:
    if any(one.__name__ in meaning.classes for one in type(error).__mro__):
        return True
    try:
        body = field(error, "body")
        said = [
            field(told, name) for told in (error, body, field(body, "error")) for name in _CODES
        ]
    except Exception:  # noqa: BLE001  # the exception's own fields are at fault
        said = []
    if any(isinstance(value, str) and value in meaning.codes for value in said):
        return True
    return _is_said(meaning, words_of(error))


def _is_said(meaning: _Meaning, text: str) -> bool:
    text = text.lower()
    is_other = any(one in text for one in meaning.unless)
    return not is_other and any(one in text for one in meaning.words)
