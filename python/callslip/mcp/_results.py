"""Results of calls of an MCP server, as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

__all__ = ["binary_line", "block_text", "error_of", "result_of"]


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


def block_text(block: ContentBlock) -> str:
    """Return a block as text. Binary data becomes one line that describes it."""
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[{block.title or block.name}: {block.uri}]"
    if block.type == "resource":
        resource: Any = block.resource
        text: str | None = getattr(resource, "text", None)
        return binary_line(resource.mime_type, _size(resource.blob)) if text is None else text
    return binary_line(block.mime_type, _size(block.data))


def binary_line(mime_type: str | None, size: int) -> str:
    """Return the line that stands for binary data in a text: `[image/png, 24 KB]`."""
    unit, *larger = ("bytes", "KB", "MB", "GB")
    while size >= 1000 and larger:
        size, unit = -(-size // 1000), larger.pop(0)
    return f"[{mime_type or 'binary data'}, {size} {unit}]"


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
    return {"size": _size(base64), "data": base64}


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4
