"""Stores of runs: list, read, delete, export and replay runs and their tickets."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias
from weakref import WeakSet

from callslip import _core
from callslip._base.attribute_names import knows_attributes
from callslip._base.exports import export_lines, without_decisions
from callslip._base.option_names import knows_names_of_class
from callslip._base.options import (
    check_flag,
    check_known,
    check_place,
    check_run_id,
    check_seconds,
    check_text,
    check_whole,
    is_url,
)
from callslip._threads.commits import Commits
from callslip._threads.forks import after_in_child
from callslip.errors import StoreError, UnknownTicket, UsageError
from callslip.events._event import ticket_id
from callslip.runs import Run
from callslip.runs._conversation import run_lock
from callslip.runs._feed import tell_closed, tell_deleted
from callslip.runs._refused import naming_unknown
from callslip.store._reads import StoreReads

__all__ = ["Durability", "TicketStore", "open_stores", "replay"]

Durability: TypeAlias = Literal["full", "normal", "memory"]


open_stores: WeakSet[TicketStore] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Write all pending events when the program ends."""
    failed: list[StoreError] = []
    for store in open_stores:
        try:
            store.close()
        except StoreError as error:
            # With any other durability, the runs have waited, and have raised.
            if store.durability == "memory":
                failed.append(error)
    if failed:
        # Python prints it on standard error; no handler is left at this point.
        raise failed[0]


def _leave_all() -> None:
    """Leave the files to the parent process, in a forked child."""
    for store in open_stores:
        store._leave_to_parent()
    open_stores.clear()


after_in_child(_leave_all)


