"""Folders on this machine: what scripts leave to be kept, and what they leave to each other."""

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
from typing import Self

from callslip import _lazy
from callslip.errors import UsageError

__all__ = ["ArtifactFolder", "WorkFolder", "remove_tree"]


class ArtifactFolder:
    """Where the artifacts of one script are. A temporary one lasts as long as this object.

    It is made with the first of them.

    Args:
        above: The folder that it is made in; `None` for a temporary one.

    Raises:
        UsageError: Nothing can be written there.
    """

    def __init__(self, above: Path | None) -> None:
        self.is_temporary = above is None
        if above is None:
            # Held, for it goes with the last that holds it.
            self._shared = _shared_folder()
            above = self._shared.path
        else:
            _check_writable(above)
        self.path = above.absolute() / f"script-{secrets.token_hex(8)}"
        if self.is_temporary:
            weakref.finalize(self, _forget, self.path, os.getpid())

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def put(self, path: str, content: bytes) -> Path:
        """Write a file. Its path is known to be safe."""
        file = self.path / path
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as out:
            out.write(content)
        return file


def _check_writable(folder: Path) -> None:
    """Before a script runs: what it leaves would be lost."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"artifacts can't be kept in '{folder}': {error.strerror}") from error


class WorkFolder:
    """A working directory that the scripts of a session share, or the folder of artifacts.

    It is locked while it is in use. So those of a process that was killed are known, and removed
    when the next one is made.
    """

    def __init__(self) -> None:
        while True:
            try:
                self.path, lock = _made()
                break
            except FileNotFoundError:
                # Whoever removed the last one has removed the folder of all.
                continue
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove it. May be said any number of times."""
        self._finalizer()


_sharing = threading.Lock()
_shared: dict[int, weakref.ref[WorkFolder]] = {}
"""The folder of the temporary artifacts of this process, by its id: a forked child has its own."""


def _shared_folder() -> WorkFolder:
    """Return the folder for temporary artifacts. It goes with the last of them."""
    with _sharing:
        known = _shared.get(os.getpid())
        folder = None if known is None else known()
        if folder is None:
            folder = WorkFolder()
            _shared.clear()
            _shared[os.getpid()] = weakref.ref(folder)
        return folder


def _made() -> tuple[Path, int]:
    """Make a working directory and its lock, in a folder that is this user's alone."""
    above = Path(tempfile.gettempdir()) / f"callslip-{os.getuid()}"
    above.mkdir(mode=0o700, exist_ok=True)
    about = above.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        # Somebody else's, in a folder that anybody may write to.
        above = Path(tempfile.mkdtemp(prefix="callslip-"))
    _sweep(above)
    path = above / secrets.token_hex(8)
    lock = _lock(path)
    path.mkdir(mode=0o700)
    return path, lock


def _forget(path: Path, process: int) -> None:
    # A forked child that ends has nothing to tidy up after.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def _lock(path: Path) -> int:
    """Make the lock of a folder. It has its name only once it is locked."""
    made = path.with_suffix(".new")
    descriptor = _locked(made, os.O_CREAT)
    made.rename(path.with_suffix(".lock"))
    return descriptor


def _locked(path: Path, flags: int = 0) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        _lazy.fcntl.flock(descriptor, _lazy.fcntl.LOCK_EX | _lazy.fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(path: Path, lock: int, process: int) -> None:
    if os.getpid() == process:
        remove_tree(path)
        with suppress(OSError):
            path.with_suffix(".lock").unlink()
        with suppress(OSError):
            path.parent.rmdir()
    with suppress(OSError):
        os.close(lock)


def _sweep(above: Path) -> None:
    """Remove what processes that were killed have left."""
    for lock in above.glob("*.lock"):
        try:
            descriptor = _locked(lock)
        except OSError:
            continue
        _remove(lock.with_suffix(""), descriptor, os.getpid())


def remove_tree(path: Path) -> None:
    """Remove a directory that a script has filled: of any depth, with any modes.

    Directories are taken to the top before they are looked into, so that no path gets long.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    mark, moved = secrets.token_hex(8), 0
    try:
        os.fchmod(top, 0o700)
        while names := _names(top):
            before = moved
            for name in names:
                moved += _flatten(top, name, f"{mark}-{moved}")
            if moved == before and _names(top) == names:
                # What can't be removed is left.
                return
    except OSError:
        return
    finally:
        os.close(top)
        with suppress(OSError):
            path.rmdir()


def _flatten(top: int, name: str, mark: str) -> int:
    """Remove an entry, and put the directories in it beside it. Returns how many these are."""
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
            for entry in _names(inner):
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


def _names(directory: int) -> list[str]:
    return os.listdir(directory)  # a descriptor: the path may be too long
