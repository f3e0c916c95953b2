"""Folders on this machine: of artifacts, and of the files that scripts share."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from callslip._base import _lazy
from callslip.errors import UsageError

__all__ = ["ArtifactFolder", "WorkFolder", "new_file", "read_file", "remove_tree"]


class ArtifactFolder:
    """The folder for the artifacts of one script, created with the first one.

    A temporary folder is removed together with this object.

    Args:
        above: The folder that contains it; `None` for a temporary one.

    Raises:
        UsageError: `above` is not writable.
    """

    def __init__(self, above: Path | None) -> None:
        self.is_temporary = above is None
        if above is None:
            # Referenced, because it is removed with its last reference.
            self._shared = _shared_folder()
            above = self._shared.path
        else:
            _check_writable(above)
        self.path = above.absolute() / f"script-{secrets.token_hex(8)}"
        if self.is_temporary:
            weakref.finalize(self, _remove_artifacts, self.path, os.getpid())

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def put(self, path: str, content: bytes) -> Path:
        """Write a file. The path must be safe already."""
        file = self.path / path
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with new_file(file) as out:
            out.write(content)
        return file


def new_file(path: Path) -> BinaryIO:
    """Open a new file that nobody else may read, for writing.

    Raises:
        OSError: It cannot be written, for example because there is a file of that name.
    """
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))


def read_file(path: Path, most: int) -> bytes:
    """Return the first bytes of a file of a script, `most` of them and one more.

    It is read once, even if it grows meanwhile, and no link is followed.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    # Opening a pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"expected a file: got something else at '{path}'")
        return file.read(most + 1)


def _check_writable(folder: Path) -> None:
    """Check before a script runs, because its artifacts would be lost."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"artifacts can't be kept in '{folder}': {error.strerror}") from error


class WorkFolder:
    """A working directory that the scripts of a session share, or the folder of artifacts.

    It is locked while it is in use. Folders of a process that was killed are therefore recognised,
    and removed when the next one is created.

    Attributes:
        path: The path of the folder.
    """

    path: Path

    def __init__(self) -> None:
        self.path, lock = _make_folder()
        self._finalizer = weakref.finalize(self, _remove_folder, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove the folder. May be called more than once."""
        self._finalizer()


_sharing = threading.Lock()
_shared: dict[int, weakref.ref[WorkFolder]] = {}
"""The folder of temporary artifacts by the process id: a forked child needs its own."""


def _shared_folder() -> WorkFolder:
    """Return the folder for temporary artifacts, which is removed with the last of them."""
    with _sharing:
        known = _shared.get(os.getpid())
        folder = None if known is None else known()
        if folder is None:
            folder = WorkFolder()
            _shared.clear()
            _shared[os.getpid()] = weakref.ref(folder)
        return folder


def _make_folder() -> tuple[Path, int]:
    """Create a working directory and its lock, in a folder that belongs to this user alone."""
    temporary = Path(tempfile.gettempdir())
    above = temporary / f"callslip-{os.getuid()}"
    try:
        while True:
            # Not `exist_ok`, which looks again and fails if the folder was removed meanwhile.
            with suppress(FileExistsError):
                above.mkdir(mode=0o700)
            # Another process may have removed it just now.
            with suppress(FileNotFoundError):
                return _make_folder_in(above)
    except OSError as error:
        raise UsageError(
            f"expected a folder for temporary files that can be written to: got '{temporary}' "
            f"({error.strerror}). Set TMPDIR to another one"
        ) from error


def _make_folder_in(above: Path) -> tuple[Path, int]:
    about = above.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        # Somebody else has made it, in a folder that everyone may write to.
        above = Path(tempfile.mkdtemp(prefix="callslip-"))
    _remove_abandoned(above)
    path = above / secrets.token_hex(8)
    lock = _make_lock(path)
    path.mkdir(mode=0o700)
    return path, lock


def _remove_artifacts(path: Path, process: int) -> None:
    # A forked child must not remove the folders of its parent.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def _make_lock(path: Path) -> int:
    """Create the lock of a folder. It is renamed into place once it is locked."""
    made = path.with_suffix(".new")
    descriptor = _open_locked(made, os.O_CREAT)
    made.rename(path.with_suffix(".lock"))
    return descriptor


def _open_locked(path: Path, flags: int = 0) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        _lazy.fcntl.flock(descriptor, _lazy.fcntl.LOCK_EX | _lazy.fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_folder(path: Path, lock: int, process: int) -> None:
    if os.getpid() == process:
        remove_tree(path)
        with suppress(OSError):
            path.with_suffix(".lock").unlink()
        with suppress(OSError):
            path.parent.rmdir()
    with suppress(OSError):
        os.close(lock)


def _remove_abandoned(above: Path) -> None:
    """Remove the folders of processes that were killed."""
    for lock in above.glob("*.lock"):
        try:
            descriptor = _open_locked(lock)
        except OSError:
            continue
        _remove_folder(lock.with_suffix(""), descriptor, os.getpid())


def remove_tree(path: Path) -> None:
    """Remove a directory of a script: of any depth, with any modes.

    Directories are moved to the top before they are read, so that no path gets long.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    mark, moved = secrets.token_hex(8), 0
    try:
        os.fchmod(top, 0o700)
        while names := _list_names(top):
            before = moved
            for name in names:
                moved += _flatten(top, name, f"{mark}-{moved}")
            if moved == before and _list_names(top) == names:
                # The rest cannot be removed.
                return
    except OSError:
        return
    finally:
        os.close(top)
        with suppress(OSError):
            path.rmdir()


def _flatten(top: int, name: str, mark: str) -> int:
    """Remove an entry, and move its directories beside it. Returns their number."""
    about = os.lstat(name, dir_fd=top)
    if not stat.S_ISDIR(about.st_mode):
        with suppress(OSError):
            os.unlink(name, dir_fd=top)
        return 0
    moved = 0
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top
        )
        try:
            for entry in _list_names(inner):
                if stat.S_ISDIR(os.lstat(entry, dir_fd=inner).st_mode):
                    os.chmod(entry, 0o700, dir_fd=inner)
                    os.rename(entry, f"{mark}-{moved}", src_dir_fd=inner, dst_dir_fd=top)
                    moved += 1
                else:
                    os.unlink(entry, dir_fd=inner)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)
    return moved


def _list_names(directory: int) -> list[str]:
    return os.listdir(directory)  # a descriptor: the path may be too long
