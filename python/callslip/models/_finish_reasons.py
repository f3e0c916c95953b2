"""Finish reasons of replies, from the values of each client."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NoReturn

from callslip._base.redaction import redact_likely_secrets
from callslip.errors import ModelError
from callslip.models._fields import field

__all__ = [
    "is_context_end",
    "is_tool_call",
    "quote_body",
    "quote_text",
    "raise_reported",
    "raise_tool_call",
    "read_finish",
    "reported_in",
    "withheld",
]

_WHOLE = frozenset(
    {
        "complete",
        "completed",
        "done",
        "end",
        "end_of_text",
        "end_of_turn",
        "end_turn",
        "endoftext",
        "eos",
        "eos_token",
        "eot",
        "finish",
        "finished",
        "stop",
        "stop_sequence",
        "stop_sequence_reached",
        "stop_string",
        "stop_token",
        "succeeded",
    }
)
"""The reasons of a whole reply. Any that is not known may be that of a part."""
_NONE = frozenset(
    {"", "in_progress", "load", "none", "not_finished", "null", "queued", "unspecified"}
)
"""Values that some servers write where others have none; Ollama's `load` is for no messages."""
_CUT = frozenset(
    {
        "continuation",
        "incomplete",
        "length",
        "max_context",
        "max_len",
        "max_length",
        "max_new_tokens",
        "max_output_tokens",
        "max_tokens",
        "maximum_tokens",
        "model_context_window_exceeded",
        "model_length",
        "pause_turn",
        "time_limit",
        "token_limit",
    }
)
_FULL = frozenset({"max_context", "model_context_window_exceeded", "model_length"})
"""Those of `_CUT` after which a longer limit on the reply would not help."""

_WITHHELD = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "error_toxic",
        "guardrail_intervened",
        "language",
        "model_armor",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "sensitive",
        "spii",
    }
)
_TOOL_CALL = frozenset(
    {
        "custom_tool_call",
        "function_call",
        "malformed_function_call",
        "malformed_tool_use",
        "too_many_tool_calls",
        "tool_call",
        "tool_calls",
        "tool_use",
        "unexpected_tool_call",
    }
)
_GIVEN_UP = frozenset(
    {
        "abort",
        "aborted",
        "cancelled",
        "engine_error",
        "error",
        "error_limit",
        "failed",
        "insufficient_system_resource",
        "internal_error",
        "malformed_model_output",
        "malformed_response",
        "model_error",
        "network_error",
        "server_error",
        "timeout",
    }
)

_SHOWN = 500  # characters of a model's words in an error


def read_finish(reason: object) -> str | None:
    """Return `"stop"`, `"length"` or `"unknown"` for a client's finish reason; `None` for none.

    A reply with a reason that is not known is not known to be whole: `"unknown"`.

    Raises:
        ModelError: The reply is a native tool call, or the server has abandoned it.
    """
    word = _word(reason)
    if word is None:
        return None
    if word in _WHOLE:
        return "stop"
    if word in _TOOL_CALL:
        raise_tool_call()
    if word in _GIVEN_UP:
        failure = ModelError(f"the model's server gave the reply up ({word})")
        failure._is_transient = True
        raise failure
    return "length" if word in _CUT else "unknown"


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
        'the reply, so call the client without tools of its own, or pass protocol="native"'
    )


_PLACES = ("error", "base_resp", "detail", "errors", "fault")
"""The fields in which servers put the report of an error, whole or its words alone."""
_WORDS = ("message", "msg", "status_msg", "error_message", "error_msg", "detail", "error", "title")
_CODES = ("type", "code", "status", "error_type", "error_code", "status_code")
_MINIMAX = {
    "1000": "server_error",
    "1001": "timeout",
    "1002": "rate_limit",
    "1008": "insufficient_quota",
    "1013": "internal_error",
    "1024": "internal_error",
    "1026": "content_filter",
    "1027": "content_filter",
    "1033": "server_error",
    "1039": "rate_limit",
    "1041": "rate_limit",
}
"""The codes of `base_resp`: https://platform.minimax.io/docs/api-reference/errorcode"""


def reported_in(item: object) -> object | None:
    """Return the error that a body without a reply reports; `None` if it reports none.

    Args:
        item: The body, as a dict or as an object of a client.
    """
    for name in _PLACES:
        told = field(item, name)
        if told and not (name == "base_resp" and field(told, "status_code") in (0, "0", None)):
            return told if isinstance(told, Mapping) or hasattr(told, "model_dump") else item
    is_error = field(item, "object") == "error" or field(item, "error_type")
    has_words = any(isinstance(field(item, name), str) for name in _WORDS)
    has_code = any(field(item, name) not in (None, 0, "0", 200) for name in ("code", "status_code"))
    return item if is_error or (has_words and has_code) else None


def raise_reported(error: object, kind: str | None = None) -> NoReturn:
    """Raise the error that a server reports in a reply.

    Args:
        error: The report.
        kind: The kind of error, if the report itself does not have it.
    """
    told = (error, *(field(error, name) for name in _WORDS))
    words = next((one for one in told if isinstance(one, str) and one), None)
    failure = ModelError(
        "the model's server reported an error: "
        + (quote_body(error) if words is None else redact_likely_secrets(words))
    )
    codes = [kind, *(field(error, name) for name in _CODES)]
    if field(error, "status_msg") is not None:
        codes.append(_MINIMAX.get(str(field(error, "status_code"))))
    failure._codes = tuple(one for one in codes if isinstance(one, (str, int)))
    raise failure


def quote_body(body: object) -> str:
    """Return the JSON of a body in one line, truncated and without likely secrets, for an error."""
    dump = getattr(body, "model_dump", None)
    if callable(dump):
        try:
            body = dump(exclude_none=True, warnings=False)
        except Exception:  # noqa: BLE001  # the client's own object is at fault
            body = repr(body)
    text = body if isinstance(body, str) else json.dumps(body, default=repr, ensure_ascii=False)
    return quote_text(text)


def quote_text(words: str) -> str:
    """Return a text in one line, truncated and without likely secrets, for an error."""
    words = redact_likely_secrets(words)
    words = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} …"


def _word(reason: object) -> str | None:
    """Return a finish reason in small letters with `_` between its words; `None` for none."""
    if reason is None:
        return None
    # Enums of clients: some have numbers as values.
    value = getattr(reason, "value", reason)
    if not isinstance(value, str):
        value = getattr(reason, "name", value)
    word = re.sub(r"[^a-z0-9]+", "_", str(value).lower()).strip("_")
    word = word.removeprefix("finish_").removeprefix("reason_")
    return None if word in _NONE else word
