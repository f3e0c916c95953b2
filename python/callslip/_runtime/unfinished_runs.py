"""The unfinished runs of an agent that can be resumed. Those that have outlived their run end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip.errors import UsageError
from callslip.runs._conversation import is_driven

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip.runs import Ticket
    from callslip.runs._stored import StoredRun
    from callslip.store import TicketStore

__all__ = ["unfinished_runs"]


def unfinished_runs(agent: DrivenAgent) -> list[str]:
    """Return the runs of the agent's name that can be resumed, oldest first.

    A process may have ended between the end of a run and that of its child runs. Those are ended
    now, whatever the name of their agent: nobody else would do it.

    Raises:
        UsageError: The agent has no store, or other processes use it too.
        StoreError: The store cannot be read.
    """
    worker = agent._in_effect()
    store = worker._required_store()
    if store._shared is not None:
        raise UsageError(
            "resume_all is for the store of one process, and workers resume the runs of this one: "
            "use callslip.fleet.Fleet(store, [agent]).work()"
        )
    tickets: dict[str, dict[str, Ticket]] = {}
    unfinished = []
    for run in reversed(store.runs(status="running")):
        if is_driven(store, run.run_id):
            continue
        ticket = _parent_ticket(store, run, tickets)
        # One of a call in progress is ended or resumed by the run that makes the call.
        is_open = ticket is not None and ticket.status == "IN_PROGRESS"
        if ticket is not None and not is_open and ticket._ends_children:
            store._end_children(ticket.run_id, {ticket.id})
        elif run.agent == worker.name and not is_open:
            unfinished.append(run.run_id)
    return unfinished


def _parent_ticket(
    store: TicketStore, run: StoredRun, known: dict[str, dict[str, Ticket]]
) -> Ticket | None:
    """Return the ticket that has started a run; `None` if there is none in the store."""
    if (parent := run.parent_run) is None:
        return None
    if parent not in known:
        known[parent] = {ticket.id: ticket for ticket in store.tickets(run=parent)}
    return known[parent].get(run.parent_ticket or "")
