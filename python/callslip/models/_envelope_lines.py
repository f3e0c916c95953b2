"""The items of a reply, read from its lines in the log."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["lines_of"]

# The key of the data that a line ends with, perhaps cut. No text has a quote without an escape.
_DATA: Final = re.compile(r',"data":.*$|,(?:"(?:d(?:a(?:ta?)?)?"?)?)?$')
_LONGEST_ESCAPE: Final = 6


def lines_of(envelope: str) -> list[dict[str, Any]]:
    """Return the items of an envelope, as messages have them.

    The last one may have been cut: it is read as far as it came.
    """
    # Not splitlines: a text may hold other line breaks as they are.
    rows = [_read(line) for line in envelope.split("\n") if line]
    return [row for row in rows if row is not None]


def _read(line: str) -> dict[str, Any] | None:
    ends = [line, _DATA.sub("", line) + "}"]
    # An escape may stand at the end of a text, half of it.
    ends += [f'{line[: len(line) - left_out]}"}}' for left_out in range(_LONGEST_ESCAPE)]
    for end in ends:
        try:
            row = json.loads(end)
        except ValueError:
            continue
        return row if isinstance(row, dict) else None
    return None
