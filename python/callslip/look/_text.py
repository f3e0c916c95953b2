"""Texts of a page: redacted, cut and marked."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from callslip._base.json import to_json
from callslip._base.json_pointer import pointer_step
from callslip._base.redaction import Secrets, redact_credentials
from callslip.errors import UsageError
from callslip.look._json_places import place_in_json, places_of_leaves
from callslip.look._markup import Markup, el, joined
from callslip.trace import Mark

__all__ = ["LeafMark", "Texts"]

_WORD = re.compile(r"\w+|\W")
# Words between the first and the last redacted place that are compared one by one. Comparing takes
# time that grows with their square.
_MOST_COMPARED = 400
_MOST_FIELDS = 50
_LONGEST_LINE = 200
_LONGEST_FLAT = 100


class LeafMark(NamedTuple):
    """A marked place in a value.

    Attributes:
        pointer: The JSON pointer of the leaf that is marked.
        start: The position of the first character, in the leaf.
        end: The position after the last character.
        kind: The class of the mark.
        label: Its title.
    """

    pointer: str
    start: int
    end: int
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Texts:
    """How texts are shown on one page.

    Attributes:
        limit: The largest number of characters of one text.
        redact: Replaces what the page must not show in a text; `None` for texts as they are.
        masked: Whether credentials are masked.
    """

    limit: int
    redact: Callable[[str], str] | None
    masked: bool = True

    def block(self, text: str, marks: Iterable[Mark | LeafMark] = ()) -> Markup:
        """Return a whole text as markup, with marked places."""
        return el("pre", *self._marked(text, self.redacted(text), marks))

    def error(self, text: str, marks: Iterable[Mark | LeafMark] = ()) -> Markup:
        """Return the text of an error as markup, with marked places."""
        return el("pre", *self._marked(text, self.redacted(text), marks), class_="bad")

    def line(self, text: str) -> str:
        """Return the beginning of a text on one line, as text for `el`."""
        shown = " ".join(self.redacted(text).split())
        return shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]}…"

    def line_of_value(self, value: Any) -> str:
        """Return the beginning of a JSON value on one line, as text for `el`."""
        return self.line(value if isinstance(value, str) else to_json(self._redacted_value(value)))

    def value(
        self,
        value: Any,
        marks: Sequence[LeafMark] = (),
        labels: Mapping[str, Markup] | None = None,
    ) -> Markup:
        """Return a JSON value as markup: text as it is, and the fields of an object one by one.

        Args:
            value: The value.
            marks: The marked places, of each leaf in their order.
            labels: What stands beside the names of the fields.
        """
        if isinstance(value, str):
            return self.block(value, marks)
        text = _json(value)
        # A secret may be recognised only in the text of a field, or only by its name beside it.
        clean = self.redacted(_json(self._redacted_value(value)))
        has_fields = isinstance(value, Mapping) and 0 < len(value) <= _MOST_FIELDS
        if clean != text or not has_fields:
            shown = el("pre", *self._marked(text, clean, self._in_json(value, text, marks)))
            listed = [el("li", self.line(name), one) for name, one in (labels or {}).items() if one]
            return joined(shown, el("ul", listed, class_="origins") if listed else None)
        rows = []
        for name, one in value.items():
            own = _inside(marks, name)
            if isinstance(one, str):
                shown = self.block(one, own)
            else:
                field = _json(one)
                shown = self.block(field, self._in_json(one, field, own))
            label = joined(self.line(name), (labels or {}).get(name))
            rows.append(joined(el("dt", label), el("dd", shown)))
        return el("dl", rows, class_="fields")

    def _in_json(self, value: Any, text: str, marks: Sequence[LeafMark]) -> list[LeafMark]:
        """Return marks of leaves as marks of JSON text, in their order."""
        if not marks:
            return []
        leaves = places_of_leaves(text[: self.limit], {mark.pointer for mark in marks})
        placed = []
        for mark in marks:
            at = leaves.get(mark.pointer)
            if at is not None:
                start, end = place_in_json(value, mark.pointer, mark.start, mark.end)
                placed.append(mark._replace(start=at + start, end=at + end))
        return sorted(placed, key=lambda mark: mark.start)

    def _marked(
        self, text: str, clean: str, marks: Iterable[Mark | LeafMark]
    ) -> tuple[str | Markup, ...]:
        """Return the content of a `pre`. Marks in redacted places move with them.

        Args:
            text: The text.
            clean: The text without secrets.
            marks: The marked places in the text.
        """
        kept = clean[: self.limit]
        shown: list[str] = []
        place = 0
        move: Callable[[int], int | None] | None = None
        for mark in marks:
            move = move or _positions(text, clean)
            start, end = move(mark.start), move(max(mark.end, mark.start + 1))
            if start is None or end is None or not place <= start <= len(kept):
                continue
            if start == len(kept) < len(clean):
                continue
            # Where the end is missing, the last character is marked.
            start = max(place, min(start, len(kept) - 1))
            end = min(max(end, start + 1), len(kept))
            shown.append(kept[place:start])
            shown.append(el("mark", kept[start:end], class_=mark.kind, title=self.line(mark.label)))
            place = end
        # A browser drops the first line break.
        return "\n", *shown, kept[place:], _left_out(len(clean) - len(kept))

    def redacted(self, text: str) -> str:
        """Return a whole text without secrets.

        Raises:
            UsageError: The program's function does not return text.
        """
        if self.redact is not None:
            clean = self.redact(text)
            if not isinstance(clean, str):
                raise UsageError(f"expected redact to return text: got {clean!r}")
            text = clean
        if not self.masked:
            return text
        known = Secrets.of_this_context()
        return redact_credentials(text if known is None else known.redact(text))

    def _redacted_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redacted(value)
        if isinstance(value, Mapping):
            return {name: self._redacted_value(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._redacted_value(one) for one in value]
        return value


def _inside(marks: Iterable[LeafMark], name: str) -> list[LeafMark]:
    """Return the marks in a field, with pointers that begin there."""
    start = pointer_step(name)
    return [
        mark._replace(pointer=mark.pointer[len(start) :])
        for mark in marks
        if mark.pointer == start or mark.pointer.startswith(f"{start}/")
    ]


def _left_out(count: int) -> str:
    return f"\n… {count:,} more characters are in the log" if count > 0 else ""


def _json(value: Any) -> str:
    text = to_json(value)
    if len(text) <= _LONGEST_FLAT or not isinstance(value, Mapping | list | tuple):
        return text
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError):  # an integer of thousands of digits
        return text


def _positions(text: str, clean: str) -> Callable[[int], int | None]:
    """Return a function from a position in a text to that in its redacted form.

    Only places of marks depend on it. Their text is always that of the redacted form.
    """
    if text == clean:
        return lambda place: place
    shortest = min(len(text), len(clean))
    before = _common(text, clean, shortest)
    after = _common(text[::-1], clean[::-1], shortest - before)
    until = len(text) - after
    spans = _spans(text[before:until], clean[before : len(clean) - after])

    def move(place: int) -> int | None:
        if place <= before:
            return place
        if place >= until:
            return place + len(clean) - len(text)
        if spans is None:
            return None
        for start, end, new_start, new_end in spans:
            if start <= place - before < end:
                return before + min(new_start + place - before - start, new_end)
        return None

    return move


def _common(one: str, other: str, most: int) -> int:
    """Return the number of characters with which both texts begin, in steps of halves."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _spans(text: str, clean: str) -> Sequence[tuple[int, int, int, int]] | None:
    """Return the places of a text with those in its redacted form; `None` if there are too many."""
    words, others = _WORD.findall(text), _WORD.findall(clean)
    if max(len(words), len(others)) > _MOST_COMPARED:
        return None
    at, to = _starts(words), _starts(others)
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    return [(at[a], at[b], to[c], to[d]) for _, a, b, c, d in matcher.get_opcodes()]


def _starts(words: Iterable[str]) -> list[int]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts
