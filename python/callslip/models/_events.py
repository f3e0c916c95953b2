"""Stream events of Anthropic, of OpenAI's responses and of Cohere."""

from __future__ import annotations

from callslip.models._blocks import reasoning_of, text_of
from callslip.models._fields import field, first_field
from callslip.models._finish_reasons import raise_reported, raise_tool_call
from callslip.models._piece import Piece, check_end
from callslip.models._token_counts import read_usage

__all__ = ["REPLY_TOOL", "read_event", "read_response", "response_end"]

REPLY_TOOL = "reply"
"""The custom tool whose input is the reply, where a grammar is sent as one."""

# Events of Anthropic's stream helper, which repeat its `content_block_delta`.
_ECHOES = frozenset({"text", "thinking", "citation", "signature", "input_json", "compaction"})
_COHERE = ("message-", "content-", "citation-", "tool-plan-", "debug")


def read_event(item: object) -> Piece | None:
    """Read an event of a stream.

    Returns:
        The piece of the reply, which may be empty; `None` for a type that is not an event.

    Raises:
        ModelError: It reports an error, or begins a native tool call.
    """
    kind = field(item, "type")
    if not isinstance(kind, str):
        return None
    if kind.startswith(("content_block_", "message_")) or kind == "ping":
        piece = _read_anthropic(item, kind)
    elif kind == "error":
        raise_reported(field(item, "error") or item)
    elif kind.startswith("response."):
        piece = _read_response_event(item, kind.removeprefix("response."))
    elif kind.startswith("tool-call-"):
        raise_tool_call()
    elif kind.startswith(_COHERE):
        piece = _read_cohere(item, kind)
    elif kind in _ECHOES and field(item, "snapshot") is not None:
        piece = Piece()
    else:
        return None
    piece.is_service = True
    return piece


def _read_anthropic(item: object, kind: str) -> Piece:
    delta = field(item, "delta")
    if kind == "content_block_delta":
        told = field(delta, "type")
        if told == "text_delta":
            return Piece(text_of(field(delta, "text")))
        if told == "thinking_delta":
            return Piece(reasoning=text_of(field(delta, "thinking")))
    elif kind == "content_block_start":
        block = [field(item, "content_block")]
        return Piece(text_of(block), reasoning=reasoning_of(block))
    elif kind == "message_start":
        return Piece(usage=read_usage(field(field(item, "message"), "usage")))
    elif kind == "message_delta":
        reason, usage = field(delta, "stop_reason"), read_usage(field(item, "usage"))
        why = field(field(delta, "stop_details"), "explanation")
        return check_end(Piece(usage=usage), reason, why)
    return Piece()


def _read_response_event(item: object, kind: str) -> Piece:
    delta = text_of(field(item, "delta"))
    if kind in ("output_text.delta", "custom_tool_call_input.delta"):
        return Piece(delta)
    if kind == "refusal.delta":
        return Piece(refusal=delta)
    if kind in ("reasoning_text.delta", "reasoning_summary_text.delta"):
        return Piece(reasoning=delta)
    if kind == "output_item.added":
        _read_item(field(item, "item"))
    if kind in ("completed", "incomplete", "failed"):
        piece = _read_whole(field(item, "response"))
        piece.is_repeat = True
        return piece
    return Piece()


def read_response(item: object) -> Piece | None:
    """Read a whole response of OpenAI's responses; `None` if it is none.

    Raises:
        ModelError: It failed, or holds a native tool call.
    """
    return _read_whole(item) if field(item, "object") == "response" else None


def _read_whole(item: object) -> Piece:
    output = field(item, "output")
    piece = response_end(item)
    for part in output if isinstance(output, (list, tuple)) else ():
        content = field(part, "content")
        if field(part, "type") == "reasoning":
            # Models that hide their reasoning return a summary instead.
            piece.reasoning += reasoning_of(content) or reasoning_of(field(part, "summary"))
            continue
        if field(part, "type") == "message":
            piece.text += text_of(content)
            piece.refusal += text_of(content, kind="refusal")
        else:
            piece.text += _read_item(part)
    return piece


def response_end(item: object) -> Piece:
    """Read the counts and the end of a whole response of OpenAI's responses.

    Raises:
        ModelError: It failed.
    """
    status = field(item, "status")
    if status in ("failed", "cancelled"):
        raise_reported(field(item, "error") or f"the response is {status}")
    piece = Piece(usage=read_usage(field(item, "usage")))
    return check_end(piece, field(field(item, "incomplete_details"), "reason") or status)


def _read_item(item: object) -> str:
    """Read an item of a response's output that is no message."""
    if field(item, "type") == "custom_tool_call" and field(item, "name") == REPLY_TOOL:
        return text_of(field(item, "input"))
    return text_of([item])


def _read_cohere(item: object, kind: str) -> Piece:
    delta = field(item, "delta")
    if kind in ("content-start", "content-delta"):
        content = field(field(delta, "message"), "content")
        text, thinking = field(content, "text"), field(content, "thinking")
        return Piece(text_of(text), reasoning=text_of(thinking))
    if kind == "message-end":
        reason = first_field(delta, "finish_reason")
        return check_end(Piece(usage=read_usage(field(delta, "usage"))), reason)
    return Piece()
