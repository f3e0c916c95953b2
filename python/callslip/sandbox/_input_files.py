"""Files that scripts find in the folder `in/`, and can't change for others."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import unicodedata
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from callslip._base.file_names import FOLDER, MOST_BYTES, MOST_FILES, key_of, safe_name
from callslip._base.log import GuardedLogger
from callslip._base.options import shown
from callslip.errors import StoreError, UsageError
from callslip.parts import File
from callslip.sandbox._folders import WorkFolder, new_file

__all__ = ["Brought", "InputFiles", "Source", "check_files"]

Source: TypeAlias = "bytes | Path | File"
"""The content of a file: bytes, the file at a path, or a part of a run."""

_MEGABYTE = 1_000_000


class Brought(NamedTuple):
    """Files that are there for a script.

    Attributes:
        request: The field of the request with the files, or with their folder.
        hints: Sentences for the model about unreadable files.
    """

    request: dict[str, Any]
    hints: list[str]


class InputFiles:
    """The files of one session of scripts. Its methods take long, and are called one at a time."""

    def __init__(self) -> None:
        self._folder: WorkFolder | None = None
        self._sizes: dict[str, int] = {}

    def bring(self, files: Mapping[str, Source], *, is_here: bool) -> Brought:
        """Add files. One that has the name of an earlier one replaces it.

        Args:
            files: The files by their names.
            is_here: Whether scripts run on this machine. Runners elsewhere are sent the content.

        Raises:
            UsageError: A file cannot be read, has almost the name of an earlier one, or all of
                them are too large or too many.
        """
        hints = []
        keys = {key_of(name): name for name in self._sizes}
        for name in files:
            _check_distinct(name, keys)
        for name, source in files.items():
            # A part of a run is the same under this name each time.
            if isinstance(source, File) and name in self._sizes:
                continue
            try:
                self._write(name, source)
            except StoreError as error:
                GuardedLogger("callslip.sandbox").warning("no file for scripts: %s", error)
                hints.append(f"{FOLDER}/{name} is not there: its bytes can't be read")
        return Brought({"files": str(self.path) if is_here else self._to_list()}, hints)

    def _write(self, name: str, source: Source) -> None:
        if self._folder is None:
            self._folder = WorkFolder()
            # Its parent is private. In the sandbox, the user may be another one.
            self._folder.path.chmod(0o755)
        path = self._folder.path / name
        self._sizes.pop(name, None)
        path.unlink(missing_ok=True)
        left = MOST_BYTES - sum(self._sizes.values())
        if len(self._sizes) >= MOST_FILES:
            raise _too_many()
        try:
            with _opened(name, source) as content, new_file(path) as file:
                # A file may have grown since it was checked.
                shutil.copyfileobj(cast("BinaryIO", _Bounded(content, left)), file)
                os.fchmod(file.fileno(), 0o444)
                self._sizes[name] = file.tell()
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    @property
    def path(self) -> Path | None:
        """The folder with the files; `None` if there are none."""
        return None if self._folder is None else self._folder.path

    def _to_list(self) -> list[dict[str, Any]]:
        folder = self.path
        assert folder is not None
        return [
            {"name": name, "data": base64.b64encode((folder / name).read_bytes()).decode()}
            for name in self._sizes
        ]

    def remove(self) -> None:
        """Remove the files. May be called more than once."""
        if self._folder is not None:
            self._folder.remove()


class _Bounded:
    """Reads no more than some bytes."""

    def __init__(self, content: BinaryIO, left: int) -> None:
        self._content = content
        self._left = left

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data = self._content.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _too_large()
        return data


def _opened(name: str, source: Source) -> BinaryIO:
    if isinstance(source, File):
        return BytesIO(source.data)
    if isinstance(source, bytes):
        return BytesIO(source)
    try:
        return source.open("rb")
    except OSError as error:
        raise _unreadable(name, source, error) from error


def check_files(files: Mapping[str, bytes | os.PathLike[str]] | None) -> dict[str, Source]:
    """Return the files of an option `files=`, before anything is run.

    Raises:
        UsageError: A name is not safe, a file cannot be read, or they are too large or too many.
    """
    if files is None:
        return {}
    if not isinstance(files, Mapping):
        raise UsageError(
            f"expected files as a dict from names to bytes or paths: got {shown(files)}; pass "
            'files={"data.csv": Path("data.csv")}'
        )
    if len(files) > MOST_FILES:
        raise _too_many()
    checked: dict[str, Source] = {}
    keys: dict[str, str] = {}
    left = MOST_BYTES
    for name, source in files.items():
        _check_name(name)
        _check_distinct(name, keys)
        checked[name], size = _check_source(name, source)
        left -= size
        if left < 0:
            raise _too_large()
    return checked


def _check_distinct(name: str, names: dict[str, str]) -> None:
    """Add a name to those by their keys.

    Raises:
        UsageError: Some file system takes it for another one of them.
    """
    if (other := names.setdefault(key_of(name), name)) != name:
        raise UsageError(
            f"expected names that differ on every system: got {shown(other)} and "
            f"{shown(name)}; pass other names"
        )


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise UsageError(f"expected the names of files as text: got {shown(name)}; pass text")
    safe = safe_name(name, "file", "")
    if name != safe:
        if unicodedata.normalize("NFC", name) == safe:
            # The two look the same.
            raise UsageError(
                f"expected a file name in the Unicode form NFC: got {name!a}; pass "
                'unicodedata.normalize("NFC", name)'
            )
        raise UsageError(
            f"expected a file name without folders and special characters: got {shown(name)}; "
            f"pass {safe!r}, which a script opens as '{FOLDER}/{safe}'"
        )


def _check_source(name: str, source: object) -> tuple[Source, int]:
    """Return the content of a file, and its size."""
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return data, len(data)
    if isinstance(source, File):
        return source, source.size
    if isinstance(source, str) or not isinstance(source, os.PathLike):
        hint = "Path(…) for a file, or .encode() for text" if isinstance(source, str) else "bytes"
        raise UsageError(
            f"expected the file {shown(name)} as bytes or as a Path: got {type(source).__name__}; "
            f"pass {hint}"
        )
    path = Path(source)
    try:
        about = path.stat()
        if is_regular := stat.S_ISREG(about.st_mode):
            path.open("rb").close()
    except (OSError, ValueError) as error:
        raise _unreadable(name, path, error) from error
    if not is_regular:
        got = "a folder" if stat.S_ISDIR(about.st_mode) else "something else"
        raise UsageError(
            f"expected the path of a file for {shown(name)}: got {got} at {shown(str(path))}; "
            "pass each file by its own name"
        )
    return path, about.st_size


def _unreadable(name: str, path: Path, error: Exception) -> UsageError:
    why = getattr(error, "strerror", None) or str(error)
    return UsageError(
        f"expected the path of a file for {shown(name)}: got {shown(str(path))}, which cannot be "
        f"read ({why}); pass another path, or the bytes"
    )


def _too_large() -> UsageError:
    return UsageError(
        f"expected at most {MOST_BYTES // _MEGABYTE} MB of files for scripts together: got more; "
        "pass fewer or smaller ones"
    )


def _too_many() -> UsageError:
    return UsageError(
        f"expected at most {MOST_FILES} files for scripts: got more; pass one archive of them"
    )
