"""Runs and texts in the files that commands name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from callslip._options import is_url
from callslip._store_database import StoreDatabase
from callslip._store_file import StoreFile, is_store_file
from callslip.errors import UsageError

__all__ = ["exported_runs", "find_run", "is_store", "open_store", "read_text", "split_export"]

_INPUT = "-"


def is_store(name: str) -> bool:
    """Whether a command names a store: a database, or the file of one, and no export.

    Raises:
        StoreError: The file cannot be read.
    """
    return is_url(name) or (name != _INPUT and is_store_file(Path(name)))


def open_store(name: str) -> StoreFile | StoreDatabase:
    """Return what a command reads: the file of a store, or a database.

    Raises:
        StoreError: It cannot be read, or is not a store.
    """
    return StoreDatabase(name) if is_url(name) else StoreFile(Path(name))


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for `-`.

    Raises:
        UsageError: It is not UTF-8.
    """
    if name == _INPUT:
        return sys.stdin.read()
    try:
        return Path(name).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"expected {name} to be text in UTF-8: {error}") from error


def find_run(file: StoreFile | StoreDatabase, prefix: str) -> str:
    """Return the id of the run whose id begins with a text.

    Raises:
        UsageError: There is none, or more than one.
    """
    found = file.run_ids(prefix)
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no run {prefix} in {file.path}: call callslip runs for a list")
    raise UsageError(f"expected the id of one run: got {prefix}, with which {len(found)} begin")


def exported_runs(file: StoreFile | StoreDatabase, prefixes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each run, of all runs by default, the oldest first."""
    ids = [find_run(file, prefix) for prefix in prefixes]
    if not prefixes:
        ids = [one.run_id for one in file.runs()][::-1]
    for run_id in ids:
        yield file.export(run_id)


def split_export(text: str) -> Iterator[list[str]]:
    """Yield the lines of each run of an export with one run after the other.

    The bytes of images and files come before the event that has them.
    """
    lines: list[str] = []
    contents: list[str] = []
    for line in text.split("\n"):
        if line.startswith('{"content":'):
            contents.append(line)
        elif line.strip():
            if line.startswith('{"seq":0,') and lines:
                yield lines
                lines = []
            lines += [*contents, line]
            contents = []
    yield [*lines, *contents]
