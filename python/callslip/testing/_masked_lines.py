"""Secrets in the lines of a native reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from callslip.models._envelope_lines import lines_of

__all__ = ["masked_lines"]

_TEXTS: Final = ("reasoning", "text", "tool", "arguments", "fault", "raw")


def masked_lines(envelope: str, clean: Callable[[str], str]) -> str:
    """Return an envelope without secrets.

    An item whose text was masked loses its `data`, which vouches for the text as it was. Other
    `data` stays as it is: signatures look like secrets, and a service refuses a changed one.

    Args:
        envelope: The lines.
        clean: Returns a text without secrets.
    """
    # Not splitlines: a text may hold other line breaks as they are.
    return "\n".join(_masked(line, clean) for line in envelope.split("\n"))


def _masked(line: str, clean: Callable[[str], str]) -> str:
    rows = lines_of(line)
    if not rows:
        return clean(line)
    (row,) = rows
    masked = {key: clean(value) if key in _TEXTS else value for key, value in row.items()}
    if masked == row:
        return line
    masked.pop("data", None)
    written = json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
    # A line that was cut stays open.
    return written if _is_whole(line) else written.removesuffix('"}')


def _is_whole(line: str) -> bool:
    try:
        value: Any = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict)
