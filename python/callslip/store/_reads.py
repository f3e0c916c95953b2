"""The methods of a store that read: lists of runs and tickets, one run, and queries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from callslip import _core
from callslip._base.options import (
    check_filter,
    check_flag,
    check_known,
    check_one_of,
    check_run_id,
    check_text,
    check_whole,
)
from callslip.errors import StoreError, UsageError
from callslip.runs import Run, Ticket, TicketKind, TicketStatus
from callslip.runs._refused import naming_unknown, unknown_run
from callslip.runs._result import RunStatus
from callslip.runs._run import run_under_way
from callslip.runs._stored import StoredRuns, stored_run
from callslip.runs._view_imports import import_views
from callslip.runs._watch import RunWatch

if TYPE_CHECKING:
    from callslip.store._store import TicketStore

__all__ = ["StoreReads"]


class StoreReads:
    """The methods of `TicketStore` that read."""

    __slots__ = ()

    @property
    def _store(self) -> TicketStore:
        return cast("TicketStore", self)

    def runs(
        self,
        *,
        status: RunStatus | None = None,
        agent: str | None = None,
        owner: str | None = None,
        parent: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
    ) -> StoredRuns:
        """List runs, the latest first, those that wait for a worker among them.

        Args:
            status: `"running"` or `"finished"`; default both.
            agent: The name of their agent; default any.
            owner: Their owner; default any, or none.
            parent: The id of their parent run; default any, or none.
            since: Runs that were started at this time or later, in Unix seconds.
            until: Runs that were started before this time, in Unix seconds.
            limit: The largest number of runs to list; default all.

        Raises:
            UsageError: `status` or `limit` is not valid.
            StoreError: The store cannot be read.
        """
        if status is not None:
            check_one_of("status", status, ("running", "finished"))
        texts = {"agent": agent, "owner": owner, "parent": parent}
        check_filter(texts=texts, since=since, until=until, limit=limit)
        rows = self._store._native.runs(
            status=status, since=since, until=until, limit=limit, **texts
        )
        return StoredRuns(stored_run(row) for row in rows)

    def tickets(
        self,
        *,
        status: TicketStatus | None = None,
        kind: TicketKind | None = None,
        run: str | None = None,
        owner: str | None = None,
        parent: str | None = None,
        awaiting_approval: bool | None = None,
        awaiting: Literal["approval", "result"] | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
    ) -> list[Ticket]:
        """List tickets with their whole results, the latest first.

        Args:
            status: `"IN_PROGRESS"` or `"COMPLETED"`; default both.
            kind: `"tool_call"` or `"task"`; default both.
            run: The id of their run; default any.
            owner: The owner of their run; default any, or none.
            parent: The id of the parent of their run; default any, or none.
            awaiting_approval: Whether they are awaiting approval; default both.
            awaiting: `"approval"` or `"result"` (for `Run.answer`): only tickets that wait for it.
                Default: all tickets.
            since: Tickets that were opened at this time or later, in Unix seconds.
            until: Tickets that were opened before this time, in Unix seconds.
            limit: The largest number of tickets to list; default all.

        Raises:
            UsageError: `status` or `limit` is not valid.
            StoreError: The store cannot be read.
        """
        if status is not None:
            check_one_of("status", status, ("IN_PROGRESS", "COMPLETED"))
        if kind is not None:
            check_one_of("kind", kind, ("tool_call", "task"))
        if awaiting_approval is not None:
            check_flag("awaiting_approval", awaiting_approval)
        if awaiting is not None:
            check_one_of("awaiting", awaiting, ("approval", "result"))
        texts = {"run": run, "owner": owner, "parent": parent}
        check_filter(texts=texts, since=since, until=until, limit=limit)
        rows = self._store._native.tickets(
            status=status,
            kind=kind,
            parked=True if awaiting == "approval" else awaiting_approval,
            awaits_result=True if awaiting == "result" else None,
            since=since,
            until=until,
            limit=limit,
            **texts,
        )
        return [Ticket.from_row(row) for row in rows]

    @overload
    def run(self, run_id: str, *, owner: str | None = None) -> Run: ...

    @overload
    def run(self, *, key: str, owner: str | None = None, agent: str = "agent") -> Run | None: ...

    def run(
        self,
        run_id: str | None = None,
        *,
        key: str | None = None,
        owner: str | None = None,
        agent: str = "agent",
    ) -> Run | None:
        """Return a run of the store, with its messages, tickets and log.

        If this process works on the run, the same `Run` object is returned. If no driver works on
        it, messages and decisions are written down for `Agent.resume`. In a database, another
        process may work on the run: the object is as the run was when it was read, and messages and
        decisions reach the driver there. A run that waits for a worker has no events yet.

        Args:
            run_id: The id of the run.
            key: The key of the run, in place of its id; see `Agent.run`.
            owner: The owner of the run with this key. With an id, the owner that the run must have:
                a run of anybody else is not found. Default: with an id, any owner.
            agent: The name of the agent of the run with this key.

        Returns:
            The run; `None` if no run has the key.

        Raises:
            UsageError: Neither an id nor a key was passed, or both.
            UnknownRun: There is no run of this id and owner.
            StoreError: The run cannot be read.
        """
        if run_id is None:
            while (found := self._run_with(key, owner, agent)) is not None:
                try:
                    return self._run_of(found)
                except StoreError:
                    # It may have been deleted at this very moment.
                    if self._run_with(key, owner, agent) == found:
                        raise
            return None
        if key is not None:
            raise UsageError("expected the id of a run, or its key: got both; pass one of them")
        check_known("owner", owner)
        run = self._run_of(run_id)
        if owner is not None and run.owner != owner:
            raise unknown_run(run_id)
        return run

    def _run_of(self, run_id: str) -> Run:
        check_run_id(run_id)
        run = run_under_way(run_id)
        if run is not None and run._is_in_store(self._store):
            return run
        with naming_unknown(self._store._native, run_id):
            core = _core.Run.load(self._store._native, run_id)
        return Run(core, run_id, core.task, store=self._store)

    def _run_with(self, key: str | None, owner: str | None, agent: str) -> str | None:
        if key is None:
            raise UsageError(
                "expected the id of a run, or key=… with its owner and the name of its agent: got "
                "neither"
            )
        check_known("key", key)
        check_known("owner", owner)
        check_text("agent", agent)
        return self._store._native.run_with(owner, agent, key)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        since: float | None = None,
        limit: int = 100,
        **options: Any,
    ) -> str:
        """Return runs as one HTML file, each folded under its row, the latest first.

        Child runs are shown within the run above them.

        Args:
            path: The file to write the page to, as UTF-8.
            since: Runs that were started at this time or later, in Unix seconds.
            limit: The largest number of runs. The page tells how many more there are.
            options: `images`, `texts`, `open` and `redact`, as for `callslip.look.to_html`.

        Raises:
            UsageError: An option has a wrong value.
            StoreError: The store cannot be read.
            OSError: The file cannot be written.
        """
        check_whole("limit", limit)
        runs = [run.run_id for run in self.runs(since=since) if run.parent_run is None]
        traces = [self.run(run_id).trace() for run_id in runs[:limit]]
        more = max(0, len(runs) - limit)
        page: str = import_views().runs_to_html(traces, path, more=more, **options)
        return page

    def watch(self, run_id: str, *, after: int | None = None, children: bool = False) -> RunWatch:
        """Watch a run of the store: first the events of its log, then those that happen.

        As `Run.watch`. If no driver works on the run, the iteration waits until one does in this
        process, after `Agent.resume` or `Agent.start(run=…)`, and yields decisions meanwhile. In a
        database, it yields the events that any process writes, without the deltas of replies. This
        call reads the database: in async code, use `await asyncio.to_thread(store.watch, run_id)`.

        Args:
            run_id: The id of the run.
            after: As for `Run.watch`. Default: from the beginning.
            children: As for `Run.watch`.

        Raises:
            UsageError: The log has no event `after`.
            UnknownRun: There is no such run.
            StoreError: The run cannot be read.
        """
        return self.run(run_id).watch(after=after, children=children)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of an SQL query, which cannot change anything.

        The views `runs`, `tickets` and `events` are made for queries.

        Args:
            sql: The query.
            parameters: The values for its placeholders.

        In a database they are in the schema `callslip`, and placeholders are `$1`, `$2` and so on.

        Returns:
            One dict for each row, by the names of the columns.

        Raises:
            UsageError: `parameters` is not a list, or one is not `None`, a number, text or bytes.
            StoreError: The query is refused, or this store is in memory.
        """
        check_text("sql", sql)
        if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
            raise UsageError(
                "expected parameters as a list of values, in the order of the placeholders: got "
                f"{parameters!r}"
            )
        names, rows = self._store._native.query(sql, list(parameters))
        return [dict(zip(names, row, strict=True)) for row in rows]
