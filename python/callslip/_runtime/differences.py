"""What keeps an agent from continuing runs that were started with other tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip._runtime.children import levels_below, worker_for
from callslip._runtime.shared.tree_position import child_id
from callslip.errors import UsageError
from callslip.runs import Run

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.setup import RunSetup
    from callslip.runs._needs import StoreOfRun
    from callslip.runs._stored import StoredRun
    from callslip.store import TicketStore

__all__ = ["check_run", "check_store", "open_runs", "refusal"]


def check_run(agent: DrivenAgent, run: Run[Any]) -> list[str]:
    """Return what keeps an agent from continuing a run and those below it, in words."""
    worker, core = agent._in_effect(), run._core
    # A run that waits for its first worker has no tools yet.
    if core.event_count == 0:
        return []
    levels = core.levels
    found = core.differences(worker._setup_at(levels).native)
    # As when it is resumed: a child run has as many levels left as if it were at the top.
    left = None if levels is None else max(0, levels - core.depth)
    return found + list(_differences_below(run._store, core, worker, worker._setup_at(left), left))


def check_store(agent: DrivenAgent, store: TicketStore) -> list[str]:
    """Return the open runs of an agent's name that it cannot continue, each with the reasons."""
    runs = open_runs(store.runs(agent=agent._in_effect().name, status="running"))
    return [found for run_id in runs if (found := refusal(agent, store.run(run_id)))]


def refusal(agent: DrivenAgent, run: Run[Any]) -> str | None:
    """Return why an agent cannot continue a run, with the id of the run; `None` if it can."""
    found = check_run(agent, run)
    return f"run {run.id} can't go on: {'; '.join(found)}" if found else None


def open_runs(runs: list[StoredRun]) -> list[str]:
    """Return the ids of those runs that are below none of the others, the oldest first."""
    ids = {run.run_id for run in runs}
    return [run.run_id for run in reversed(runs) if run.parent_run not in ids]


def _differences_below(
    store: StoreOfRun | None,
    core: _core.Run,
    agent: DrivenAgent,
    setup: RunSetup,
    levels: int | None,
) -> Iterator[str]:
    if store is None:
        return
    for task in core.open_tasks():
        run_id = child_id(core.run_id, task.ticket)
        if not store._native.has(run_id):
            continue
        child = _core.Run.load(store._native, run_id)
        if child.event_count == 0 or child.finished:
            # One that is over stays as it is, whatever the agent's tools are.
            continue
        try:
            worker, _ = worker_for(agent, setup, task.tool, task.role, "")
        except UsageError as error:
            yield f"its child run {run_id}: {error}"
            continue
        left = levels_below(agent, worker, levels)
        below = worker._setup_at(left)
        found = child.differences(below.native)
        found += _differences_below(store, child, worker, below, left)
        yield from (f"its child run {run_id}: {one}" for one in found)
