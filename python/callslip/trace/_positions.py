"""Positions in texts: the log counts bytes of UTF-8, a trace counts characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["characters_at", "span_of"]


def characters_at(text: str, offsets: Iterable[int]) -> dict[int, int]:
    """Return the position in characters of each offset in bytes.

    An offset inside of a character is that of its beginning, and one beyond the text is its end.
    """
    ordered = sorted(set(offsets))
    if text.isascii():
        return {offset: min(max(offset, 0), len(text)) for offset in ordered}
    data = text.encode("utf-8", "surrogatepass")
    found: dict[int, int] = {}
    byte = character = 0
    for offset in ordered:
        until = min(max(offset, 0), len(data))
        while until < len(data) and data[until] & 0xC0 == 0x80:
            until -= 1
        character += len(data[byte:until].decode("utf-8", "surrogatepass"))
        byte = until
        found[offset] = character
    return found


def span_of(record: Mapping[str, Any], name: str = "span") -> tuple[int, int] | None:
    """Return the span of this name in a part of the log, in bytes; `None` without one."""
    span = record.get(name)
    return None if span is None else (span["start"], span["end"])
