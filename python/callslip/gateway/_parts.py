"""Images and files in the messages of a request."""

from __future__ import annotations

import base64
import binascii

from callslip.errors import UsageError
from callslip.gateway._fields import refusal, text
from callslip.gateway._refused import Refused
from callslip.parts import IMAGE_TYPES, File, Image

__all__ = ["part_of_base64", "part_of_url"]


def part_of_url(value: object, place: str, name: str | None = None) -> File:
    """Return the image or file in a `data:` URL. The gateway fetches no other URLs.

    Raises:
        Refused: It is another URL, or its content can't be used.
    """
    url = value if isinstance(value, str) else ""
    head, _, data = url.partition(",")
    media_type, _, form = head.removeprefix("data:").partition(";")
    if not head.startswith("data:") or form != "base64":
        raise refusal(place, "a data: URL in base64", value, "pass the content: nothing is fetched")
    return part_of_base64(data, media_type, place, name)


def part_of_base64(value: object, media_type: object, place: str, name: str | None = None) -> File:
    """Return the image or file in base64.

    Raises:
        Refused: Its content can't be used.
    """
    kind = text(media_type, place)
    try:
        data = base64.b64decode(text(value, place), validate=True)
        if kind in IMAGE_TYPES:
            return Image(data, media_type=kind, name=name)
        return File(data, media_type=kind or None, name=name)
    except (binascii.Error, UsageError) as error:
        raise Refused(400, f"{place} can't be read: {error}", param=place) from error
