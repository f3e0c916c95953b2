"""Responses of Gemini and Bedrock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callslip.errors import ModelError
from callslip.models._blocks import reasoning_of, text_of
from callslip.models._fields import field, first_field
from callslip.models._finish_reasons import raise_reported, raise_tool_call
from callslip.models._piece import Piece, check_end
from callslip.models._token_counts import read_usage

__all__ = ["candidate_of", "parts_of", "read_bedrock", "read_gemini", "refused_call"]


_REFUSED = frozenset({"MALFORMED_FUNCTION_CALL", "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL"})
"""The finish reasons of calls that Gemini could not read."""


def read_gemini(item: object, *, takes_calls: bool = False) -> Piece | None:
    """Read a response of Gemini, or a chunk of its stream.

    Args:
        item: The response or chunk.
        takes_calls: Whether the caller reads the tool calls in it, and the faults of calls.
            Default false: both are errors.
    """
    candidates = field(item, "candidates")
    feedback = first_field(item, "prompt_feedback", "promptFeedback")
    blocked = first_field(feedback, "block_reason", "blockReason")
    if not isinstance(candidates, (list, tuple)) and blocked is None:
        return None
    piece = Piece(usage=read_usage(first_field(item, "usage_metadata", "usageMetadata")))
    if not candidates:
        word = getattr(blocked, "value", blocked)
        piece.withheld = "" if word is None else f"the model's provider refused the prompt ({word})"
        return check_end(piece, None)
    first = candidate_of(item)
    for part in parts_of(item):
        if first_field(part, "function_call", "functionCall") is not None and not takes_calls:
            raise_tool_call()
        words = field(part, "text")
        if not isinstance(words, str):
            continue
        if field(part, "thought") is True:
            piece.reasoning += words
        else:
            piece.text += words
    if not isinstance(field(field(first, "content"), "parts"), (list, tuple)):
        piece.text = text_of(field(item, "text"))
    reason = first_field(first, "finish_reason", "finishReason")
    if takes_calls:
        _check_signatures(reason)
        reason = reason if refused_call(first) is None else "stop"
    return check_end(piece, reason, first_field(first, "finish_message", "finishMessage"))


def candidate_of(item: object) -> object:
    """Return the first candidate of a response of Gemini."""
    candidates = field(item, "candidates")
    if not isinstance(candidates, (list, tuple)):
        return candidates
    return candidates[0] if candidates else None


def parts_of(item: object) -> Sequence[object]:
    """Return the parts of a response of Gemini, or of a chunk."""
    parts = field(field(candidate_of(item), "content"), "parts")
    return parts if isinstance(parts, (list, tuple)) else ()


def refused_call(candidate: object) -> tuple[str, str] | None:
    """Return Gemini's reason and message for a call that it could not read.

    Returns:
        `None` if there is no such call.
    """
    reason = first_field(candidate, "finish_reason", "finishReason")
    word = str(getattr(reason, "value", reason))
    if word not in _REFUSED:
        return None
    told = first_field(candidate, "finish_message", "finishMessage")
    return word.lower(), told if isinstance(told, str) else ""


def _check_signatures(reason: object) -> None:
    if getattr(reason, "value", reason) == "MISSING_THOUGHT_SIGNATURE":
        raise ModelError(
            "expected the thought signatures of earlier calls in the request: Gemini misses one "
            "(MISSING_THOUGHT_SIGNATURE); pass the messages with the items and data of each reply"
        )


_BEDROCK_FAULT = "Exception"
_BEDROCK_SILENT = frozenset({"messageStart", "contentBlockStop"})


def read_bedrock(item: object) -> Piece | None:
    """Read a response of Bedrock's `converse`, or an event of `converse_stream`."""
    if not isinstance(item, Mapping):
        return None
    message = field(field(item, "output"), "message")
    if message is not None:
        return _read_converse(item, message)
    if len(item) != 1:
        return None
    ((kind, told),) = item.items()
    if kind == "contentBlockStart":
        if field(field(told, "start"), "toolUse") is not None:
            raise_tool_call()
        return Piece(is_service=True)
    if kind == "contentBlockDelta":
        delta = field(told, "delta")
        return Piece(text_of([delta]), reasoning=reasoning_of([delta]), is_service=True)
    if kind == "messageStop":
        return check_end(Piece(), field(told, "stopReason"))
    if kind == "metadata":
        return Piece(usage=read_usage(field(told, "usage")), is_service=True)
    if isinstance(kind, str) and kind.endswith(_BEDROCK_FAULT):
        raise_reported(told, kind)
    return Piece(is_service=True) if kind in _BEDROCK_SILENT else None


def _read_converse(item: object, message: object) -> Piece:
    content = field(message, "content")
    blocks = content if isinstance(content, (list, tuple)) else ()
    if any(field(block, "toolUse") is not None for block in blocks):
        raise_tool_call()
    piece = Piece(text_of(content), usage=read_usage(field(item, "usage")))
    piece.reasoning = reasoning_of(content)
    return check_end(piece, field(item, "stopReason"))
