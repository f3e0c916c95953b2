"""Exports of runs: their lines, from a text, from lines or from a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from callslip import _lazy
from callslip.errors import UsageError

__all__ = ["export_lines", "read_export_file"]

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
    """Return the text of a file. It may be compressed with gzip, as an archive of runs is.

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
