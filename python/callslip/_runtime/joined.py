"""Waiting for the run of a key: whoever asks gets its result, and no request takes it along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from callslip._runtime.background import start_task
from callslip._runtime.drive import drive_sync
from callslip._runtime.kept_run import DrivenRun, open_or_follow
from callslip._runtime.keyed import result_for, wait_sync
from callslip._runtime.sessions import resumed_session
from callslip._runtime.start import stay_over
from callslip._threads import pool
from callslip.errors import RunCancelled, StoreError
from callslip.runs import Run, RunResult
from callslip.runs._conversation import run_lock

if TYPE_CHECKING:
    from callslip._core import Run as Core
    from callslip._runtime.questions import Askers
    from callslip._runtime.session import RunSession
    from callslip.agent import Agent

__all__ = ["begun_run", "join", "join_sync"]

AnswerT = TypeVar("AnswerT")


def begun_run(
    agent: Agent[AnswerT], begun: RunSession | Run[Any], deps: object, askers: Askers
) -> Run[AnswerT]:
    """Return the run of a key, which goes on in a task of its own unless somebody drives it.

    Args:
        agent: The agent.
        begun: The session of the run, if it is new.
        deps: For its tools, if it goes on here.
        askers: Decide on its calls and answer them then.

    Raises:
        UsageError: As for `Agent.resume`.
        StoreError: As for `Agent.resume`.
    """
    session = _taken(agent, begun, deps, askers) if isinstance(begun, Run) else begun
    if isinstance(session, Run):
        return session
    start_task(session)
    return session.run


async def join(
    agent: Agent[AnswerT], begun: RunSession | Run[Any], deps: object, askers: Askers
) -> RunResult[AnswerT]:
    """Wait for the result of the run of a key. The run continues if this is cancelled."""
    while True:
        run = begun_run(agent, begun, deps, askers)
        try:
            return result_for(agent, (await run).run)
        except RunCancelled as error:
            begun = _left(run, error)


def join_sync(
    agent: Agent[AnswerT], begun: RunSession | Run[Any], deps: object, askers: Askers
) -> RunResult[AnswerT]:
    """Wait in this thread for the result of the run of a key. Ctrl-C leaves it unfinished."""
    while True:
        session = _taken(agent, begun, deps, askers) if isinstance(begun, Run) else begun
        if not isinstance(session, Run):
            session.kept_while = lambda: True
            return drive_sync(session)
        if _is_over(session._core):
            return result_for(agent, session)
        try:
            return result_for(agent, pool.submit_own(wait_sync, session).result().get())
        except RunCancelled as error:
            begun = _left(session, error)


def _taken(agent: Agent[Any], run: Run[Any], deps: object, askers: Askers) -> RunSession | Run[Any]:
    """Return the session of a run that goes on here; or the run, if that is over or driven."""
    if run._driver is not None or not run._core.event_count or _is_over(run._core):
        return run

    def opened() -> RunSession:
        session = resumed_session(agent, run.id, deps, askers=askers)
        if _is_over(session.core):
            # Somebody has cancelled it at this very moment.
            session.beginning.first_commands = stay_over
        return session

    # Of several who wait for a run that was left, one drives it.
    with run_lock(agent._in_effect()._required_store(), run.id):
        found = open_or_follow(agent, run.id, None, deps, opened)
    return found.run if isinstance(found, DrivenRun) else found


def _is_over(core: Core) -> bool:
    """Whether the run has ended for good: not if its model client has failed."""
    ending = core.ending
    return ending is not None and ending.reason != "model_error"


def _left(run: Run[Any], error: RunCancelled) -> Run[Any]:
    """Return a run that its driver has left, as at the end of an event loop.

    Raises:
        RunCancelled: It was cancelled, or it never began.
    """
    assert run._store is not None
    try:
        present = run._store.run(run.id)
    except StoreError:
        raise error from None
    if present.finished:
        raise error
    return present
