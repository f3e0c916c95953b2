"""What a console shows: the store of this process, or a file that any process may own."""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from callslip._base import _lazy
from callslip._base.options import is_url
from callslip.errors import StoreError, UsageError
from callslip.runs import Run
from callslip.store import StoredRun, TicketStore
from callslip.store._database import waiting_in
from callslip.store._file import StoreFile, is_open_here

__all__ = ["Listing", "Source", "source_of"]


@dataclass(frozen=True, slots=True)
class Listing:
    """The runs of a store.

    Attributes:
        runs: The runs, the latest first.
        waiting: The ids of the tickets that are awaiting approval, by the id of their run.
    """

    runs: list[StoredRun]
    waiting: dict[str, list[str]]


class Source(ABC):
    """The runs that a console shows.

    Attributes:
        name: The name of the file, for people.
    """

    name: str

    @abstractmethod
    def version(self) -> object:
        """Return what differs after each change of a run. It is asked for often."""

    @abstractmethod
    def listing(self) -> Listing:
        """Return the runs."""

    @abstractmethod
    def read(self, run_id: str) -> Run:
        """Return a run, to be read.

        Raises:
            StoreError: There is no such run, or it cannot be read.
        """

    @abstractmethod
    def change(self, change: Callable[[TicketStore], None]) -> None:
        """Call a function with the store, to write to it.

        Raises:
            StoreError: Another process owns the file.
        """

    @abstractmethod
    def owner(self) -> str | None:
        """Return the process that writes to the file, in words; `None` if this one may."""


class _OwnStore(Source):
    """The store of this process."""

    def __init__(self, store: TicketStore) -> None:
        self._store = store
        self.name = store.address or "runs in memory"
        if store.path is not None:
            self.name = Path(store.path).name

    def version(self) -> object:
        if self._store.path is not None:
            return _stamp(self._store.path)
        if self._store.address is not None:
            return self._store.query(_LATEST)
        return [(run.run_id, run.updated_at, run.finished_at) for run in self._store.runs()]

    def listing(self) -> Listing:
        return Listing(self._store.runs(), waiting_in(self._store))

    def read(self, run_id: str) -> Run:
        return self._store.run(run_id)

    def change(self, change: Callable[[TicketStore], None]) -> None:
        change(self._store)

    def owner(self) -> str | None:
        return None


_LATEST = """
SELECT count(*) AS runs, max(updated_at) AS last, (SELECT max(id) FROM callslip.inbox) AS told
FROM callslip.run
"""

_locks: dict[Path, threading.Lock] = {}
"""In one process, closing a file in one place lets go of what locks it in another."""

_TRIES = 20
_PAUSE = 0.05
"""Seconds until a file is tried again that another process has open for a moment."""

_SETTLED = 2.0
"""Seconds after which the lock of an owner is tried: it may have been killed."""


class _File(Source):
    """The file of a store. It is open only while something is read or written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.name
        self._lock = _locks.setdefault(path, threading.Lock())
        self._free: object = None
        with self._open():
            pass

    @contextmanager
    def _open(self) -> Iterator[StoreFile]:
        with self._lock:
            if is_open_here(self._path):
                raise UsageError(
                    f"expected a store: got {self._path}, which this process has open; pass its "
                    "TicketStore"
                )
            with StoreFile(self._path) as file:
                yield file

    def version(self) -> object:
        return _stamp(str(self._path)), self.owner()

    def listing(self) -> Listing:
        with self._open() as file:
            return Listing(list(file.runs()), file.waiting())

    def read(self, run_id: str) -> Run:
        with self._open() as file:
            return file.run(run_id)

    def change(self, change: Callable[[TicketStore], None]) -> None:
        with self._lock:
            # A store would make a file that is not there.
            with StoreFile(self._path):
                pass
            with self._own() as store:
                change(store)

    def _own(self) -> TicketStore:
        for _ in range(_TRIES - 1):
            try:
                return TicketStore(self._path)
            except StoreError:
                if self.owner() is not None:
                    break
                time.sleep(_PAUSE)
        return TicketStore(self._path)

    def owner(self) -> str | None:
        lock = self._path.with_name(f"{self._path.name}.lock")
        stamp = _stamp_of(lock)
        if stamp is None or stamp == self._free:
            return None
        if sys.platform == "win32":
            # There a lock keeps others from reading what its owner has written.
            return None if _is_readable(lock) else "another process"
        pid = _pid_in(lock)
        if pid is not None and _lives(pid):
            # A process that was killed leaves its number, which another one may have by now.
            # The lock is tried once, since another process may be about to take it.
            if time.time() - stamp[2] / 1e9 < _SETTLED or _is_locked(lock):
                return f"process {pid}"
            self._free = stamp
        return None


def source_of(store: TicketStore | str | os.PathLike[str]) -> Source:
    """Return what to show of a store, or of a file.

    Raises:
        UsageError: It is neither, or this process has the file open.
        StoreError: The file cannot be read, or is not a store.
    """
    if isinstance(store, TicketStore):
        return _OwnStore(store)
    if isinstance(store, str) and is_url(store):
        return _OwnStore(TicketStore(store))
    if isinstance(store, str | os.PathLike):
        return _File(Path(store).resolve())
    raise UsageError(
        f"expected a store: got {type(store).__name__}; pass a TicketStore, or the path of its file"
    )


def _stamp(path: str) -> object:
    return [_stamp_of(Path(name)) for name in (path, f"{path}-wal")]


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _pid_in(lock: Path) -> int | None:
    """Return the number of the process that has signed a lock."""
    try:
        pid = int(lock.read_text("utf-8").partition("\n")[0])
    except (OSError, ValueError):
        return None
    return pid if pid > 0 else None


def _is_readable(lock: Path) -> bool:
    try:
        lock.read_bytes()
    except OSError:
        return False
    return True


def _lives(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        # On Windows this would end the process.
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _is_locked(lock: Path) -> bool:
    if sys.platform == "win32":
        return not _is_readable(lock)
    try:
        with lock.open("rb") as file:
            _lazy.fcntl.flock(file, _lazy.fcntl.LOCK_SH | _lazy.fcntl.LOCK_NB)
    except OSError:
        return True
    return False
