"""Runs and texts in the files that commands name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from callslip._base.exports import read_export_file
from callslip._base.options import is_url
from callslip.errors import ReplayError, UsageError
from callslip.store import TicketStore
from callslip.store._database import StoreDatabase
from callslip.store._file import StoreFile, is_store_file

__all__ = [
    "check_present",
    "check_url",
    "exported_runs",
    "find_run",
    "import_export",
    "is_store",
    "new_store",
    "open_store",
    "pick_run",
    "present_store",
    "read_export",
    "read_text",
]

_INPUT = "-"


def check_url(name: str) -> None:
    """Check that a command names a database.

    Raises:
        UsageError: It names something else.
    """
    if not is_url(name):
        raise UsageError(
            "expected the URL of a database, as postgresql://user@host/database: got "
            f"{_shown(name)}"
        )


def is_store(name: str) -> bool:
    """Whether a command names a store: a database, or the file of one, and no export.

    Raises:
        StoreError: The file cannot be read.
        UsageError: It names neither.
    """
    return is_url(name) or (name != _INPUT and is_store_file(_path(name)))


def open_store(name: str) -> StoreFile | StoreDatabase:
    """Return what a command reads: the file of a store, or a database.

    Raises:
        StoreError: It cannot be read, or is not a store.
        UsageError: It is the URL of something else.
    """
    if is_url(name):
        return StoreDatabase(name)
    path = _path(name)
    if not is_store_file(path):
        raise UsageError(f"{name} is not the file of a store: {_advice(path)}")
    return StoreFile(path)


def new_store(name: str) -> TicketStore:
    """Return a store to write to; a file that is missing is created.

    Raises:
        StoreError: It cannot be read or written.
        UsageError: It is the URL of something else.
    """
    return TicketStore(name if is_url(name) else _path(name))


def present_store(name: str) -> TicketStore:
    """Return a store to write to that is there already. No other file becomes one.

    Raises:
        StoreError: It cannot be read or written, or is not a store.
        UsageError: It is the URL of something else.
    """
    check_present(name)
    return TicketStore(name)


def check_present(name: str) -> None:
    """Check that the file of a store is there. Nothing is said of a database.

    Raises:
        StoreError: It cannot be read, or is not a store.
        UsageError: It is the URL of something else.
    """
    if not is_url(name):
        open_store(name).close()


def _path(name: str) -> Path:
    if not name or "://" in name:
        raise UsageError(
            "expected the file of a store, or a URL that begins with postgresql://: got "
            f"{_shown(name) if name else 'no name'}"
        )
    return Path(name)


def _shown(name: str) -> str:
    """Return a name for an error. The rest of a URL may be a password."""
    scheme, is_address, _ = name.partition("://")
    return f"{scheme}://…" if is_address else repr(name)


def _advice(path: Path) -> str:
    if not path.is_file():
        return "pass a file"
    with path.open("rb") as file:
        start = file.read(1)
    if not start:
        return "it is empty; pass another file"
    if start == b"{":
        return "if it is an export, call callslip import STORE LOG first, or callslip show"
    return "pass another file"


def read_text(name: str, read: Callable[[str], str] | None = None) -> str:
    """Return the text of a file, or of standard input for `-`.

    Args:
        name: The file.
        read: Reads a file. Default: as text in UTF-8.

    Raises:
        UsageError: It cannot be read, or is not UTF-8.
    """
    shown = "the input" if name == _INPUT else name or "a file without a name"
    try:
        if name == _INPUT:
            text = sys.stdin.read()
        else:
            text = Path(name).read_text("utf-8") if read is None else read(name)
        text.encode()  # some locales pass other bytes on
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise UsageError(
            f"expected {shown} to be text in UTF-8: got other bytes at {error.start}"
        ) from error
    except OSError as error:
        raise UsageError(
            f"{shown} cannot be read: {error.strerror or error}; pass a file, or - for input"
        ) from error
    return text


def find_run(file: StoreFile | StoreDatabase, prefix: str) -> str:
    """Return the id of the run whose id begins with a text.

    Raises:
        UsageError: There is none, or more than one.
    """
    return pick_run(file.run_ids(prefix), prefix, file.path)


def pick_run(found: Sequence[str], prefix: str, place: object) -> str:
    """Return the one id of those that begin with a text: a run, not the child runs below it.

    Raises:
        UsageError: There is none, or more than one.
    """
    if not prefix:
        # All ids begin with it: a shell variable that is not set must not choose the only run.
        raise UsageError(
            "expected the id of a run, or its beginning: got nothing; call callslip runs for a list"
        )
    if not found:
        raise UsageError(f"there is no run {prefix} in {place}: call callslip runs for a list")
    top = min(found, key=len)
    if all(one == top or one.startswith(f"{top}.") for one in found):
        return top
    raise UsageError(
        f"expected the id of one run: got {prefix}, with which {len(found)} begin; pass more of it"
    )


def exported_runs(file: StoreFile | StoreDatabase, prefixes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each run, of all runs by default, the oldest first."""
    ids = [find_run(file, prefix) for prefix in prefixes]
    if not prefixes:
        ids = [one.run_id for one in file.runs() if one.protocol is not None][::-1]
    for run_id in ids:
        yield file.export(run_id)


def read_export(name: str) -> list[list[str]]:
    """Return the lines of each run of an export, which is a file, or standard input for `-`.

    Raises:
        UsageError: It cannot be read, or is none.
    """
    if name != _INPUT and Path(name).is_file() and is_store_file(Path(name)):
        raise UsageError(
            f"expected an export: got {name}, the file of a store; call callslip export {name} > "
            "runs.jsonl, and pass that"
        )
    text = read_text(name, read_export_file)
    if not text.lstrip().startswith("{"):
        shown = "the input" if name == _INPUT else name
        got = "other text" if text.strip() else "no line"
        raise UsageError(f"expected an export, as callslip export prints it: got {got} in {shown}")
    return list(_split(text))


def import_export(store: TicketStore, lines: list[str], name: str, *, trust: bool = True) -> str:
    """Import a run of an export, and return its id.

    Raises:
        ReplayError: The lines are not the log of a run.
        StoreError: There is already a run of this id.
    """
    try:
        return store.import_run(lines, trust=trust)
    except ReplayError as error:
        raise ReplayError(f"{'the input' if name == _INPUT else name}: {error}") from error


def _split(text: str) -> Iterator[list[str]]:
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
