"""Calls that have begun and await their results from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip.events._event import ticket_id
from callslip.runs._conversation import run_lock
from callslip.tools import Outcome

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession
    from callslip.tools._pending import PendingCall

__all__ = ["await_result"]


def await_result(session: RunSession, ticket: int, pending: PendingCall) -> list[Command]:
    """Record that a call awaits its result from outside, or that its key is taken.

    It blocks while the store is asked for the key.

    Args:
        session: The session of the run.
        ticket: The number of the ticket of the call.
        pending: What its function has returned.

    Raises:
        StoreError: The store cannot be read, or the call cannot be written down.
    """
    core, key, store = session.core, pending.key, session.store
    if key is None:
        return core.pend(ticket, None, pending.external, session.now())
    if store is None:
        fault = f"there is no store to answer the key {key!r} by"
        return _refuse(session, ticket, pending, fault)
    known = core.owner, core.agent, key
    # Whoever comes second finds the ticket with the key.
    with run_lock(store, f"pending {known!r}"):
        other = store._native.ticket_with(*known)
        if other is not None and other != (session.run.id, ticket):
            fault = (
                f"the key {key!r} is that of another call, {ticket_id(other[1])} of run {other[0]}"
            )
            return _refuse(session, ticket, pending, fault)
        commands = core.pend(ticket, key, pending.external, session.now())
        store._commits.written(core)
    return commands


def _refuse(session: RunSession, ticket: int, pending: PendingCall, fault: str) -> list[Command]:
    outcome = Outcome.Error(f"Error calling tool '{pending.tool}': {fault}.")
    return session.core.complete_call(ticket, outcome, session.now())
