"""Output for terminals: nothing in it can move the cursor, hide text or turn its direction."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from callslip._base.call_line import printable

__all__ = [
    "open_missing_streams",
    "print_json",
    "print_piece",
    "print_table",
    "print_text",
    "report",
    "shortened",
]


def open_missing_streams() -> None:
    """Open what the starting process has closed of input, output and error output: to nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def print_text(text: str, file: TextIO | None = None) -> None:
    """Print text, with its line breaks, and all other characters that are not printable escaped."""
    stream = sys.stdout if file is None else file
    stream.write(_shown(text, stream) + "\n")


def print_piece(text: str) -> None:
    """Print the next piece of a text at once, as `print_text` prints the whole."""
    sys.stdout.write(_shown(text, sys.stdout))
    sys.stdout.flush()


def _shown(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    shown = "\n".join(map(printable, text.split("\n")))
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def report(text: str) -> None:
    """Print an error."""
    sys.stdout.flush()
    print_text(f"callslip: {text}", sys.stderr)


def print_json(value: object) -> None:
    """Print a JSON value, indented."""
    print_text(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, each as wide as its longest cell."""
    cells = [[printable(cell) for cell in row] for row in (heading, *rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        )
        print_text("  ".join(padded).rstrip())


def shortened(text: str, columns: int) -> str:
    """Return the beginning of a text as it is printed, in at most so many columns."""
    shown: list[str] = []
    used = 0
    for one in text:
        character = printable(one)
        used += _width(character)
        shown.append(character)
        if used > columns:
            break
    else:
        return "".join(shown)
    while used > columns - 1:
        used -= _width(shown.pop())
    return f"{''.join(shown)}…"


def _width(text: str) -> int:
    """Return how many columns of a terminal a printable text has."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )
