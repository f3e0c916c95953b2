"""Resuming all unfinished runs of an agent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from callslip._base import _lazy
from callslip._base.options import check_whole
from callslip._runtime.drive import drive_async, drive_sync
from callslip._runtime.opening import open_in_thread, open_reachable
from callslip._runtime.sessions import unfinished_session
from callslip._runtime.unfinished_runs import unfinished_runs
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import StoreError
from callslip.runs._conversation import is_driven

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip.runs import RunResult

__all__ = ["resume_all", "resume_all_sync"]


async def resume_all(
    agent: DrivenAgent, deps: object, at_once: int
) -> dict[str, RunResult | Exception]:
    """Resume the unfinished runs of an agent, so many at once. As `Agent.resume_all`."""
    check_whole("at_once", at_once, 1)
    check_loop()
    gate = _lazy.asyncio.Semaphore(at_once)

    async def one(run_id: str) -> RunResult | Exception | None:
        async with gate:
            try:
                session = await open_in_thread(partial(_opened, agent, run_id, deps))
                return None if session is None else await drive_async(session)
            except Exception as error:  # noqa: BLE001  # it is returned with the others
                return None if _is_driven(agent, run_id, error) else error

    run_ids = await pool.in_own_thread(unfinished_runs, agent)
    async with _lazy.asyncio.TaskGroup() as group:
        tasks = {run_id: group.create_task(one(run_id)) for run_id in run_ids}
    results = {run_id: task.result() for run_id, task in tasks.items()}
    return {run_id: result for run_id, result in results.items() if result is not None}


def resume_all_sync(agent: DrivenAgent, deps: object) -> dict[str, RunResult | Exception]:
    """Resume the unfinished runs of an agent, one after the other. As `resume_all`."""
    results: dict[str, RunResult | Exception] = {}
    for run_id in unfinished_runs(agent):
        try:
            session = _opened(agent, run_id, deps)
            if session is not None:
                results[run_id] = drive_sync(session)
        except Exception as error:  # noqa: BLE001  # it is returned with the others
            if not _is_driven(agent, run_id, error):
                results[run_id] = error
    return results


def _opened(agent: DrivenAgent, run_id: str, deps: object) -> RunSession | None:
    """Open a run that was unfinished when it was listed; `None` if it is over by now."""
    store = agent._in_effect()._required_store()
    return open_reachable(store, run_id, partial(unfinished_session, agent, run_id, deps))


def _is_driven(agent: DrivenAgent, run_id: str, error: Exception) -> bool:
    """Whether the error is that another driver works on the run."""
    if not isinstance(error, StoreError):
        return False
    return is_driven(agent._in_effect()._required_store(), run_id)
