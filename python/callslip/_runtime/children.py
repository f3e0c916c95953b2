"""Child runs: the agent and the id for a delegated task, and the outcome of the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from callslip import _core
from callslip._base.failure import describe_failure
from callslip._base.json import to_json
from callslip._runtime.script_result import script_outcome
from callslip._runtime.session import RunSession
from callslip._runtime.shared.tree_position import child_id, new_seal_key, place_below
from callslip._runtime.start import resume, resume_after_rest, start, stay_over
from callslip.errors import ModelError, RunCancelled, RunFailed
from callslip.parts import Said, said_with
from callslip.runs import Run, RunResult
from callslip.runs._conversation import run_lock
from callslip.runs._feed import feed_of
from callslip.tools import Outcome

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.beginning import FirstCommands
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.model_requests import ModelRequests
    from callslip._runtime.setup import RunSetup
    from callslip.store import TicketStore

__all__ = [
    "check_tree",
    "child_session",
    "end_outlived",
    "instructions_below",
    "levels_below",
    "levels_left",
    "limits_below",
    "refused_task",
    "said_below",
    "task_outcome",
    "task_outcome_of",
    "worker_for",
]


def levels_left(above: int | None, depth: int | None) -> int | None:
    """Return how many levels of child runs may be below a run; `None` for no limit.

    Args:
        above: The number of its parent run.
        depth: Its own limit.
    """
    left = None if above is None else max(0, above - 1)
    bounds = [bound for bound in (left, depth) if bound is not None]
    return min(bounds) if bounds else None


def child_session(session: RunSession, command: Command.StartRun) -> RunSession:
    """Return the session of the run for a task: a new run, or one that an earlier process started.

    Raises:
        UsageError: The agent does not take all calls of that run.
        StoreError: The run cannot be read, or cannot be written down.
    """
    agent, task = worker_for(session.agent, session.setup, command.tool, command.role, command.task)
    levels = levels_below(session.agent, agent, session.levels)
    setup = agent._setup_at(levels)
    run_id = child_id(session.run.id, command.ticket)
    native = None if session.store is None else session.store._native
    is_new = not (command.again and native is not None and native.has(run_id))
    if is_new:
        core = _core.Run(
            setup.native,
            run_id=run_id,
            agent=agent.name,
            seal_key=new_seal_key(),
            parent=(session.run.id, command.ticket),
            above=session.core,
            store=native,
            kept_limits=limits_below(session, agent),
        )
        if (text := instructions_below(session, agent)) is not None:
            core.instruct(text, setup.prompt_with(text))
    else:
        assert native is not None
        assert session.store is not None
        with run_lock(session.store, run_id):
            core = _core.Run.open(native, run_id, session.core)
        if not core.finished:
            core.adopt(setup.native)
    run = Run(core, run_id, task, agent=agent, store=session.store, deps=session.run._deps)
    if not is_new:
        end_outlived(run)
    session.run._add_child(run)
    first_commands = start if is_new else _again(session, core)
    child = RunSession(run, agent, setup, first_commands, levels=levels, root=session.root)
    if is_new:
        child.beginning.said = said_below(session, Said(task, []))
    if session.kept_while is not None:
        # A child run that its parent has given up ends; one whose parent is kept is kept with it.
        child.kept_while = lambda: session.is_kept and session.core.is_open(command.ticket)
    child.beginning.stand_below(session, command.ticket)
    child.askers, child.beginning.inbox = session.askers, session.beginning.inbox
    if child.beginning.inbox is not None:
        child.beginning.place = place_below(session, command.tool, command.role)
    feed = session.run._feed
    if feed is not None and feed.wants_children:
        feed_of(run).tell(feed)
    return child


def _again(above: RunSession, core: _core.Run) -> FirstCommands:
    if core.finished:
        # Its end was only not told yet. A live driver would not ask a failed run again either.
        return stay_over
    # Only the runs of workers rest.
    return resume if above.beginning.inbox is None else resume_after_rest


def end_outlived(run: Run) -> None:
    """Cancel the runs below a run that is resumed which nobody waits for any more."""
    over = {ticket.id for ticket in run.tickets if ticket._ends_children}
    if over and run._store is not None:
        run._store._end_children(run.id, over)


def said_below(above: RunSession, said: Said) -> Said:
    """Return the task of a child run, with those parts of the run above whose lines it has."""
    return said_with(said, above.run.parts.values()) if above.core.has_parts else said


def levels_below(agent: DrivenAgent, worker: DrivenAgent, levels: int | None) -> int | None:
    """Return how many levels may be below a child run of this worker. A script takes no level.

    Args:
        agent: The agent of the run.
        worker: The agent of the child run.
        levels: The number of the run.
    """
    if worker.protocol.native.runs_code:
        return levels
    return levels_left(levels, None if worker.limits is agent.limits else worker.limits.depth)


def limits_below(session: RunSession, worker: DrivenAgent) -> str | None:
    """Return the limits of a child run as JSON; `None` for those of its agent."""
    return session.core.limits if worker.limits is session.agent.limits else None


def instructions_below(session: RunSession, worker: DrivenAgent) -> str | None:
    """Return the instructions that a run passes to a child run of the same agent."""
    if worker._instructions is not session.agent._instructions:
        return None
    text = session.core.instructions
    return None if text == worker._instructions.text else text


def check_tree(
    store: TicketStore, core: _core.Run, agent: DrivenAgent, setup: RunSetup, levels: int | None
) -> None:
    """Check that all runs below a run of the store can be resumed, before any of them is.

    Raises:
        UsageError: An agent does not take all calls of one of them.
        StoreError: One cannot be read.
    """
    for task in core.open_tasks():
        run_id = child_id(core.run_id, task.ticket)
        if not store._native.has(run_id):
            continue
        child = _core.Run.load(store._native, run_id)
        if child.finished:
            # It stays as it is.
            continue
        worker, _ = worker_for(agent, setup, task.tool, task.role, "")
        left = levels_below(agent, worker, levels)
        setup_below = worker._setup_at(left)
        child.adopt(setup_below.native)
        check_tree(store, child, worker, setup_below, left)


def worker_for(
    agent: DrivenAgent, setup: RunSetup, tool: str, role: str | None, task: str
) -> tuple[DrivenAgent, str]:
    """Return the agent for a task, and the task as that agent reads it."""
    own = setup.toolbox.find(tool)
    if own is not None:
        return own.agent._in_effect(), task  # type: ignore[attr-defined]
    if role is None:
        return agent._for_tasks, task
    worker = agent._for_role(role)
    if worker is agent:
        worker = agent._for_tasks
    if getattr(agent.roles.get(role), "protocol", None) is not None:
        # A role with its own protocol is described by the prompt of that protocol.
        return worker, task
    return worker, f"Your role: {role}\n\n{task}"


def refused_task(session: RunSession, command: Command.StartRun) -> Outcome | None:
    """Return the outcome of a task that no run is started for; `None` for any other."""
    tool = session.setup.toolbox.find(command.tool)
    if session.levels == 0 and getattr(tool, "takes_level", True):
        return Outcome.Error(
            "The agent was not started: the limit of levels is reached (Limits(depth=…)). Do the "
            "task without it."
        )
    if not command.task.strip():
        return Outcome.Error("The agent was not started: its task is blank. Say what it is to do.")
    return None


def task_outcome(session: RunSession) -> Outcome:
    """Return the outcome of a task, from its run, which is over."""
    return _outcome_from(session.run, session.result, session.requests)


def task_outcome_of(run: Run) -> Outcome:
    """Return the outcome of a task, from its run, which another worker has driven to its end."""
    return _outcome_from(run, lambda: RunResult._of(run))


def _outcome_from(
    run: Run, result: Callable[[], RunResult], requests: ModelRequests | None = None
) -> Outcome:
    if _core.script_printed(run._core) is not None:
        if requests is not None:
            requests.error = None
        return script_outcome(run)
    try:
        text = to_json(result()._json)
        if not run._core.has_parts:
            return Outcome.Ok(text)
        # An image in the answer is one of the run above too.
        said = said_with(Said(text, []), run.parts.values())
        return Outcome.Ok(said.text, said.parts)
    except RunFailed as error:
        if requests is not None and isinstance(error, ModelError):
            requests.error = None
        # The message of a model client may contain secrets that another model must not see.
        text = f"The agent failed: {describe_failure(error)}."
        return Outcome.Cancelled(text) if isinstance(error, RunCancelled) else Outcome.Error(text)
