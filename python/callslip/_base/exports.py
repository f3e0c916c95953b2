"""Exports of runs: their lines, from a text, from lines or from a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from callslip._base import _lazy
from callslip.errors import ReplayError, UsageError

__all__ = ["export_lines", "read_export_file", "without_decisions"]

_COMPRESSED = b"\x1f\x8b"


def export_lines(log: str | os.PathLike[str] | Iterable[str]) -> list[str]:
    """Return the lines of an export, which is a text, lines, or the path of a file.

    Raises:
        UsageError: It is none of these, or the file is not text.
        OSError: The file cannot be read.
    """
    if isinstance(log, os.PathLike) or (isinstance(log, str) and log.strip()[:1] not in {"", "{"}):
        log = read_export_file(log)
    if not isinstance(log, Iterable):
        raise UsageError(
            f"expected a log as JSON lines or the path of a file with them: got {log!r}"
        )
    # Not `splitlines`, which splits at characters that strings of JSON may contain.
    lines = log.split("\n") if isinstance(log, str) else log
    return [line for line in lines if line.strip()]


def read_export_file(path: str | os.PathLike[str]) -> str:
    """Return the text of a file. The file can be compressed with gzip, like an archive of runs.

    Raises:
        UsageError: It is not text, or is damaged.
        OSError: It cannot be read.
    """
    content = Path(path).read_bytes()
    if content.startswith(_COMPRESSED):
        try:
            content = _lazy.gzip.decompress(content)
        except (EOFError, OSError, _lazy.zlib.error) as error:
            raise UsageError(
                f"expected {os.fspath(path)} to be a whole file of gzip: got one that is cut or "
                "damaged; use another copy of it"
            ) from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"expected {os.fspath(path)} to be text in UTF-8: got other bytes at {error.start}"
        ) from error


_PLACE = re.compile(r'\{"seq":([0-9]+),')
_TELLS = (
    "approved",
    "approval_checked",
    "tool_attempt_failed",
    "ticket_opened",
    "ticket_completed",
)


def without_decisions(lines: Iterable[str]) -> list[str]:
    """Return the log of a run without the approval of calls that have no outcome.

    The author of the log may have invented the approvals. These calls await approval again.

    Raises:
        ReplayError: A line is not JSON, or the log is compacted and has such an approval inside.
    """
    events = [(line, _event(line)) for line in lines]
    opened: set[int] = set()
    approved: set[int] = set()
    for _, (kind, data) in events:
        if kind == "approved":
            approved.add(data["ticket"])
        elif kind == "ticket_completed":
            approved.discard(data["ticket"])
        elif kind == "ticket_opened":
            opened.add(data["ticket"])
        elif kind == "compacted" and _has_approval(data):
            raise ReplayError(
                "expected a log that tells who has approved its open calls: got a compacted one; "
                "use --trust, or trust=True, if nobody else can have changed it"
            )
    kept, dropped = [], 0
    for line, (kind, data) in events:
        if kind in {"approved", "tool_attempt_failed"} and data["ticket"] in approved & opened:
            dropped += 1
            continue
        kept.append(_moved(line, dropped) if dropped else line)
    return kept


def _event(line: str) -> tuple[str, Any]:
    """Return the kind and the fields of a line, if it is one of those that tell."""
    if not any(f'"{kind}"' in line for kind in (*_TELLS, "compacted")):
        return "", None
    try:
        ((kind, data),) = json.loads(line)["event"].items()
        if kind in _TELLS:
            ticket = data["ticket"]
            if not isinstance(ticket, int):
                return "", None
    except (ValueError, KeyError, TypeError, AttributeError):
        # `import_run` refuses the line.
        return "", None
    return kind, data


def _has_approval(data: Any) -> bool:
    try:
        tickets = data["state"]["tickets"]["tickets"]
        return any(one.get("decision") and not one.get("outcome") for one in tickets)
    except (KeyError, TypeError, AttributeError):
        return False


def _moved(line: str, by: int) -> str:
    found = _PLACE.match(line)
    return line if found is None else f'{{"seq":{int(found[1]) - by},{line[found.end() :]}'
