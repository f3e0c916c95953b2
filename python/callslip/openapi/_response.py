"""Responses as values for the model: JSON, text, images and files."""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Mapping, Sequence
from email.message import Message
from email.utils import collapse_rfc2231_value
from http import HTTPStatus
from typing import NamedTuple

from callslip._base.json import result_json, to_json
from callslip._core import Part, json_text
from callslip.parts import File, received

__all__ = ["Content", "content_of", "retry_hint", "status_line", "with_headers"]

_TOLD = (
    "link",
    "content-range",
    "x-total-count",
    "x-total",
    "x-total-pages",
    "x-next-page",
    "x-pagination",
)
"""Headers of lists: only they say whether there is more, and where."""

_MEDIA = ("image/", "audio/", "video/", "application/pdf")
_UNTOLD = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""What servers say of files whose type they do not know."""

_SLOW_OR_ODD = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"}
)
"""Encodings of Python that no page uses: they are very slow on a long text, or warn."""


class Content(NamedTuple):
    """The content of a response.

    Attributes:
        json: The content as JSON text. JSON of the server is not changed.
        text: The content in one line, if it is a text, an image or a file; else `None`.
        parts: The image or file for which there is a mark in the JSON.
    """

    json: str
    text: str | None = None
    parts: Sequence[Part] = ()


def content_of(status: int, headers: Mapping[str, str], body: bytes) -> Content:
    """Read a response. Never raises: an invalid body is treated as text or bytes."""
    if not body:
        return Content(to_json({"status": status}))
    media = headers.get("content-type", "")
    essence = media.partition(";")[0].strip().lower()
    if (file := _file(essence, headers, body)) is not None:
        return Content(*_marked(file))
    if essence == "application/json" or essence.endswith("+json") or not essence:
        found = _json(body)
        if found is not None:
            is_text = found.startswith('"')
            return Content(found, _in_one_line(json.loads(found)) if is_text else None)
    text = _text(body, media)
    if text is None:
        encoded = base64.b64encode(body).decode()
        essence = essence or "application/octet-stream"
        return Content(to_json({"content_type": essence, "size": len(body), "base64": encoded}))
    return Content(to_json(text), _in_one_line(text))


def with_headers(
    content: Content, status: int, headers: Mapping[str, str], body: bytes, *, etag: bool
) -> Content:
    """Return the content of a success with the headers that a model needs beside it.

    Args:
        content: The content.
        status: The status.
        headers: The headers, by names in lower case.
        body: The body.
        etag: Whether an operation of the document can use the `ETag`.
    """
    names = [name for name in _TOLD if headers.get(name, "").strip()]
    # Where what was made stands, or where to ask how far it is.
    if (status in (201, 202) or not body) and headers.get("location"):
        names.append("location")
    if status == 202 and headers.get("retry-after"):
        names.append("retry-after")
    if etag and headers.get("etag"):
        names.append("etag")
    if not names:
        return content
    told = ",".join(f"{to_json(name)}:{to_json(headers[name])}" for name in names)
    if not body:
        return Content(f"{content.json[:-1]},{told}}}")
    return content._replace(json=f'{{"body":{content.json},{told}}}')


def retry_hint(operation: str) -> str:
    """Return the hint for the model after a transient failure."""
    if operation.partition(" ")[0] in {"POST", "PATCH"}:
        return "Whether it took effect is not known: check that before making the same call again."
    return "This may pass: the same call may be made again."


def status_line(status: int, reason: str, headers: Mapping[str, str]) -> str:
    """Return the status as text, with the target of a redirect."""
    said = f"HTTP {status} {_in_one_line(reason) or _phrase(status)}".rstrip()
    where = _in_one_line(headers.get("location", ""))
    if where:
        said = f"{said}, location: {where}"
    after = _in_one_line(headers.get("retry-after", ""))[:64]
    if after:
        said = f"{said}, retry after {f'{after} seconds' if after.isdecimal() else after}"
    return said


def _file(essence: str, headers: Mapping[str, str], body: bytes) -> File | None:
    """Return a response that is an image, a PDF, sound or video; `None` for any other.

    A body of another type than the response says stays text: an SVG, a list of recordings, a
    message of a proxy.
    """
    if essence in _UNTOLD:
        file = received(body, None, _file_name(headers))
        return None if file is None or file.kind == "file" else file
    if not essence.startswith(_MEDIA):
        return None
    file = received(body, essence, _file_name(headers))
    if file is None or file.kind in {"image", "pdf"}:
        return file
    return file if _text(body, "") is None else None


def _file_name(headers: Mapping[str, str]) -> str | None:
    """Return the name that a response gives its file."""
    message = Message()
    message["content-disposition"] = headers.get("content-disposition", "")
    try:
        told = message.get_params([], header="content-disposition")
        names = [value for key, value in told if key.lower() == "filename"]
        # One that is encoded (`filename*`) is meant for those who can read it.
        names.sort(key=lambda value: isinstance(value, str))
        name = collapse_rfc2231_value(names[0]) if names else ""
    except (ValueError, LookupError):
        return None
    return name.replace("\\", "/").rpartition("/")[2] or None


def _marked(file: File) -> tuple[str, str, list[Part]]:
    """Return the JSON, the line and the part of a file."""
    text, parts = result_json(file)
    return text, file._part.line, parts


def _text(body: bytes, media: str) -> str | None:
    try:
        text = body.decode(_charset(media))
        # Raises for halves of surrogate pairs, which some encodings contain.
        text.encode()
    except (ValueError, LookupError):
        return None
    return text


def _json(body: bytes) -> str | None:
    try:
        return json_text(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def _in_one_line(text: str) -> str:
    # Lines of a server could imitate those of the protocol.
    return " ".join(text.split())


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _charset(media: str) -> str:
    message = Message()
    message["content-type"] = media
    charset = message.get_content_charset("utf-8")
    name = codecs.lookup(charset).name
    if name in _SLOW_OR_ODD:
        raise LookupError(name)
    return name