_ELSEWHERE = {
    "get load read find fetch": "store.run(run_id)",
    "list all keys items": "store.runs()",
    "delete remove": "store.erase(…)",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
@knows_names_of_class(
    {"url": "the URL as the path", "db": "path=…", "connection_string": "the URL as the path"}
)
class TicketStore(StoreReads):
    """Runs and their tickets, in an SQLite file, in a PostgreSQL database or in memory.

    One process writes to a file; others may read it, with any SQLite client. In the process that
    writes, read it with `query` and never with `sqlite3`, which would release the file's locks.

    Any number of processes use the same database, which `callslip migrate` makes ready. One of them
    works on a run at a time: if it ends or no longer responds, another one takes the run over. See
    `callslip.fleet` for workers.

    Args:
        path: The file, created if it does not exist; or the URL of a database, such as
            `"postgresql://user@host/database"`. Without one, the runs are in memory, and are gone
            with this object.
        durability: The point at which a run continues after an event. `"full"`: once the event is
            on the disk. `"normal"`: once the operating system has it; a power failure may lose the
            last moments, but the end of the process does not. `"memory"`: immediately; the file is
            written in the background. A database has `"full"`.

    Attributes:
        path: The absolute path of the file; `None` for any other store.
        address: The URL of the database, without its password; `None` for any other store.

    Raises:
        UsageError: `durability` is not one of these, or `path` is an SQLite name for memory.
        StoreError: The file cannot be opened, is not a store, or another process writes to it; or
            the database cannot be reached, or has no tables of this version.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, durability: Durability = "full"
    ) -> None:
        if durability not in {"full", "normal", "memory"}:
            raise UsageError(
                f"expected durability='full', 'normal' or 'memory': got {durability!r}"
            )
        check_place(path)
        self._url = path if isinstance(path, str) and is_url(path) else None
        if self._url is not None and durability != "full":
            raise UsageError(
                f"expected durability='full' for a database: got {durability!r}; set "
                "synchronous_commit in the database for less"
            )
        # Absolute, since the store may reopen the file after the program has changed its directory.
        self.path: str | None = None
        if path is not None and self._url is None:
            self.path = str(Path(path).absolute())
        self.address: str | None = None
        self.durability = durability
        # Called with the id of a run that has received a message, for an engine that drives it.
        self._was_told: Callable[[str], None] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._open()

    def _open(self) -> None:
        self._shared: _core.SharedRuns | None = None
        if self._url is not None:
            self._core = _core.Store.postgres(self._url)
            self._shared, self.address = _core.SharedRuns(self._core), self._core.address
        elif self.path is not None:
            self._core = _core.Store.sqlite(self.path, self.durability)
        else:
            self._core = _core.Store.memory()
        if self.path is not None or self._shared is not None:
            open_stores.add(self)
        self._commits = Commits(self._core, is_shared=self._shared is not None)

    @property
    def _identity(self) -> str | int:
        """Equal for two objects of the same store."""
        return self.path or self._url or id(self)

    @property
    def _native(self) -> _core.Store:
        """The core's store. After a failure the file is opened again, with the runs that it has."""
        with self._lock:
            failure = self._core.failed
            if failure is not None and self._is_kept and not self._closed:
                if self.path is not None and not Path(self.path).exists():
                    raise StoreError(failure)
                with suppress(StoreError):
                    self._core.close()
                self._open()
            return self._core

    @property
    def _is_kept(self) -> bool:
        return self.path is not None or self._url is not None

    def import_run(
        self, log: str | os.PathLike[str] | Iterable[str], *, trust: bool = False
    ) -> str:
        """Import an exported run, under its own id.

        The author of the log decides how the run continues when it is resumed, so approved calls
        without an outcome await approval again.

        Args:
            log: JSON lines, as `Run.export` returns them: as text or line by line; or the path of a
                file with them, or of an archive (`.jsonl.gz`).
            trust: Whether approvals of calls without an outcome count: pass `True` only for a log
                that others can't have changed. Default: they do not.

        Returns:
            The id of the run.

        Raises:
            ReplayError: The lines are not the log of a run.
            StoreError: There is already a run of this id.
        """
        check_flag("trust", trust)
        lines = export_lines(log)
        return self._native.import_run(lines if trust else without_decisions(lines))

    def delete(self, *run_ids: str) -> int:
        """Delete runs with their tickets and child runs.

        Returns:
            The number of deleted runs.

        Raises:
            StoreError: There is no such run, or a driver works on it.
        """
        for run_id in run_ids:
            check_run_id(run_id)
        with ExitStack() as locks:
            for run_id in sorted(set(run_ids)):
                locks.enter_context(run_lock(self, run_id))
            deleted = self._native.delete(list(run_ids))
        tell_deleted(self, run_ids)
        return deleted

    def erase(self, *, owner: str) -> int:
        """Delete all runs of an owner, finished or not, with every byte of them.

        Data that runs of other owners use too stays, for example an image. In a file, no byte of
        the runs is left, nor in its side files; the file is rewritten for that, and temporarily
        needs twice its size on the disk. In a database, dead rows stay in the files of the server
        until `VACUUM FULL`. Exports, archives and files of scripts are not a part of the store.

        Args:
            owner: The owner, as for `Agent.run`.

        Returns:
            The number of deleted runs.

        Raises:
            UsageError: `owner` is not the name of an owner.
            StoreError: A driver works on one of the runs, so no run is deleted: cancel it first.
                Or another program reads the file, which may have bytes of them until this is called
                again.
        """
        check_text("owner", owner)
        check_known("owner", owner)
        runs = [run.run_id for run in self.runs(owner=owner)]
        with ExitStack() as locks:
            for run_id in sorted(runs):
                locks.enter_context(run_lock(self, run_id))
            erased = self._native.erase(owner)
        tell_deleted(self, erased)
        return len(erased)

    def answer(
        self,
        key: str,
        value: object = None,
        *,
        error: str | None = None,
        by: str | None = None,
        owner: str | None = None,
        agent: str = "agent",
    ) -> None:
        """Answer the call that has returned `Pending` with this key, from any process.

        The first answer counts. A webhook may answer the key before the call has returned: then it
        is to try again.

        Args:
            key: The key.
            value: As for `Run.answer`.
            error: As for `Run.answer`.
            by: As for `Run.answer`.
            owner: The owner of the run.
            agent: The name of the agent of the run.

        Raises:
            UnknownTicket: No call has the key.
            Outdated: The call was answered already, say; see `Run.answer`.
            UsageError: The value is of another type; see `Run.answer`.
            StoreError: The store cannot be read, or the answer cannot be written down.
        """
        check_text("key", key)
        check_known("key", key)
        check_known("owner", owner)
        check_text("agent", agent)
        found = self._native.ticket_with(owner, agent, key)
        if found is None:
            raise UnknownTicket(
                f"expected the key of a call of agent {agent!r} that has returned Pending: got "
                f"{key!r}, which none has; pass its owner and the name of its agent, and call "
                "answer again once the call has returned"
            )
        run_id, ticket = found
        self.run(run_id).answer(ticket_id(ticket), value, error=error, by=by)

    def prune(self, *, older_than: float | timedelta | None = None, keep: int | None = None) -> int:
        """Delete finished runs with their child runs.

        Args:
            older_than: Delete only runs that ended longer ago than this: seconds, or a `timedelta`.
            keep: The number of the latest runs that are not deleted.

        Returns:
            The number of deleted runs.

        Raises:
            UsageError: Neither argument was passed, or one is negative.
            StoreError: The file cannot be written.
        """
        if older_than is None and keep is None:
            raise UsageError("expected older_than, keep or both: got neither")
        if isinstance(older_than, timedelta):
            older_than = older_than.total_seconds()
        check_whole("keep", keep, none="none of them")
        check_seconds("older_than", older_than, none="any age")
        before = None if older_than is None else time.time() - older_than
        return self._native.prune(before, keep)

    def compact(self, run_id: str) -> None:
        """Replace the events of the run with the id `run_id` by one event with its state.

        The run needs less space then. It can be read and resumed as before, but not replayed.

        Raises:
            UnknownRun: There is no such run.
            StoreError: A driver works on the run.
        """
        check_run_id(run_id)
        with run_lock(self, run_id), naming_unknown(self._native, run_id):
            self._native.compact(run_id)

    def _end_children(
        self, run_id: str, tickets: Collection[str] | None = None, above: str | None = None
    ) -> None:
        """Cancel unfinished child runs that no driver works on. Unreadable runs are left alone.

        Args:
            run_id: The id of the parent run.
            tickets: The ids of the tickets that have started the child runs; default all.
            above: The id of the run with the driver that has driven them; default the parent run.
        """
        above = above or run_id
        for child in self.runs(parent=run_id):
            if tickets is not None and child.parent_ticket not in tickets:
                continue
            # The database cancels those that wait for a worker.
            if child.protocol is None:
                continue
            with suppress(StoreError):
                if child.status == "running":
                    with run_lock(self, child.run_id):
                        _core.Run.abandon(self._native, child.run_id, time.time(), above)
                elif child.stop_reason != "cancelled":
                    continue
                # A process may have ended after this run's end and before the end of its child
                # runs.
                self._end_children(child.run_id, above=above)

    def close(self) -> None:
        """Write all pending events, and release the file for other processes.

        If several stores of this process have opened the file, the last one to close releases it.

        Raises:
            StoreError: The file cannot be written.
        """
        self._closed = True
        try:
            self._core.close()
        finally:
            tell_closed(self)

    def _leave_to_parent(self) -> None:
        """Leave the file to the parent process, in a forked child. The store is unusable there."""
        self._lock = threading.Lock()
        self._core.forked()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> Self:
        # The open file is shared.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        place = self.path or self._url
        if place is None:
            raise UsageError(
                "expected a store that another process can open: got one in memory; pass the path "
                "of a file or the URL of a database"
            )
        return _store_again, (place, self.durability)

    def __repr__(self) -> str:
        if self.address is not None:
            return f"TicketStore({self.address!r})"
        if self.path is None:
            return "TicketStore()"
        return f"TicketStore({self.path!r}, durability={self.durability!r})"


def replay(log: Run | str | os.PathLike[str] | Iterable[str]) -> Run:
    """Compute a run again from the replies and outcomes in its log.

    No model and no tool is called. Every event must be the same as in the log. So a log of
    an earlier version shows whether this version reads, checks and answers replies in the same way.

    Args:
        log: A run; JSON lines, as text or line by line; or the path of a file with them.

    Returns:
        The computed run.

    Raises:
        ReplayError: The lines are not the log of a run, the run was compacted, or an event differs:
            the message has both events.
    """
    core = _core.Run.replay(export_lines(log.export() if isinstance(log, Run) else log))
    return Run(core, core.run_id, core.task)


def _store_again(place: str, durability: Durability) -> TicketStore:
    """Open a pickled store."""
    return TicketStore(place, durability=durability)
