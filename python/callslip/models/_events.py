"""The events in which Anthropic, OpenAI's responses and Cohere stream a reply."""

from __future__ import annotations

from callslip.models._blocks import reasoning_of, text_of
from callslip.models._counts import read_usage
from callslip.models._ends import raise_reported, raise_tool_call, read_finish, withheld
from callslip.models._fields import field, first_field
from callslip.models._piece import Piece

__all__ = ["read_event", "read_response"]

# The events of Anthropic's stream helper, which repeat what its `content_block_delta` said.
_ECHOES = frozenset({"text", "thinking", "citation", "signature", "input_json", "compaction"})
_COHERE = ("message-", "content-", "citation-", "tool-plan-", "debug")


def read_event(item: object) -> Piece | None:
    """Read an event of a stream.

    Returns:
        What it says, perhaps nothing; `None` if the type is that of no event.

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
        kept = withheld(reason, field(field(delta, "stop_details"), "explanation"))
        return Piece("", None if kept else read_finish(reason), usage, withheld=kept)
    return Piece()


def _read_response_event(item: object, kind: str) -> Piece:
    delta = text_of(field(item, "delta"))
    if kind == "output_text.delta":
        return Piece(delta)
    if kind == "refusal.delta":
        return Piece(refusal=delta)
    if kind in ("reasoning_text.delta", "reasoning_summary_text.delta"):
        return Piece(reasoning=delta)
    if kind == "output_item.added":
        text_of([field(item, "item")])
    if kind in ("completed", "incomplete", "failed"):
        end = _read_whole(field(item, "response"))
        return Piece("", end.finish_reason, end.usage, withheld=end.withheld)
    return Piece()


def read_response(item: object) -> Piece | None:
    """Read a whole response of OpenAI's responses; `None` if it is none.

    Raises:
        ModelError: It failed, or holds a native tool call.
    """
    return _read_whole(item) if field(item, "object") == "response" else None


def _read_whole(item: object) -> Piece:
    status = field(item, "status")
    if status in ("failed", "cancelled"):
        raise_reported(field(item, "error") or f"the response is {status}")
    output = field(item, "output")
    piece = Piece(usage=read_usage(field(item, "usage")), is_service=True)
    for part in output if isinstance(output, (list, tuple)) else ():
        content = field(part, "content")
        if field(part, "type") == "reasoning":
            # Models that keep their reasoning to themselves give a summary in its place.
            piece.reasoning += reasoning_of(content) or reasoning_of(field(part, "summary"))
            continue
        blocks = content if field(part, "type") == "message" else [part]
        piece.text += text_of(blocks)
        piece.refusal += text_of(blocks, kind="refusal")
    reason = field(field(item, "incomplete_details"), "reason") or status
    piece.withheld = withheld(reason)
    piece.finish_reason = None if piece.withheld else read_finish(reason)
    return piece


def _read_cohere(item: object, kind: str) -> Piece:
    delta = field(item, "delta")
    if kind in ("content-start", "content-delta"):
        content = field(field(delta, "message"), "content")
        text, thinking = field(content, "text"), field(content, "thinking")
        return Piece(text_of(text), reasoning=text_of(thinking))
    if kind == "message-end":
        reason = first_field(delta, "finish_reason")
        return Piece("", read_finish(reason), read_usage(field(delta, "usage")))
    return Piece()
