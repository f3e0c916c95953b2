"""Places that many processes share: a folder, or an object store."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias, cast

from callslip._base import _lazy
from callslip.errors import UsageError
from callslip.sandbox._folders import new_file

__all__ = ["FileStore", "SharedFiles", "open_file_store"]


class ObjectClient(Protocol):
    """The methods that are used of a store object of obstore."""

    def put(self, path: str, file: Any, /) -> Any:
        """Write an object."""

    def get(self, path: str, /) -> Any:
        """Return an object, whose `stream` returns its content in pieces."""

    def list(self, prefix: str | None = None, /) -> Any:
        """Return lists of dicts, with the `path` of each object."""

    def delete(self, path: str, /) -> Any:
        """Delete an object."""


SharedFiles: TypeAlias = str | os.PathLike[str] | ObjectClient
"""A folder, the URL of an object store, or a store object of obstore."""

_PIECE = 1 << 20

_PATIENCE = 30
"""Seconds in which a request to an object store is repeated."""


class FileStore(Protocol):
    """A place of files under keys such as `run/tool/name`.

    Whatever goes wrong is an `OSError`, or an error of the object store's client.
    """

    def put(self, key: str, content: BinaryIO) -> None:
        """Write a file: all of it, durably, or nothing."""

    def get(self, key: str) -> BinaryIO:
        """Return the content of a file.

        Raises:
            FileNotFoundError: There is none of this key.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files. Those that are not there are left out."""

    def delete_all(self, first: str) -> None:
        """Delete all files whose keys begin with `first` and a slash."""

    def keys(self, last: str) -> Iterator[str]:
        """Yield the keys of all files that end with `last`."""


def open_file_store(files: SharedFiles, name: str = "files") -> FileStore:
    """Return the place that a program has named.

    Args:
        files: The place.
        name: The name of the option, for errors.

    Raises:
        UsageError: It names none, or obstore is not installed.
    """
    if isinstance(files, str) and "://" in files:
        return ObjectStore(_store_of_url(files, name))
    if isinstance(files, (str, os.PathLike)) and os.fspath(files):
        return FolderStore(Path(files).absolute())
    if all(callable(getattr(files, name, None)) for name in ("put", "get", "list", "delete")):
        return ObjectStore(cast("ObjectClient", files))
    raise UsageError(
        f"expected {name} as a folder, a URL such as 's3://bucket/agents' or a store of obstore: "
        f"got {files!r}"
    )


def _store_of_url(url: str, name: str) -> ObjectClient:
    scheme = url.partition("://")[0]
    try:
        obstore = _lazy.obstore_store
    except ImportError:
        raise UsageError(
            f"{name}='{scheme}://…' needs the package obstore: pip install 'callslip[shared]', or "
            "pass a folder"
        ) from None
    if scheme == "memory":
        return obstore.MemoryStore()
    seconds = timedelta(seconds=_PATIENCE)
    try:
        return obstore.from_url(url, retry_config={"max_retries": 10, "retry_timeout": seconds})
    except Exception as error:  # noqa: BLE001  # the client has many
        # The message may contain the URL, and that a password.
        why = "it is not valid" if set("@?") & set(url) else first_line(error)
        raise UsageError(f"{name}='{scheme}://…' can't be used: {why}") from None


def first_line(error: BaseException) -> str:
    """Return the message of an error, without what obstore adds for its own developers."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class FolderStore:
    """A folder, which may be on a network file system that knows renaming.

    Args:
        folder: It is made with the first file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, content: BinaryIO) -> None:
        """Write a file beside its place, and rename it."""
        path = self._folder / key
        # Names that are new have to reach the disk too, the one of the folder among them.
        above = self._folder if self._folder.exists() else self._folder.parent
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = path.parent / f".{secrets.token_hex(8)}"
        try:
            with new_file(unfinished) as file:
                shutil.copyfileobj(content, file, _PIECE)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
        for folder in path.parents:
            _sync_folder(folder)
            if folder == above:
                break

    def get(self, key: str) -> BinaryIO:
        """Open a file."""
        return (self._folder / key).open("rb")

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files."""
        for key in keys:
            (self._folder / key).unlink(missing_ok=True)

    def delete_all(self, first: str) -> None:
        """Delete a folder."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder / first)

    def keys(self, last: str) -> Iterator[str]:
        """Look through the folder and those in it."""
        for path in sorted(path for path in self._folder.rglob(f"*{last}") if path.is_file()):
            yield path.relative_to(self._folder).as_posix()

    def __repr__(self) -> str:
        return repr(str(self._folder))


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder written to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems write names at once, and know no other way.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


class ObjectStore:
    """A store of obstore: S3, Google Cloud, Azure, memory and others.

    Args:
        store: The store object.
    """

    def __init__(self, store: ObjectClient) -> None:
        self._store = store

    def put(self, key: str, content: BinaryIO) -> None:
        """Write an object. It is there as a whole or not at all."""
        self._store.put(key, content)

    def get(self, key: str) -> BinaryIO:
        """Copy an object into a temporary file."""
        found = self._store.get(key)
        file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  # the caller closes it
        try:
            for piece in found.stream(min_chunk_size=_PIECE):
                file.write(piece)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects."""
        for key in keys:
            # Some services fail if there is none, others do not.
            with suppress(FileNotFoundError):
                self._store.delete(key)

    def delete_all(self, first: str) -> None:
        """Delete all objects below a prefix."""
        for objects in self._store.list(f"{first}/"):
            self.delete([one["path"] for one in objects])

    def keys(self, last: str) -> Iterator[str]:
        """List all objects."""
        for objects in self._store.list():
            yield from (one["path"] for one in objects if one["path"].endswith(last))

    def __repr__(self) -> str:
        return repr(self._store)
