"""Runs below a run: which agent works on a task, under which id, and what its end tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip import _core
from callslip._conversation import turn
from callslip._going import begin, go_on
from callslip._json import to_json
from callslip._session import Listener, Session
from callslip.errors import ModelError, RunFailed
from callslip.events import Event
from callslip.runs import Run, RunResult

if TYPE_CHECKING:
    from callslip._core import Command, Delta
    from callslip.agent import Agent
    from callslip.tools import Outcome

__all__ = ["child_id", "child_of", "levels_below", "outcome_of", "role_agent", "too_deep"]


def child_id(run_id: str, ticket: int) -> str:
    """Return the id of the run of a task: the same whenever it is asked for."""
    return f"{run_id}.T{ticket}"


def levels_below(above: Session, depth: int | None) -> int | None:
    """Return how many levels of runs may be below a run; `None` is no limit."""
    left = None if above.levels is None else max(0, above.levels - 1)
    bounds = [bound for bound in (left, depth) if bound is not None]
    return min(bounds) if bounds else None


def role_agent(agent: Agent, role: str) -> Agent:
    """Return the agent that is taken for a role: the one prepared for it, or the one that asks."""
    known = agent._role_agents.get(role)  # noqa: SLF001  # the runs of one agent
    if known is not None:
        return known
    prepared = agent.roles.get(role)
    if prepared is None:
        return agent
    from callslip.agent import Agent

    if not isinstance(prepared, Agent):
        prepared = agent.like(role, prepared)
    agent._role_agents[role] = prepared  # noqa: SLF001
    return prepared


def child_of(session: Session, command: Command.StartRun) -> Session:
    """Return the run of a task: a new one, or the one that a process which ended has begun.

    Raises:
        UsageError: It was begun by an agent with another protocol or other tools.
        StoreError: It can't be read, or can't be written down.
    """
    agent, task = _worker(session, command)
    levels = levels_below(session, agent.limits.depth)
    offer = agent._offer_at(levels)  # noqa: SLF001  # the runs of one agent
    run_id = child_id(session.run.id, command.ticket)
    native = None if session.store is None else session.store.native
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
    session.run.adopt(run)
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
        child.watches_children = True
    return child


def _without_deltas(listener: Listener | None) -> Listener | None:
    if listener is None:
        return None

    def hear(item: Event | Delta) -> None:
        if isinstance(item, Event):
            listener(item)

    return hear


def _worker(session: Session, command: Command.StartRun) -> tuple[Agent, str]:
    """Who works on a task, and what it is told."""
    tool = session.offer.toolbox.find(command.tool)
    if tool is not None:
        return tool.agent, command.task  # type: ignore[attr-defined]
    if command.role is None:
        return session.agent, command.task
    agent = role_agent(session.agent, command.role)
    prepared = session.agent.roles.get(command.role)
    if getattr(prepared, "protocol", None) is not None:
        # Its prompt says who it is.
        return agent, command.task
    return agent, f"Your role: {command.role}\n\n{command.task}"


def too_deep() -> Outcome:
    """Return the outcome of a task that would be one level too deep."""
    return "error", (
        "The agent was not started: the limit of levels is reached (Limits(depth=…)). Do the task "
        "without it."
    )


def outcome_of(session: Session) -> Outcome:
    """Return what whoever gave a task is told of its run, which is over."""
    try:
        return "ok", to_json(RunResult.of(session).value)
    except RunFailed as error:
        text = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, ModelError):
            session.error = None
        return "error", f"The agent failed: {type(error).__name__}: {text}."
