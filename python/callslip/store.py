"""Where runs are kept: listing and reading them and their tickets, deleting, replaying."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias
from weakref import WeakSet

from callslip import _core
from callslip._options import check_one_of
from callslip._threads.commits import Commits
from callslip.errors import StoreError, UsageError
from callslip.runs import Run, StopReason, Ticket, TicketKind, TicketStatus, Usage
from callslip.runs._run import run_under_way

__all__ = ["Durability", "RunStatus", "StoredRun", "TicketStore", "replay"]

Durability: TypeAlias = Literal["full", "normal", "memory"]
RunStatus: TypeAlias = Literal["running", "finished"]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a store, as it is listed; `TicketStore.run` has the whole.

    Attributes:
        run_id: Unique among runs.
        agent: The name of the agent that worked on it.
        protocol: `"ticket"`, `"chatty"` or `"react"`.
        task: What the user asked for.
        parent_run: The run in whose call it was started; `None` where it stands alone.
        parent_ticket: The ticket of that call.
        status: `"running"` until it is over, also while nobody works on it.
        stop_reason: Why it ended; `None` while it is not over.
        error: What went wrong, where something did.
        turns: How often the model was asked.
        violations: How many replies broke the protocol.
        usage: What the replies cost.
        started_at: Unix seconds.
        updated_at: Unix seconds of its last event.
        finished_at: Unix seconds; `None` while it is not over.
    """

    run_id: str
    agent: str
    protocol: Literal["ticket", "chatty", "react"]
    task: str
    parent_run: str | None
    parent_ticket: str | None
    status: RunStatus
    stop_reason: StopReason | None
    error: str | None
    turns: int
    violations: int
    usage: Usage
    started_at: float
    updated_at: float
    finished_at: float | None


