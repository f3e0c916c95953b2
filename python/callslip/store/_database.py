"""A store in a database, read as the file of a store is."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, Self

from callslip.errors import UsageError
from callslip.runs import Run
from callslip.runs._stored import StoredRun
from callslip.store._store import TicketStore

__all__ = ["StoreDatabase", "waiting_in"]


def waiting_in(
    store: TicketStore, what: Literal["approval", "result"] = "approval"
) -> dict[str, list[str]]:
    """Return the ids of the tickets that await approval or a result, by the id of their run."""
    waiting: dict[str, list[str]] = {}
    for ticket in store.tickets(awaiting=what)[::-1]:
        waiting.setdefault(ticket.run_id, []).append(ticket.id)
    return waiting


class StoreDatabase:
    """The runs of a store in a database, with the methods of `StoreFile`.

    Args:
        url: The URL of the database.

    Raises:
        StoreError: The database cannot be reached, or has no tables of this version.
    """

    def __init__(self, url: str) -> None:
        self._store = TicketStore(url)
        self.path = self._store.address
        self._followed: Run[Any] | None = None

    def runs(self, *, agent: str | None = None) -> Iterator[StoredRun]:
        """Yield the runs, the latest first. As `StoreFile.runs`."""
        yield from self._store.runs(agent=agent)

    def run_ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with a text, or the id that is equal to it."""
        query = "SELECT run_id FROM callslip.runs WHERE starts_with(run_id, $1)"
        found = [row["run_id"] for row in self._store.query(query, [prefix])]
        return [prefix] if prefix in found else found

    def waiting(self, what: Literal["approval", "result"] = "approval") -> dict[str, list[str]]:
        """Return the ids of the tickets that await approval or a result, by the id of their run."""
        return waiting_in(self._store, what)

    def events(self, run_id: str, *, after: int = -1) -> list[str]:
        """Return the events of a run as lines of its export. As `StoreFile.events`."""
        if self._followed is None or self._followed.id != run_id:
            self._followed = self._store.run(run_id)
        core = self._followed._core
        core.catch_up(self._store._native)
        return core.records(after + 1)

    def export(self, run_id: str) -> list[str]:
        """Return the lines that `Run.export` returns.

        Raises:
            UsageError: The run has not begun.
            StoreError: There is no such run.
        """
        lines = self._store.run(run_id)._core.export_lines()
        if not lines:
            raise UsageError(
                f"run {run_id} waits for a worker, and has no events yet: call callslip status to "
                "see its queue"
            )
        return lines

    def run(self, run_id: str) -> Run[Any]:
        """Return a run with the runs below it, as they are now, in a store in memory.

        Raises:
            UsageError: The run has not begun.
            StoreError: There is no such run.
        """
        store = TicketStore()
        todo = [run_id]
        for one in todo:
            store.import_run(self.export(one), trust=True)
            todo += [child.run_id for child in self._store.runs(parent=one) if child.protocol]
        return store.run(run_id)

    def close(self) -> None:
        """Close the connections to the database."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
