"""The meaning of a client's failure, from the messages of each server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from callslip._base.backoff import safe_field
from callslip._base.failure import message_of
from callslip.models._fields import field
from callslip.models._finish_reasons import quote_body

__all__ = ["causes_of", "codes_of", "is_context_full", "is_refusal", "server_words"]

_WORDS = ("message", "msg", "detail", "error", "error_message", "error_msg", "title")
"""The fields in which servers put their words."""


@dataclass(frozen=True)
class _Meaning:
    """The signs of one kind of failure: codes, names of classes, and words of messages."""

    codes: frozenset[str]
    classes: frozenset[str]
    words: tuple[str, ...]
    # Words of other failures that hold some of these.
    unless: tuple[str, ...] = ()


_CODES = ("code", "type", "status", "error_code", "error_type", "status_code")
"""The fields that hold them."""

_FULL = _Meaning(
    # The number is one of GLM: https://docs.z.ai/api-reference/api-code
    frozenset(
        {"1261", "context_length_exceeded", "exceed_context_size_error", "request_too_large"}
    ),
    frozenset({"ContextFull", "ContextOverflowError", "ContextWindowExceededError"}),
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
        "too many tokens",
        "context window",
        "`inputs` tokens + `max_new_tokens` must be",
        # DashScope, GLM, Groq, Kimi, LM Studio, TGI, vLLM, xAI.
        "range of input length should be",
        "prompt exceeds max length",
        "reduce the length of the messages",
        "exceeded model token limit",
        "greater than the context length",
        "context length of only",
        "context size has been exceeded",
        "`inputs` must have less than",
        "longer than the maximum model length",
        "too long to fit into the model",
        "maximum prompt length",
    ),
    # Other fields of a request have lengths of their own, and Bedrock counts tokens a minute.
    ("string_above_max_length", "string too long", "please wait"),
)
_REFUSED = _Meaning(
    frozenset(
        {
            "ResponsibleAIPolicyViolation",
            "bio_policy",
            "content_filter",
            "content_policy_violation",
            "invalid_prompt",
        }
    ),
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
        error: The exception of the client, or one that was raised because of it.
        told: The recorded message, if there is no exception any more.
    """
    return _means(_FULL, error, told)


def is_refusal(error: BaseException | None, told: str = "") -> bool:
    """Whether a call failed because the service refuses to answer. Arguments as above."""
    return _means(_REFUSED, error, told)


def _means(meaning: _Meaning, error: BaseException | None, told: str) -> bool:
    return any(_says(meaning, one) for one in causes_of(error)) or _is_said(meaning, told)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that it was raised because of."""
    for _ in range(_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _says(meaning: _Meaning, error: BaseException) -> bool:
    if any(one.__name__ in meaning.classes for one in type(error).__mro__):
        return True
    if not meaning.codes.isdisjoint(codes_of(error)):
        return True
    return _is_said(meaning, server_words(error))


def server_words(error: BaseException) -> str:
    """Return the message of a client's exception, with the server's own words if it lacks them.

    Clients look for them in one place, `error.message`, and some servers put them elsewhere.
    """
    said = message_of(error)
    body = safe_field(error, "body")
    try:
        words = _words_in(body) if body is not None else None
    except Exception:  # noqa: BLE001  # the exception's own fields are at fault
        words = None
    if not words or words in said:
        return said
    return f"{said}: {words}" if said else words


def _words_in(body: object) -> str | None:
    """Return the words of the body of an error; all of it if they are in no known place."""
    if isinstance(body, str):
        return body
    inner = field(body, "error")
    for place in (inner, body):
        told = (field(place, name) for name in _WORDS)
        words = next((one for one in told if isinstance(one, str) and one), None)
        if words is not None:
            return words
    return quote_body(body) if isinstance(body, Mapping) and body else None


def codes_of(error: BaseException) -> set[str]:
    """Return the codes and types of error of a client's exception; numbers in digits."""
    reported = getattr(error, "_codes", ())
    said: list[object] = list(reported) if isinstance(reported, tuple) else []
    try:
        body = field(error, "body")
        response = field(error, "response")
        places = (error, body, field(body, "error"), field(field(body, "error"), "innererror"))
        said += [field(told, name) for told in places for name in _CODES]
        # boto3 keeps the server's words in a dict.
        said.append(field(field(response, "Error"), "Code"))
    except Exception:  # noqa: BLE001, S110  # the exception's own fields are at fault
        pass
    known = (one for one in said if isinstance(one, (str, int)) and not isinstance(one, bool))
    return {str(one) for one in known}


def _is_said(meaning: _Meaning, text: str) -> bool:
    text = text.lower()
    is_other = any(one in text for one in meaning.unless)
    return not is_other and any(one in text for one in meaning.words)
