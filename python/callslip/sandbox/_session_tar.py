"""The files of a session as one archive, written and read without trust in what is inside.

Folders and files come first, links last, so that nothing is ever written through a link. Times,
owners and further names of a file are not kept, as from one script to the next. The same files
therefore make the same archive.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast

from callslip.sandbox._folders import new_file

__all__ = ["Digest", "UnreadableArchiveError", "copy_files", "pack", "unpack"]

_BLOCK = 4096
"""Bytes that a file takes at least, as the sandbox counts them."""

_LONGEST_PATH = 1000
"""Bytes of a path, or of the target of a link: so long a one can be used on any machine."""

_PIECE = 1 << 16
"""Bytes at a time: other threads wait for Python between two pieces."""


class UnreadableArchiveError(Exception):
    """An archive is damaged, or was not made by `pack`."""


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Digest:
    """A sink that only computes the SHA-256 of what is written."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Count more bytes in."""
        self._hash.update(data)
        return len(data)

    def text(self) -> str:
        """Return the beginning of the digest, enough to tell archives apart."""
        return self._hash.hexdigest()[:16]


def pack(folder: Path, sink: _Sink) -> tuple[int, int]:
    """Write the files of a folder as an archive.

    Links are not followed. Left out are links that lead out of the folder, paths that are too long,
    and whatever is no file, folder or link.

    Returns:
        How many entries were written, and how many were left out.

    Raises:
        OSError: A file cannot be read or written.
    """
    written, left_out = 0, 0
    links: list[tarfile.TarInfo] = []
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with _new_archive(sink) as archive:
            for directory, name, path in _entries(top, ""):
                entry = _entry(directory, name, path)
                if entry is None:
                    left_out += 1
                elif entry.issym():
                    links.append(entry)
                else:
                    written += 1
                    _add(archive, entry, directory, name)
            for link in links:
                archive.addfile(link)
    finally:
        os.close(top)
    return written + len(links), left_out


def _new_archive(sink: _Sink) -> tarfile.TarFile:
    file, kind = cast("IO[bytes]", sink), tarfile.PAX_FORMAT
    return tarfile.open(fileobj=file, mode="w|", bufsize=_PIECE, format=kind, encoding="utf-8")


def _entries(directory: int, above: str) -> Iterator[tuple[int, str, str]]:
    """Yield all entries below a directory: their directory, name and path."""
    for name in sorted(os.listdir(directory)):
        path = above + name
        yield directory, name, path
        if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode) or _is_long(path):
            continue
        inner = os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory
        )
        try:
            yield from _entries(inner, f"{path}/")
        finally:
            os.close(inner)


def _is_long(path: str) -> bool:
    return len(os.fsencode(path)) > _LONGEST_PATH


