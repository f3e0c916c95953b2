"""Responses as a model is told of them."""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from typing import NamedTuple

from callslip._core import json_text
from callslip._json import to_json

__all__ = ["TRANSIENT", "Content", "again", "content_of", "status_line"]

TRANSIENT = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of what may pass by itself."""

_SLOW_OR_ODD = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"}
)
"""Encodings of Python's that no page is written in: a long text takes them hours, or they warn."""


class Content(NamedTuple):
    """What a response says.

    Attributes:
        json: As JSON text, in the server's own spelling where it was JSON.
        text: In one line, where it is a text.
    """

    json: str
    text: str | None = None


def content_of(status: int, headers: Mapping[str, str], body: bytes) -> Content:
    """Read a response. Never raises: what the body is not, it is not taken for."""
    if not body:
        told: dict[str, object] = {"status": status}
        if "location" in headers:
            told["location"] = headers["location"]
        return Content(to_json(told))
    media = headers.get("content-type", "")
    essence = media.partition(";")[0].strip().lower()
    if essence == "application/json" or essence.endswith("+json") or not essence:
        found = _json(body)
        if found is not None:
            is_text = found.startswith('"')
            return Content(found, _in_one_line(json.loads(found)) if is_text else None)
    try:
        text = body.decode(_charset(media))
        # Some encodings have halves of surrogate pairs, which have no place in UTF-8.
        text.encode()
    except (ValueError, LookupError):
        encoded = base64.b64encode(body).decode()
        essence = essence or "application/octet-stream"
        return Content(to_json({"content_type": essence, "size": len(body), "base64": encoded}))
    return Content(to_json(text), _in_one_line(text))


def again(operation: str) -> str:
    """Return what may be done after a failure that may pass by itself."""
    if operation.partition(" ")[0] in {"POST", "PATCH"}:
        return "Whether it took effect is not known: check that before making the same call again."
    return "This may pass: the same call may be made again."


def status_line(status: int, reason: str, headers: Mapping[str, str]) -> str:
    """Return the status in words, and where it sends the caller."""
    said = f"HTTP {status} {_in_one_line(reason) or _phrase(status)}".rstrip()
    where = _in_one_line(headers.get("location", ""))
    if where:
        said = f"{said}, location: {where}"
    after = _in_one_line(headers.get("retry-after", ""))[:64]
    if after:
        said = f"{said}, retry after {f'{after} seconds' if after.isdecimal() else after}"
    return said


def _json(body: bytes) -> str | None:
    try:
        return json_text(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def _in_one_line(text: str) -> str:
    # A line of a server's own could pass for one of the protocol's.
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
