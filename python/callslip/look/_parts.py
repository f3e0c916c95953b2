"""Images and files on a page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

from callslip.errors import StoreError
from callslip.look._markup import Markup, el, joined
from callslip.look._text import Texts
from callslip.parts import File, has_too_many_pixels

__all__ = ["Parts"]

# An SVG is a document of its own, and a PDF runs in a program of its own.
_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MOST_BYTES = 1024 * 1024


class Parts:
    """The images and files of a run.

    Args:
        parts: Each by its label.
        texts: How texts are shown.
        images: Whether images are shown, and not their names alone.
    """

    def __init__(self, parts: Mapping[str, File], texts: Texts, *, images: bool) -> None:
        self._parts = parts
        self._texts = texts
        self._images = images

    def of_task(self, elsewhere: Iterable[str]) -> Markup:
        """Return those of the user that do not belong to a later message."""
        known = set(elsewhere)
        own = (label for label in self._parts if label.startswith("U") and label not in known)
        return self.named(own)

    def named(self, labels: Iterable[str]) -> Markup:
        """Return those with these labels as markup."""
        return joined(self._figure(self._parts[one]) for one in labels if one in self._parts)

    def _figure(self, part: File) -> Markup:
        name = f"{part.name}, " if part.name else ""
        about = self._texts.line(f"{part.label}: {name}{part.media_type}, {part.size:,} bytes")
        data = self._data(part)
        if data is None:
            return el("figure", el("figcaption", about))
        text = base64.b64encode(data).decode()
        image = el("img", alt=about, src=f"data:{part.media_type};base64,{text}")
        return el("figure", image, el("figcaption", about))

    def _data(self, part: File) -> bytes | None:
        if not self._images or part.media_type not in _SHOWN or part.size > _MOST_BYTES:
            return None
        if has_too_many_pixels(part._part):
            return None
        try:
            data = part.data
        except StoreError:  # the log came without the bytes
            return None
        return data if len(data) <= _MOST_BYTES else None
