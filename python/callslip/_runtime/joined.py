"""Waiting for the run of a key: whoever asks gets its result, and no request takes it along."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from callslip._base import _lazy
from callslip._runtime.background import keep, start_task
from callslip._runtime.drive import drive_sync
from callslip._runtime.kept_run import DrivenRun, has_failed, open_or_follow
from callslip._runtime.keyed import result_for, wait_sync
from callslip._runtime.on_loop import SessionDriver
from callslip._runtime.sessions import resumed_session
from callslip._runtime.start import stay_over
from callslip._threads import pool
from callslip.errors import ModelError, RunCancelled, StoreError
from callslip.runs import Run, RunResult
from callslip.runs._conversation import run_lock
from callslip.runs._elsewhere import driven_result, never_began, set_heir

if TYPE_CHECKING:
    from asyncio import Task
    from concurrent.futures import Future

    from callslip._core import Run as Core
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.questions import Askers
    from callslip._runtime.session import RunSession

__all__ = ["begun_run", "join", "join_sync"]

AnswerT = TypeVar("AnswerT")


Begin: TypeAlias = "Callable[[], RunSession | Run[Any]]"
"""Begins the run of a key, and returns its session; or returns the run that has the key."""


def begun_run(
    agent: DrivenAgent[AnswerT], begin: Begin, deps: object, askers: Askers
) -> Run[AnswerT]:
    """Return the run of a key, which goes on in a task of its own unless somebody drives it.

    If the event loop of its driver ends before the run, it goes on in this one; so does a run that
    has failed, and whose driver has not left it yet.

    Args:
        agent: The agent.
        begin: Begins the run, unless there is one.
        deps: For its tools, if it goes on here.
        askers: Decide on its calls and answer them then.

    Raises:
        UsageError: As for `Agent.resume`.
        StoreError: As for `Agent.resume`.
    """
    run = _going_on(agent, begin(), deps, askers)
    driver = run._driver
    home = driver._session.beginning.home if isinstance(driver, SessionDriver) else None
    if home is not None and (has_failed(run._core) or not home.is_here):
        loop, heir = _lazy.asyncio.get_running_loop(), _lazy.futures.Future()
        task = loop.create_task(join(agent, begin, deps, askers, run))
        keep(task)
        task.add_done_callback(partial(_inherit, run, heir))
        set_heir(run, heir)
    return run


def _inherit(run: Run[Any], heir: Future[RunResult[Any]], task: Task[RunResult[Any]]) -> None:
    """Pass on what has come of a run, whoever has driven it to its end."""
    if task.cancelled():
        heir.set_exception(RunCancelled("the run was left before its end", run))
    elif (error := task.exception()) is not None:
        heir.set_exception(error)
    else:
        heir.set_result(task.result())


def _going_on(
    agent: DrivenAgent[AnswerT], begun: RunSession | Run[Any], deps: object, askers: Askers
) -> Run[AnswerT]:
    session = _taken(agent, begun, deps, askers) if isinstance(begun, Run) else begun
    if isinstance(session, Run):
        return session
    start_task(session)
    return session.run


async def join(
    agent: DrivenAgent[AnswerT],
    begin: Begin,
    deps: object,
    askers: Askers,
    present: Run[Any] | None = None,
) -> RunResult[AnswerT]:
    """Wait for the result of the run of a key. The run continues if this is cancelled.

    Args:
        agent: The agent.
        begin: Begins the run, unless there is one.
        deps: For its tools, if it goes on here.
        askers: Decide on its calls and answer them then.
        present: The run, if it is known.
    """
    begun = begin() if present is None else present
    while True:
        failed = _failed_at(begun)
        run = _going_on(agent, begun, deps, askers)
        if present is not None and present is not run:
            # Whoever has that object reads in it what happens.
            present._replace_core(run._core)
        try:
            return result_for(agent, (await driven_result(run)).run)
        except ModelError:
            if run.seq != failed:
                raise
            begun = run
        except RunCancelled as error:
            begun = _left(run, error, begin)


def join_sync(
    agent: DrivenAgent[AnswerT], begin: Begin, deps: object, askers: Askers
) -> RunResult[AnswerT]:
    """Wait in this thread for the result of the run of a key. Ctrl-C leaves it unfinished."""
    begun = begin()
    while True:
        failed = _failed_at(begun)
        session = _taken(agent, begun, deps, askers) if isinstance(begun, Run) else begun
        if not isinstance(session, Run):
            session.kept_while = lambda: True
            return drive_sync(session)
        if _is_over(session._core):
            return result_for(agent, session)
        try:
            return result_for(agent, pool.submit_own(wait_sync, session).result().get())
        except ModelError:
            if session.seq != failed:
                raise
            begun = session
        except RunCancelled as error:
            begun = _left(session, error, begin)


def _taken(
    agent: DrivenAgent, run: Run[Any], deps: object, askers: Askers
) -> RunSession | Run[Any]:
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


def _failed_at(begun: RunSession | Run[Any]) -> int | None:
    """Return the `seq` at which a run had failed before it was asked for; `None` if it had not.

    Its driver may not have let go of it yet. Then that failure is not what is asked for.
    """
    return begun.seq if isinstance(begun, Run) and has_failed(begun._core) else None


def _is_over(core: Core) -> bool:
    """Whether the run has ended for good: not if its model client has failed."""
    return core.finished and not has_failed(core)


def _left(run: Run[Any], error: RunCancelled, begin: Begin) -> RunSession | Run[Any]:
    """Return a run that its driver has left, as at the end of an event loop.

    One that never began begins now.

    Raises:
        RunCancelled: It was cancelled.
    """
    assert run._store is not None
    if error._was_left and never_began(run):
        return begin()
    try:
        present = run._store.run(run.id)
    except StoreError:
        raise error from None
    if present.finished and not error._was_left:
        raise error
    # It goes on here, unless somebody else was faster.
    return present
