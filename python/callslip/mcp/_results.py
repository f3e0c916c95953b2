"""Content of an MCP server: results of calls, as JSON values with images and files; and prompts."""

from __future__ import annotations

from binascii import a2b_base64
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from callslip._base.redaction import Secrets
from callslip.mcp._faults import SILENT
from callslip.parts import File, received

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

__all__ = ["block_content", "error_of", "file_or_line", "redacted", "result_of"]


def result_of(result: CallToolResult) -> Any:
    """Return the structured result if there is one, else the content.

    Text is one string, even in several blocks. An image, sound or other data becomes an `Image` or
    a `File`, and any other block an object; several blocks become a list. A structured result is
    the first of such a list if there are images or files that it does not contain.
    """
    blocks = result.content
    if "structured_content" in result.model_fields_set:
        return _structured(result.structured_content, blocks)
    if all(block.type == "text" for block in blocks):
        return _text(result)
    values = [_value(block) for block in blocks]
    return values[0] if len(values) == 1 else values


def error_of(result: CallToolResult) -> str:
    """Return the message of a failed call."""
    return _text(result).strip() or SILENT


def block_content(block: ContentBlock) -> str | File:
    """Return a block of a prompt: text, an image or a file, or a line that describes it."""
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[{block.title or block.name}: {block.uri}]"
    if block.type == "resource" and (text := getattr(block.resource, "text", None)) is not None:
        return str(text)
    return _file(block) or _line(_source(block)[0], _size(_encoded(block) or ""))


def file_or_line(data: bytes, mime_type: str | None, uri: str) -> File | str:
    """Return the data of a resource, or a line that describes it if it is not what it claims."""
    return received(data, mime_type, _name(uri)) or _line(mime_type, len(data))


def redacted(value: Any, secrets: Secrets) -> Any:
    """Return content with the secrets replaced in its strings, keys and names of files."""
    if isinstance(value, list):
        return [redacted(one, secrets) for one in value]
    if isinstance(value, dict):
        return {secrets.redact(name): redacted(one, secrets) for name, one in value.items()}
    if isinstance(value, File) and value.name is not None:
        return received(value.data, value.media_type, secrets.redact(value.name))
    return secrets.redact_value(value)


def _structured(value: Any, blocks: list[ContentBlock]) -> Any:
    """Return a structured result with the images and files of its blocks."""
    files = {data: file for one in blocks if (data := _encoded(one)) and (file := _file(one))}
    if not files:
        return value
    placed: set[str] = set()
    value = _with_files(value, files, placed)
    others = [file for data, file in files.items() if data not in placed]
    return [value, *others] if others else value


def _with_files(value: Any, files: dict[str, File], placed: set[str]) -> Any:
    """Put images and files in the place of the blocks that some servers repeat in the result."""
    if isinstance(value, list):
        return [_with_files(one, files, placed) for one in value]
    if not isinstance(value, dict):
        return value
    inner = value.get("resource")
    data = inner.get("blob") if isinstance(inner, dict) else value.get("data")
    if "type" in value and isinstance(data, str) and data in files:
        placed.add(data)
        return files[data]
    return {name: _with_files(one, files, placed) for name, one in value.items()}


def _encoded(block: Any) -> str | None:
    """Return the binary data of a block in base64; `None` for other blocks."""
    if block.type == "resource":
        blob: str | None = getattr(block.resource, "blob", None)
        return blob
    return block.data if block.type in {"image", "audio"} else None


def _source(block: Any) -> tuple[str | None, str | None]:
    """Return the media type and the name of the binary data of a block."""
    if block.type == "resource":
        return block.resource.mime_type, _name(str(block.resource.uri))
    return block.mime_type, None


def _file(block: ContentBlock) -> File | None:
    """Return the image or file of a block; `None` if its data is not what it claims."""
    try:
        data = a2b_base64(_encoded(block) or "")
    except ValueError:
        return None
    file = received(data, *_source(block))
    if file is None or block.type == "resource":
        return file
    return file if file.media_type.startswith(f"{block.type}/") else None


def _name(uri: str) -> str | None:
    """Return the name of a file at the end of an address; `None` if there is none."""
    try:
        name = unquote(urlsplit(uri).path.rpartition("/")[2])
    except ValueError:
        return None
    return name if "." in name.strip(".") else None


def _line(mime_type: str | None, size: int) -> str:
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
    if (file := _file(block)) is not None:
        return file
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
