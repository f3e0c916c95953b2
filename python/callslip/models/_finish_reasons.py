"""Finish reasons of replies, from the values of each client."""

from __future__ import annotations

from typing import NoReturn

from callslip.errors import ModelError
from callslip.models._fields import field

__all__ = [
    "is_context_end",
    "is_tool_call",
    "quote_text",
    "raise_reported",
    "raise_tool_call",
    "read_finish",
    "withheld",
]

_CUT = frozenset(
    {
        "continuation",
        "incomplete",
        "length",
        "max_context",
        "max_len",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "model_length",
        "pause_turn",
    }
)
_FULL = frozenset({"max_context", "model_context_window_exceeded", "model_length"})
"""Those of `_CUT` after which a longer limit on the reply would not help."""

_WITHHELD = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "model_armor",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "spii",
    }
)
_TOOL_CALL = frozenset(
    {
        "custom_tool_call",
        "function_call",
        "malformed_function_call",
        "malformed_tool_use",
        "tool_call",
        "tool_calls",
        "tool_use",
        "unexpected_tool_call",
    }
)
_GIVEN_UP = frozenset(
    {"abort", "cancelled", "error", "failed", "malformed_model_output", "timeout"}
)

_SHOWN = 500  # characters of a model's words in an error


def read_finish(reason: object) -> str | None:
    """Return `"stop"` or `"length"` for a client's finish reason, `None` for no reason.

    Raises:
        ModelError: The reply is a native tool call, or the server has abandoned it.
    """
    word = _word(reason)
    if word is None:
        return None
    if word in _CUT:
        return "length"
    if word in _TOOL_CALL:
        raise_tool_call()
    if word in _GIVEN_UP:
        failure = ModelError(f"the model's server gave the reply up ({word})")
        failure._is_transient = True
        raise failure
    return "stop"


def withheld(reason: object, why: object = None) -> str:
    """Return the message for a reply that the provider withholds; else an empty text."""
    word = _word(reason)
    if word is None or not (word in _WITHHELD or word.startswith("image_")):
        return ""
    told = f": {why}" if why else ""
    return f"the model's provider withheld the reply ({word}){told}"


def is_context_end(reason: object) -> bool:
    """Whether a reply was cut because the context of the model is full."""
    return _word(reason) in _FULL


def is_tool_call(kind: object) -> bool:
    """Whether blocks of this type are native tool calls."""
    return kind in _TOOL_CALL


def raise_tool_call() -> NoReturn:
    raise ModelError(
        "expected text from the model: got a native tool call: tools are called in the text of "
        "the reply, so call the client without tools of its own"
    )


def raise_reported(error: object, kind: str | None = None) -> NoReturn:
    """Raise the error that a server reports in a reply.

    Args:
        error: The report.
        kind: The kind of error, if the report itself does not have it.
    """
    told = field(error, "message") or error
    failure = ModelError(f"the model's server reported an error: {told}")
    codes = (kind, *(field(error, name) for name in ("type", "code", "status")))
    failure._codes = tuple(one for one in codes if isinstance(one, (str, int)))
    raise failure


def quote_text(words: str) -> str:
    """Return a text of the model in one line, truncated, for an error."""
    words = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} …"


def _word(reason: object) -> str | None:
    if reason is None:
        return None
    # Enums of clients: some have numbers as values.
    value = getattr(reason, "value", reason)
    if not isinstance(value, str):
        value = getattr(reason, "name", value)
    return str(value).lower().removeprefix("reason_")
