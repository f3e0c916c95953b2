"""Text and reasoning of a content field: a string, nothing, or a list of typed blocks."""

from __future__ import annotations

from collections.abc import Iterator

from callslip.models._fields import field, first_field
from callslip.models._finish_reasons import is_tool_call, raise_tool_call

__all__ = ["reasoning_of", "text_of"]

_TEXT = ("text", "output_text", None)


def text_of(content: object, *, kind: str = "text") -> str:
    """Return the text of a content field; with `kind="refusal"`, the text of its refusals.

    Raises:
        ModelError: A block is a native tool call.
    """
    if isinstance(content, str):
        return str(content) if kind == "text" else ""
    text = ""
    for block in _blocks(content):
        if isinstance(block, str):
            text += block if kind == "text" else ""
            continue
        told = field(block, "type")
        if is_tool_call(told):
            raise_tool_call()
        if told in (_TEXT if kind == "text" else (kind,)):
            piece = field(block, kind)
            text += piece if isinstance(piece, str) else ""
    return text


def reasoning_of(content: object) -> str:
    """Return the reasoning in the blocks of a content field."""
    text = ""
    for block in _blocks(content):
        if isinstance(block, str):
            continue
        # Bedrock keeps it in a block within the block; its stream does not.
        inner = field(block, "reasoningContent")
        inner = field(inner, "reasoningText") or inner
        if inner is not None:
            piece = field(inner, "text")
        elif field(block, "type") in ("thinking", "reasoning", "reasoning_text", "summary_text"):
            piece = first_field(block, "thinking", "reasoning", "text")
        else:
            continue
        # Mistral has a list of blocks where others have a string.
        text += piece if isinstance(piece, str) else text_of(piece)
    return text


def _blocks(content: object) -> Iterator[object]:
    return iter(content if isinstance(content, (list, tuple)) else ())
