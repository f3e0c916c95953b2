"""Places of leaves in JSON text as pages show it."""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from typing import Any

from callslip._base.json_pointer import pointer_step, value_at

__all__ = ["place_in_json", "places_of_leaves"]

# The last string may be cut.
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def places_of_leaves(text: str, wanted: AbstractSet[str]) -> dict[str, int]:
    """Return the positions of some leaves. A string begins after its quote.

    Args:
        text: JSON text, whole or cut.
        wanted: The JSON pointers of the leaves.
    """
    found: dict[str, int] = {}
    inside = _Inside()
    for match in _PIECE.finditer(text):
        piece = match[0]
        if not inside.takes(piece) and inside.pointer in wanted:
            found[inside.pointer] = match.start() + piece.startswith('"')
    return found


def place_in_json(value: Any, pointer: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of a part of a leaf, in the JSON text of the leaf without its quotes.

    Args:
        value: The value that has the leaf.
        pointer: The JSON pointer of the leaf.
        start: The position of the first character in the leaf.
        end: The position after the last character in the leaf.
    """
    leaf = value_at(value, pointer)
    if not isinstance(leaf, str):
        return start, end
    before = _length(leaf[:start])
    return before, before + _length(leaf[start:end])


def _length(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2


class _Inside:
    """The lists and objects around the present piece of JSON text."""

    def __init__(self) -> None:
        # The pointer of each open list or object, with the number of the item or the key.
        self._open: list[tuple[str, int | str | None]] = []

    @property
    def pointer(self) -> str:
        """The JSON pointer of the value that begins here."""
        if not self._open:
            return ""
        outer, name = self._open[-1]
        return outer + pointer_step(str(name))

    def takes(self, piece: str) -> bool:
        """Take the next piece, and return whether it is something else than a leaf."""
        outer, name = self._open[-1] if self._open else ("", 0)
        if piece in {"{", "["}:
            self._open.append((self.pointer, None if piece == "{" else 0))
        elif piece in {"}", "]"}:
            del self._open[-1:]
        elif piece == ",":
            self._open[-1:] = [(outer, name + 1 if isinstance(name, int) else None)]
        elif name is None:
            self._open[-1:] = [(outer, _key(piece))]
        elif piece != ":":
            return False
        return True


def _key(piece: str) -> str:
    try:
        return str(json.loads(piece))
    except ValueError:  # it is cut
        return ""
