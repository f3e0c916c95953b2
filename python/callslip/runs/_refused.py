"""Why a run or a ticket is refused, as an exception that programs can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from callslip.errors import Outdated, StoreError, UnknownRun, UnknownTicket, UsageError
from callslip.events._event import ticket_id

if TYPE_CHECKING:
    from callslip import _core
    from callslip.runs._run import Run

__all__ = ["naming_ticket", "naming_unknown", "unknown_run"]


def unknown_run(run_id: str) -> UnknownRun:
    """Return the error for the id of a run that a store does not have.

    It says the same for the run of another owner, so callers cannot find such runs.
    """
    return UnknownRun(
        f"there is no run {run_id} in this store: it was never written here, or it was deleted"
    )


@contextmanager
def naming_unknown(store: _core.Store, run_id: str) -> Iterator[None]:
    """Raise `UnknownRun` for a run that a store does not have.

    Raises:
        StoreError: The code within raises it, with another reason.
    """
    try:
        yield
    except StoreError as error:
        if type(error) is StoreError and not store.has(run_id):
            raise unknown_run(run_id) from error
        raise


@contextmanager
def naming_ticket(run: Run, number: int, *, awaits: str) -> Iterator[None]:
    """Raise `UnknownTicket` or `Outdated` if a ticket cannot be decided on or answered.

    Args:
        run: The run of the ticket.
        number: The number of the ticket.
        awaits: The value that `Ticket.awaiting` has to have.

    Raises:
        UsageError: The code within raises it, with another reason.
    """
    try:
        yield
    except UsageError as error:
        if type(error) is not UsageError or error.problems:
            raise
        # The core of the driver knows the latest state.
        core = (run._driven or run)._core
        if number > core.ticket_count or number < 1:
            raise UnknownTicket(str(error)) from error
        tickets = (run._driven or run).tickets
        found = next(one for one in tickets if one.id == ticket_id(number))
        if found.awaiting != awaits:
            raise Outdated(str(error)) from error
        raise
