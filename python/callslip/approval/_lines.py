"""A call as lines of a terminal: wrapped, and each behind the name of what it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from callslip._base.unseen import columns
from callslip.origins._words import influence_words

if TYPE_CHECKING:
    from callslip.approval._view import CallRow, CallView

__all__ = ["lines_of"]

_NARROWEST = 20


def lines_of(call: CallView, width: int, encoding: str) -> list[str]:
    """Return the lines of a call, of which none is wider than `width` columns."""
    width = max(width, _NARROWEST)
    longest = max(width // 3 - 3, 4)
    labelled = [_labelled(at, row, longest) for at, row in enumerate(call.rows, 1)]
    room = max((len(label) for label, _ in labelled), default=0)
    needs = "an answer" if call.awaiting == "result" else "approval"
    texts = [("A call needs ", f"{needs} ({call.run_id}, {call.ticket_id})")]
    texts.append(("  Tool: ", call.tool if call.request is None else call.request))
    for label, lines in labelled:
        texts += [(f"    {label.ljust(room)} | ", line) for line in lines]
    texts += [("  From: ", f"{row.name}: {row.whence}") for row in call.rows if row.whence]
    if call.influenced:
        texts.append(("  Read: ", f"untrusted {influence_words(call.influenced)}"))
    texts += [("  Look: ", note) for note in call.notes]
    if call.reason:
        texts += [("  Reason: ", line) for line in call.reason.split("\n")]
    if call.seal is not None:
        texts.append(("  Seal: ", call.seal[:16]))
    found = [line for before, text in texts for line in _wrapped(before, text, width, encoding)]
    return [*found, *_last(call, width, encoding)]


def _labelled(at: int, row: CallRow, longest: int) -> tuple[str, list[str]]:
    """Return the label of an argument, and its lines. A long name stands in the first of them."""
    lines = list(row.lines)
    if row.origin == "default":
        # Where no text can write the same: in front of a text of lines, and behind JSON.
        place = 0 if isinstance(row.value, str) else -1
        lines[place] += "  (the default)"
    if len(row.name) <= longest and row.name.isascii():
        return row.name, lines
    return f"#{at}", [f"(the name is {row.name})", *lines]


def _wrapped(before: str, text: str, width: int, encoding: str) -> Iterator[str]:
    """Yield the lines of a text, each behind `before`."""
    room = max(width - len(before), 4)
    line, used = "", 0
    for character in text.replace("\n", " "):
        one = _encodable(character, encoding)
        size = columns(one)
        if used + size > room:
            yield f"{before}{line}"
            line, used = "", 0
        line, used = line + one, used + size
    yield f"{before}{line}"


def _encodable(text: str, encoding: str) -> str:
    return text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)


def _last(call: CallView, width: int, encoding: str) -> Iterator[str]:
    """Yield the short line, with as many values as have room."""
    for most in range(len(call.values), -1, -1):
        line = _short(call, most, encoding)
        if columns(line) <= width:
            yield line
            return
    yield from _wrapped("", call.tool, width, encoding)


def _short(call: CallView, most: int, encoding: str) -> str:
    line = call.short_with(most)
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return _encodable(line.replace(" \u2192 ", " -> ", 1), encoding)
    return line
