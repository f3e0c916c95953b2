"""Results of calls of an MCP server, as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

__all__ = ["error_of", "result_of"]


def result_of(result: CallToolResult) -> Any:
    """Return the structured result if there is one, else the content.

    Text is one string, even in several blocks. Any other block becomes an object; several blocks
    become a list. Data is the last field, so that a truncated result keeps the others.
    """
    if "structured_content" in result.model_fields_set:
        return result.structured_content
    blocks = result.content
    if all(block.type == "text" for block in blocks):
        return _text(result)
    values = [_value(block) for block in blocks]
    return values[0] if len(values) == 1 else values


def error_of(result: CallToolResult) -> str:
    """Return the message of a failed call."""
    return _text(result).strip() or "it failed without saying why."


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def _value(block: ContentBlock) -> Any:
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        known = {
            "type": block.type,
            "uri": block.uri,
            "name": block.name,
            "title": block.title,
            "description": block.description,
            "mime_type": block.mime_type,
            "size": block.size,
        }
        return {key: value for key, value in known.items() if value is not None}
    if block.type == "resource":
        resource: Any = block.resource
        kind = {} if resource.mime_type is None else {"mime_type": resource.mime_type}
        text = getattr(resource, "text", None)
        content = _data(resource.blob) if text is None else {"text": text}
        return {"type": block.type, "uri": resource.uri, **kind, **content}
    return {"type": block.type, "mime_type": block.mime_type, **_data(block.data)}


def _data(base64: str) -> dict[str, Any]:
    """Return the data and its number of bytes."""
    digits = len(base64.rstrip("="))
    return {"size": digits * 3 // 4, "data": base64}
