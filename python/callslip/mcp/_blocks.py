"""Images and files of an answer, as content blocks for the client of an agent's MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from callslip._base import _lazy
from callslip.parts import File

if TYPE_CHECKING:
    from mcp_types import ContentBlock

    from callslip.runs import Run

__all__ = ["blocks_of", "shown_parts"]


def shown_parts(value: Any, run: Run) -> tuple[Any, list[File]]:
    """Return an answer and those parts of its run whose lines are in it.

    In the answer they have no labels any more, because a label has its meaning in one run.
    """
    found: dict[str, File] = {}
    parts = run.parts.values() if run._core.has_parts else ()
    return (_unlabelled(value, parts, found), list(found.values())) if parts else (value, [])


def _unlabelled(value: Any, parts: Any, found: dict[str, File]) -> Any:
    if isinstance(value, list):
        return [_unlabelled(one, parts, found) for one in value]
    if isinstance(value, dict):
        return {name: _unlabelled(one, parts, found) for name, one in value.items()}
    if not isinstance(value, str):
        return value
    for file in parts:
        line = file._part.line
        if line in value:
            found[line] = file
            value = value.replace(line, file._part.marked("").line)
    return value


def blocks_of(files: list[File], run_id: str) -> list[ContentBlock]:
    """Return images and sound as such, and any other file as an embedded resource.

    Raises:
        StoreError: The bytes cannot be read.
    """
    return [_block(file, run_id) for file in files]


def _block(file: File, run_id: str) -> ContentBlock:
    types, data = _lazy.mcp_types, file.to_base64()
    if file.kind == "image":
        return types.ImageContent(type="image", mime_type=file.media_type, data=data)
    if file.kind == "audio":
        return types.AudioContent(type="audio", mime_type=file.media_type, data=data)
    name = "" if file.name is None else f"/{quote(file.name)}"
    blob = types.BlobResourceContents(
        uri=f"callslip://{run_id}/{file.label}{name}", mime_type=file.media_type, blob=data
    )
    return types.EmbeddedResource(type="resource", resource=blob)