def _entry(directory: int, name: str, path: str) -> tarfile.TarInfo | None:
    """Describe an entry; `None` for one that is left out."""
    about = os.lstat(name, dir_fd=directory)
    entry = tarfile.TarInfo(path)
    if _is_long(path):
        return None
    if stat.S_ISDIR(about.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISREG(about.st_mode):
        entry.size = about.st_size
        entry.mode = 0o755 if about.st_mode & stat.S_IXUSR else 0o644
    elif stat.S_ISLNK(about.st_mode):
        entry.type, entry.mode = tarfile.SYMTYPE, 0o777
        entry.linkname = os.readlink(name, dir_fd=directory)
        return entry if _is_inside(entry) else None
    else:
        return None
    return entry


def _is_inside(link: tarfile.TarInfo) -> bool:
    """Whether a link stays in its folder, by its words alone.

    It may go up first and down then. A way up that comes after a name leads elsewhere if the name
    is another link.
    """
    parts = link.linkname.split("/")
    ups = next((count for count, part in enumerate(parts) if part != ".."), len(parts))
    is_relative = link.linkname != "" and parts[0] != "" and ".." not in parts[ups:]
    return is_relative and ups <= link.name.count("/") and not _is_long(link.linkname)


def _add(archive: tarfile.TarFile, entry: tarfile.TarInfo, directory: int, name: str) -> None:
    if entry.isdir():
        archive.addfile(entry)
        return
    # Opening a pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=directory), "rb") as file:
        archive.addfile(entry, file)


def unpack(archive: BinaryIO, digest: str, folder: Path, *, most: int, files: int) -> None:
    """Read a compressed archive of `pack` into an empty folder.

    Args:
        archive: The content.
        digest: The digest of the uncompressed archive.
        folder: The folder.
        most: The largest number of bytes of all files.
        files: The largest number of files, folders and links.

    Raises:
        UnreadableArchiveError: The archive is damaged, contains anything else than files, folders
            and links below the folder, or is larger than this.
        OSError: A file cannot be written.
    """
    # Of the headers, too: what is compressed is larger than it looks.
    read = _Counted(cast("BinaryIO", gzip.GzipFile(fileobj=archive)), 2 * most + 8192 * (files + 2))
    try:
        _extract(read, folder, most, files)
        while read.read(_PIECE):
            pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise UnreadableArchiveError(str(error) or "it ends early") from error
    if read.digest.text() != digest:
        raise UnreadableArchiveError("its content is not that of its name")


def copy_files(folder: Path, directory: Path) -> list[Path]:
    """Copy the files of a folder, without its links, into another one. Returns their new paths.

    Raises:
        OSError: A copy cannot be written, for example because there is a file of that name.
    """
    copies = []
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(above, name)
            if path.is_symlink():
                continue
            copy = directory / path.relative_to(folder)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("rb") as source, new_file(copy) as target:
                shutil.copyfileobj(source, target)
            copies.append(copy)
    return copies


class _Counted:
    """Reads no more than some bytes, and computes their digest."""

    def __init__(self, source: BinaryIO, most: int) -> None:
        self._source = source
        self._left = most
        self.digest = Digest()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableArchiveError("it is larger than a script's files may be")
        self.digest.write(data)
        return data


def _extract(source: _Counted, folder: Path, most: int, files: int) -> None:
    seen: set[str] = set()
    links: set[str] = set()
    file = cast("IO[bytes]", source)
    with tarfile.open(fileobj=file, mode="r|", bufsize=_PIECE, encoding="utf-8") as archive:
        for entry in archive:
            files -= 1
            most -= -(-entry.size // _BLOCK) * _BLOCK
            if files < 0 or most < 0:
                raise UnreadableArchiveError(
                    "its files are more, or larger, than a script's may be"
                )
            _check(entry, seen, links)
            seen.add(entry.name)
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.issym():
                links.add(entry.name)
                path.symlink_to(entry.linkname)
            elif entry.isdir():
                path.mkdir(exist_ok=True)
            else:
                _write_file(archive, entry, path)


def _write_file(archive: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
    content = archive.extractfile(entry)
    assert content is not None, "it is a file"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with content, os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        shutil.copyfileobj(content, file, _PIECE)
        os.fchmod(file.fileno(), 0o755 if entry.mode & stat.S_IXUSR else 0o644)


def _check(entry: tarfile.TarInfo, seen: set[str], links: set[str]) -> None:
    """Check an entry before anything is written.

    Raises:
        UnreadableArchiveError: `pack` writes none like it.
    """
    name = entry.name
    parts = name.split("/")
    why = None
    if not (entry.isdir() or entry.issym() or entry.type == tarfile.REGTYPE) or entry.issparse():
        why = "is no file, folder or link"
    elif _is_long(name) or any(part in {"", ".", ".."} for part in parts):
        why = "is not a path below the folder"
    elif name in seen:
        why = "is there twice"
    elif entry.issym() and not _is_inside(entry):
        why = "leads out of the folder"
    elif links and (not entry.issym() or _lies_below(parts, links)):
        why = "comes after a link"
    if why is not None:
        raise UnreadableArchiveError(f"'{name[:200]}' {why}")


def _lies_below(parts: list[str], links: set[str]) -> bool:
    return any("/".join(parts[:count]) in links for count in range(1, len(parts)))
