"""Runs below a run: which agent works on a task, under which id, and what its end tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip import _core
from callslip._failure import in_one_line
from callslip._json import to_json
from callslip._runtime.session import Listener, Session, begin, go_on
from callslip.errors import ModelError, RunFailed
from callslip.events import Event
from callslip.runs import Run
from callslip.runs._conversation import turn

if TYPE_CHECKING:
    from callslip._core import Command, Delta
    from callslip._runtime.setup import Offer
    from callslip.agent import Agent
    from callslip.store import TicketStore
    from callslip.tools import Outcome

__all__ = [
    "check_tree",
    "child_id",
    "child_of",
    "levels_left",
    "outcome_of",
    "too_deep",
]


def child_id(run_id: str, ticket: int) -> str:
    """Return the id of the run of a task: the same whenever it is asked for."""
    return f"{run_id}.T{ticket}"


def levels_left(above: int | None, depth: int | None) -> int | None:
    """Return how many levels of runs may be below a run; `None` is no limit.

    Args:
        above: The same of the run above it.
        depth: The run's own limit.
    """
    left = None if above is None else max(0, above - 1)
    bounds = [bound for bound in (left, depth) if bound is not None]
    return min(bounds) if bounds else None


def child_of(session: Session, command: Command.StartRun) -> Session:
    """Return the run of a task: a new one, or the one that a process which ended has begun.

    Raises:
        UsageError: It was begun by an agent with another protocol or other tools.
        StoreError: It can't be read, or can't be written down.
    """
    agent, task = _worker(session.agent, session.offer, command.tool, command.role, command.task)
    levels = levels_left(session.levels, agent.limits.depth)
    offer = agent._offer_at(levels)
    run_id = child_id(session.run.id, command.ticket)
    native = None if session.store is None else session.store._native
    begins = not (command.again and native is not None and native.has(run_id))
    if begins:
        core = _core.Run(
            offer.setup,
            run_id=run_id,
            agent=agent.name,
            parent=(session.run.id, command.ticket),
            above=session.core,
            store=native,
        )
    else:
        assert native is not None
        assert session.store is not None
        with turn(session.store, run_id):
            core = _core.Run.resume(native, run_id, offer.setup, session.core)
    run = Run(core, run_id, task, agent=agent, store=session.store)
    session.run._adopt(run)
    child = Session(
        run,
        agent,
        offer,
        begin if begins else go_on,
        store=session.store,
        levels=levels,
        root=session.root,
    )
    if session.watches_children:
        child.listener, child.room = _without_deltas(session.listener), session.room
        child.notice = session.notice
        child.watches_children = True
    return child


def _without_deltas(listener: Listener | None) -> Listener | None:
    if listener is None:
        return None

    def hear(item: Event | Delta) -> None:
        if isinstance(item, Event):
            listener(item)

    return hear


def check_tree(
    store: TicketStore, core: _core.Run, agent: Agent, offer: Offer, levels: int | None
) -> None:
    """Check that the runs below a kept run can be gone on with, before any of it is.

    Raises:
        UsageError: One was begun by an agent with another protocol or other tools.
        StoreError: One can't be read.
    """
    for ticket, tool, role in core.open_tasks():
        run_id = child_id(core.run_id, ticket)
        if not store._native.has(run_id):
            continue
        child = _core.Run.load(store._native, run_id)
        worker, _ = _worker(agent, offer, tool, role, "")
        below = levels_left(levels, worker.limits.depth)
        offered = worker._offer_at(below)
        child.check(offered.setup)
        check_tree(store, child, worker, offered, below)


def _worker(
    agent: Agent, offer: Offer, tool: str, role: str | None, task: str
) -> tuple[Agent, str]:
    """Who works on a task, and what it is told."""
    own = offer.toolbox.find(tool)
    if own is not None:
        return own.agent, task  # type: ignore[attr-defined]
    if role is None:
        return agent, task
    worker = agent._for_role(role)
    if getattr(agent.roles.get(role), "protocol", None) is not None:
        # Its prompt says who it is.
        return worker, task
    return worker, f"Your role: {role}\n\n{task}"


def too_deep() -> Outcome:
    """Return the outcome of a task that would be one level too deep."""
    return "error", (
        "The agent was not started: the limit of levels is reached (Limits(depth=…)). Do the task "
        "without it."
    )


def outcome_of(session: Session) -> Outcome:
    """Return what whoever gave a task is told of its run, which is over."""
    try:
        return "ok", to_json(session.result().value)
    except RunFailed as error:
        if isinstance(error, ModelError):
            session.error = None
        # A model client's error may say what is no business of another model.
        return "error", f"The agent failed: {in_one_line(error)}."
