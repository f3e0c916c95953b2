"""Runs in which nothing goes on until somebody outside decides on a call or answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from callslip._base.json import to_json
from callslip.runs._ticket import Ticket

if TYPE_CHECKING:
    from callslip.runs._needs import StoreOfRun
    from callslip.runs._run import Run

__all__ = ["Wait", "Waiting", "runs_below", "wait_of"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run has begun to wait: nothing goes on in it or below it until somebody acts.

    An item of `Run.watch`, which is not logged.

    Attributes:
        run_id: The id of the run that is watched.
        tickets: The tickets that await approval or a result from outside, of this run and of its
            child runs; see `Ticket.awaiting`.
    """

    run_id: str
    tickets: list[Ticket]

    def to_json(self) -> str:
        """Return it as a JSON object: `kind`, which is `"waiting"`, and the fields."""
        tickets = [ticket._json_fields() for ticket in self.tickets]
        return to_json({"kind": "waiting", "run_id": self.run_id, "tickets": tickets})


class Wait(NamedTuple):
    """What a run waits for at one moment.

    Attributes:
        tickets: The tickets that await a decision or a result.
        runs: The run, and the runs below it that wait, with the number of events of each.
    """

    tickets: list[Ticket]
    runs: list[tuple[Run, int]]

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same wait, however often it is looked at."""
        tickets = frozenset((ticket.run_id, ticket.id, ticket.awaiting) for ticket in self.tickets)
        # In another turn, the model was asked since.
        return tickets, *(run._core.turn for run, _ in self.runs)


def wait_of(run: Run, below: Callable[[Run], Iterable[Run]]) -> Wait | None:
    """Return what a run waits for; `None` if something goes on in it or below it.

    Args:
        run: The run.
        below: Returns the child runs of a run.
    """
    while True:
        wait = Wait([], [])
        if not _add(wait, run, below) or not wait.tickets:
            return None
        # The runs were looked at one after the other.
        if all(one._core.event_count == count for one, count in wait.runs):
            return wait


def _add(wait: Wait, run: Run, below: Callable[[Run], Iterable[Run]]) -> bool:
    """Add what a run waits for. Returns whether nothing goes on in it."""
    wait.runs.append((run, run._core.event_count))
    waits = run._core.waits_for
    if waits is None:
        return False
    asked, under_way = waits
    if asked:
        wait.tickets.extend(run._reads.tickets.some(asked))
    if not under_way:
        return True
    # A call whose function awaits an agent waits with the run of that agent.
    children = [child for child in below(run) if not child.finished]
    for ticket in under_way:
        ours = [child for child in children if child._core.parent == (run.id, ticket)]
        if not ours or not all(_add(wait, child, below) for child in ours):
            return False
    return True


def runs_below(run: Run, store: StoreOfRun | None = None) -> list[Run]:
    """Return the child runs of a run as they are now, wherever they are driven.

    Args:
        run: The run.
        store: The store that is read. Default: that of the run.
    """
    store, driver, own = store or run._store, run._driver, run._children
    if store is None or (driver is not None and not driver.may_rest):
        return list(own)
    here = {child.id: child for child in own if child._driver is not None}
    rows = [row for row in store.runs(parent=run.id) if row.protocol]
    kept = {row.run_id: here.get(row.run_id) or store.run(row.run_id) for row in rows}
    return list((kept | here).values())
