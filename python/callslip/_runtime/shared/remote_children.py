"""Child runs that any worker may drive: submits them, waits for them, opens them in the worker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from callslip import _core
from callslip._base.json import to_json
from callslip._runtime.children import (
    instructions_below,
    levels_below,
    limits_below,
    said_below,
    task_outcome_of,
    worker_for,
)
from callslip._runtime.session import RunSession
from callslip._runtime.shared.remote_calls import Below
from callslip._runtime.shared.tree_position import Place, child_id, new_seal_key, place_below
from callslip._runtime.start import start
from callslip._threads import pool
from callslip.parts import Said
from callslip.runs import Run
from callslip.runs._elsewhere import from_text, to_text

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.shared.remote_calls import Elsewhere
    from callslip.store import TicketStore
    from callslip.tools import Outcome

__all__ = ["agent_at", "new_child", "run_apart"]


async def run_apart(
    session: RunSession, command: Command.StartRun, elsewhere: Elsewhere
) -> tuple[Outcome, Run | None] | None:
    """Let any worker drive the run of a task, and wait for its end.

    Returns:
        The outcome of the task, and its run; `None` if the run is to be driven here.

    Raises:
        StoreError: The run cannot be sent, or another worker has the run above it.
    """
    run_id = child_id(session.run.id, command.ticket)
    in_thread = pool.in_own_thread
    # A worker that already has it keeps it, even if this process keeps new child runs to itself.
    is_there = command.again and await in_thread(elsewhere.has, run_id)
    if not (is_there or elsewhere.spreads):
        return None
    if not await in_thread(_submit, session, command, elsewhere):
        return None
    elsewhere.has_children = True
    await elsewhere.ended(session, command.ticket)
    return await in_thread(_outcome, session, command, run_id)


def _submit(session: RunSession, command: Command.StartRun, elsewhere: Elsewhere) -> bool:
    agent, task = worker_for(session.agent, session.setup, command.tool, command.role, command.task)
    given = {
        "said": to_text(said_below(session, Said(task, []))),
        "limits": limits_below(session, agent),
        "instructions": instructions_below(session, agent),
        "owner": session.core.owner,
        **({"untrusted": True} if session.core.begins_untrusted(command.ticket) else {}),
    }
    place = place_below(session, command.tool, command.role)
    below = Below(
        agent=agent.name,
        known_as=place.agent,
        given=to_json(given),
        task=task,
        above=place.to_text(),
    )
    return elsewhere.submit(session, command.ticket, below)


def _outcome(
    session: RunSession, command: Command.StartRun, run_id: str
) -> tuple[Outcome, Run | None]:
    assert session.store is not None
    agent, task = worker_for(session.agent, session.setup, command.tool, command.role, command.task)
    core = _core.Run.load(session.store._native, run_id)
    run = Run(core, run_id, task, agent=agent, store=session.store, deps=session.run._deps)
    session.run._add_child(run)
    return task_outcome_of(run), run


def agent_at(agent: DrivenAgent, place: Place) -> tuple[DrivenAgent, int | None]:
    """Return the agent of a child run, and the levels that may be below it.

    Args:
        agent: The agent at the top.
        place: The place of the child run.

    Raises:
        UsageError: The agent has no such role.
    """
    levels = place.levels
    for tool, role in place.path:
        worker, _ = worker_for(agent, agent._setup_at(levels), tool, role, "")
        levels = levels_below(agent, worker, levels)
        agent = worker
    return agent, levels


def new_child(
    agent: DrivenAgent, run_id: str, given: str, *, at: tuple[Place, int | None], store: TicketStore
) -> RunSession:
    """Return the session of a submitted child run, which begins.

    Args:
        agent: Its agent.
        run_id: Its id.
        given: Its start arguments, as JSON text.
        at: Its place, and the levels that may be below it.
        store: The store.

    Raises:
        StoreError: It cannot be written down.
    """
    begins = json.loads(given)
    said = from_text(begins["said"])
    place, levels = at
    setup = agent._setup_at(levels)
    above, _, ticket = run_id.rpartition(".T")
    core = _core.Run(
        setup.native,
        run_id=run_id,
        agent=agent.name,
        owner=begins.get("owner"),
        seal_key=new_seal_key(),
        parent=(above, int(ticket)),
        store=store._native,
        kept_limits=begins["limits"],
        untrusted=begins.get("untrusted", False),
    )
    core.join_apart(len(place.above), [limits for _, limits in place.above])
    if (text := begins["instructions"]) is not None:
        core.instruct(text, setup.prompt_with(text))
    run = Run(core, run_id, said.text, agent=agent, store=store)
    session = RunSession(run, agent, setup, start, levels=levels, root=place.above[-1][0])
    session.beginning.said, session.beginning.place = said, place
    return session