_open: WeakSet[TicketStore] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Write what is still to be written when the program ends."""
    failed: list[StoreError] = []
    for store in _open:
        try:
            store.close()
        except StoreError as error:
            # Where runs wait for what is written, they were told.
            if store.durability == "memory":
                failed.append(error)
    if failed:
        # It stands on standard error; nobody else is left to be told.
        raise failed[0]


def _leave_all() -> None:
    """Leave the files to the parent, in a forked child."""
    for store in _open:
        store._forked()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


class TicketStore:
    """Runs and their tickets, in an SQLite file or in memory.

    One process writes to a file; others may read it, with any SQLite client. In the process that
    writes, read it through `query` and never with `sqlite3`, which would release the file's locks.

    Args:
        path: The file, made where it is not there. Without one the runs are kept in memory, as
            long as this object is.
        durability: When a run goes on after an event. `"full"`: when it is on the disk. `"normal"`:
            when it is with the operating system; a power failure may cost the last moments, the
            end of the process nothing. `"memory"`: at once; the file is written behind.

    Raises:
        StoreError: The file can't be opened, is none of ours, or belongs to another process.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, durability: Durability = "full"
    ) -> None:
        if durability not in {"full", "normal", "memory"}:
            raise UsageError(
                f"expected durability='full', 'normal' or 'memory': got {durability!r}"
            )
        if path in {":memory:", ""}:
            raise UsageError("a store in memory has no path: TicketStore()")
        # It may be opened anew after the program has changed its directory.
        self.path = None if path is None else str(Path(path).absolute())
        self.durability = durability
        self._lock = threading.Lock()
        self._closed = False
        self._open()

    def _open(self) -> None:
        if self.path is None:
            self._core = _core.Store.memory()
        else:
            self._core = _core.Store.sqlite(self.path, self.durability)
            _open.add(self)
        self.commits = Commits(self._core)

    @property
    def _native(self) -> _core.Store:
        """The core's store. One that has failed is opened anew, to go on with what is there."""
        with self._lock:
            failure = self._core.failed
            if failure is not None and self.path is not None and not self._closed:
                if not Path(self.path).exists():
                    raise StoreError(failure)
                with suppress(StoreError):
                    self._core.close()
                self._open()
            return self._core

    def runs(
        self,
        *,
        status: RunStatus | None = None,
        agent: str | None = None,
        parent: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
    ) -> list[StoredRun]:
        """List runs, the latest first.

        Args:
            status: `"running"` or `"finished"`.
            agent: The agent's name.
            parent: The run in whose calls they were started.
            since: Started at this Unix time or later.
            until: Started before this Unix time.
            limit: At most so many.
        """
        if status is not None:
            check_one_of("status", status, ("running", "finished"))
        _count("limit", limit)
        rows = self._native.runs(
            status=status, agent=agent, parent=parent, since=since, until=until, limit=limit
        )
        return [_stored_run(row) for row in rows]

    def tickets(
        self,
        *,
        status: TicketStatus | None = None,
        kind: TicketKind | None = None,
        run: str | None = None,
        parent: str | None = None,
        parked: bool | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
    ) -> list[Ticket]:
        """List tickets with their whole results, the latest first.

        Args:
            status: `"IN_PROGRESS"` or `"COMPLETED"`.
            kind: `"tool_call"` or `"task"`.
            run: The run that opened them.
            parent: The run in whose calls the runs that opened them were started.
            parked: Those that wait for approval, or those that do not.
            since: Opened at this Unix time or later.
            until: Opened before this Unix time.
            limit: At most so many.
        """
        if status is not None:
            check_one_of("status", status, ("IN_PROGRESS", "COMPLETED"))
        _count("limit", limit)
        rows = self._native.tickets(
            status=status,
            kind=kind,
            run=run,
            parent=parent,
            parked=parked,
            since=since,
            until=until,
            limit=limit,
        )
        return [Ticket.from_row(row) for row in rows]

    def run(self, run_id: str) -> Run:
        """Return a run as it stands in the store: transcript, tickets, log.

        Where this process works on it, it is that very run, which can be cancelled or told more. A
        run that nobody works on can be told more too, and its calls be approved or denied:
        `Agent.resume` goes on with that.

        Raises:
            StoreError: There is no such run.
        """
        run = run_under_way(run_id)
        if run is not None and run._is_kept_in(self):
            return run
        core = _core.Run.load(self._native, run_id)
        return Run(core, run_id, core.task, store=self)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of an SQL query, which can't change anything.

        The views `runs`, `tickets` and `events` are there to be queried.

        Raises:
            StoreError: SQLite refuses it, or this store is not a file.
        """
        names, rows = self._native.query(sql, list(parameters))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def import_run(self, log: str | os.PathLike[str] | Iterable[str]) -> str:
        """Take in a run that was exported, under its own id.

        Args:
            log: JSON lines, as `Run.export` gives them: as text or line by line; or the path of a
                file of them.

        Returns:
            The run's id.

        Raises:
            ReplayError: It is not the log of a run.
            StoreError: There is a run with this id already.
        """
        return self._native.import_run(_lines(log))

    def delete(self, *run_ids: str) -> int:
        """Delete runs, their tickets and the runs that were started in their calls.

        Returns:
            How many runs were deleted.

        Raises:
            StoreError: One of them is being worked on, or is not there.
        """
        return self._native.delete(list(run_ids))

    def prune(self, *, older_than: float | timedelta | None = None, keep: int | None = None) -> int:
        """Delete runs that are over, with those that were started in their calls.

        Args:
            older_than: Those that ended longer ago than this: seconds, or a `timedelta`.
            keep: All but so many of the latest. With both, a run must be over both bounds.

        Returns:
            How many runs were deleted.
        """
        if older_than is None and keep is None:
            raise UsageError("expected older_than, keep or both: got neither")
        if isinstance(older_than, timedelta):
            older_than = older_than.total_seconds()
        _count("keep", keep)
        if older_than is not None and not older_than >= 0:
            raise UsageError(f"expected older_than to be 0 seconds or more: got {older_than}")

        before = None if older_than is None else time.time() - older_than
        return self._native.prune(before, keep)

    def compact(self, run_id: str) -> None:
        """Fold a run's events into one.

        It can be read and resumed as before, in less space; what it was made from is gone, so that
        it can't be replayed any more.

        Raises:
            StoreError: There is no such run, or it is being worked on.
        """
        self._native.compact(run_id)

    def end_children(self, run_id: str, tickets: Collection[str] | None = None) -> None:
        """Cancel what was started in these calls of a run, or in all of them.

        What is being worked on is left alone, and what can't be read.
        """
        for child in self.runs(parent=run_id, status="running"):
            if tickets is None or child.parent_ticket in tickets:
                with suppress(StoreError):
                    _core.Run.abandon(self._native, child.run_id, time.time())
                    self.end_children(child.run_id)

    def close(self) -> None:
        """Write what is still to be written, and give the file up to others.

        Where the path was opened more than once in this process, the last one to close gives it up.

        Raises:
            StoreError: It can't be written.
        """
        self._closed = True
        self._core.close()

    def _forked(self) -> None:
        """Leave the file to the parent, in a forked child: this store is of no use there."""
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

    def __repr__(self) -> str:
        if self.path is None:
            return "TicketStore()"
        return f"TicketStore({self.path!r}, durability={self.durability!r})"


def replay(log: Run | str | os.PathLike[str] | Iterable[str]) -> Run:
    """Drive the machine once more with the replies and outcomes of a log.

    No model is asked and no tool is called. Every event must come out as it is recorded, so a log
    that was kept tells whether replies are still read, checked and answered in the same way.

    Args:
        log: A run; JSON lines, as text or line by line; or the path of a file of them.

    Returns:
        The run that came out.

    Raises:
        ReplayError: It is not the log of a run, it was compacted, or an event differs: the message
            has both.
    """
    core = _core.Run.replay(_lines(log.export() if isinstance(log, Run) else log))
    return Run(core, core.run_id, core.task)


def _lines(log: str | os.PathLike[str] | Iterable[str]) -> list[str]:
    if isinstance(log, os.PathLike) or (isinstance(log, str) and log.strip()[:1] not in {"", "{"}):
        log = Path(log).read_text("utf-8")
    # Not `splitlines`: strings of JSON may hold what it takes for the end of a line.
    lines = log.split("\n") if isinstance(log, str) else log
    return [line for line in lines if line.strip()]


def _stored_run(row: _core.RunRow) -> StoredRun:
    names, state, usage, times = row
    return StoredRun(*names, *state, Usage(*usage), *times)


def _count(name: str, value: int | None) -> None:
    if value is not None and value < 0:
        raise UsageError(f"expected {name} to be 0 or more: got {value}")
