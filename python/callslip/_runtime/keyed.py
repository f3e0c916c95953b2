"""Runs that their callers know by a key: one run for each key of an owner and an agent."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip._base import _lazy
from callslip._runtime.calls import enclosing_session
from callslip._runtime.early_driver import EarlyDriver, UnstartedDriver
from callslip._runtime.known import Known, check_root
from callslip._runtime.start import begins_with_calls, prepare_sync
from callslip.errors import KeyTaken, UsageError
from callslip.parts import Content, Said, read_content
from callslip.runs import Run, RunResult
from callslip.runs._conversation import run_lock
from callslip.runs._elsewhere import driven_result

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip.store import TicketStore

__all__ = [
    "begin_on_loop",
    "begin_sync",
    "check_same_task",
    "result_for",
    "wait_sync",
    "written_run",
]

# Seconds. Whoever takes a key writes the beginning of its run at once.
_WRITTEN_WITHIN = 2.0
_MARKED = re.compile(re.escape(_core.Part.MARK) + "[0-9a-f]{32}")


def begin_on_loop(
    agent: DrivenAgent, task: Content, known: Known, opened: Callable[..., RunSession]
) -> RunSession | Run:
    """Begin a run on the event loop that is running, unless there is one with its key.

    Args:
        agent: The agent.
        task: The task.
        known: The owner and the key.
        opened: Returns the session of the new run, with `known`.

    Returns:
        The session, which the caller drives; or the run that has the key.

    Raises:
        UsageError: The agent has no store, or as `opened` raises it.
        KeyTaken: The run with this key has another task, or nothing of it is written yet.
        StoreError: The store cannot be read or written.
    """

    def begin(session: RunSession) -> None:
        if begins_with_calls(session):
            UnstartedDriver(session)
        else:
            EarlyDriver(session)

    return _begin(agent, task, known, opened, begin)


def begin_sync(
    agent: DrivenAgent, task: Content, known: Known, opened: Callable[..., RunSession]
) -> RunSession | Run:
    """Begin a run in this thread, unless there is one with its key. As `begin_on_loop`."""

    def begin(session: RunSession) -> None:
        try:
            prepare_sync(session)
        except BaseException as error:
            session.__exit__(type(error), error, None)
            raise
        EarlyDriver(session)

    return _begin(agent, task, known, opened, begin)


def _begin(
    agent: DrivenAgent,
    task: Content,
    known: Known,
    opened: Callable[..., RunSession],
    begin: Callable[[RunSession], None],
) -> RunSession | Run:
    if enclosing_session() is not None:
        check_root(known)
    worker = agent._in_effect()
    if worker.store is None:
        raise UsageError(
            "expected a store for key=: got an agent without one; pass one, as in "
            "Agent(…, store='runs.sqlite')"
        )
    said, store = read_content("the task", task), worker.store
    # Whoever comes second finds a run with a driver.
    with run_lock(store, f"{known.owner!r} {worker.name!r} {known.key!r}"):
        while True:
            present = written_run(store, known, worker.name)
            if present is not None:
                break
            try:
                session = opened(known=known)
            except KeyTaken:
                # Another process was faster.
                continue
            begin(session)
            return session
    check_same_task(present, said, known)
    return present


def written_run(store: TicketStore, known: Known, agent: str) -> Run | None:
    """Return the run with a key of an owner and an agent; `None` if there is none.

    A run that another process is just beginning is waited for: its task says whether it is the
    same one. If that process ends before it has written anything, the key is free.

    Raises:
        KeyTaken: Nothing of the run was written in 2 s.
        StoreError: The store cannot be read.
    """
    key = known.key
    assert key is not None
    end = time.monotonic() + _WRITTEN_WITHIN
    while True:
        run = store.run(key=key, owner=known.owner, agent=agent)
        if run is None or run.task or run._core.event_count:
            return run
        if time.monotonic() > end:
            raise _taken(
                run,
                f"run {run.id} has the key {known.key!r}, and the process that began it has "
                "written nothing of it yet: call this again in a few seconds",
            )
        time.sleep(0.01)


def check_same_task(run: Run, said: Said, known: Known) -> None:
    """Check that a run has the task that is asked for.

    Raises:
        KeyTaken: It has another one.
    """
    if run._core.event_count:
        is_same = run._core.has_task(said.text, said.parts)
    else:
        # Its images and files stand in the log, once it has begun.
        is_same = _MARKED.sub("", run.task) == _MARKED.sub("", said.text)
    if not is_same:
        raise _taken(
            run,
            f"run {run.id} has the key {known.key!r}, and another task: use another key for "
            "another task, or pass the task that the run has",
        )


def _taken(run: Run, message: str) -> KeyTaken:
    error = KeyTaken(message)
    error.run = run
    return error


def result_for(agent: DrivenAgent, run: Run) -> RunResult[Any]:
    """Return the result of a run that is over, which this agent need not have driven."""
    if run._agent is None:
        run._agent = agent
    return RunResult._of(run, is_own=False)


def wait_sync(run: Run) -> Run:
    """Wait in this thread for the end of a run that is driven elsewhere, and return it then.

    Raises:
        BaseException: The run has failed, or was left.
    """

    async def wait() -> Run:
        return (await driven_result(run)).run

    return _lazy.asyncio.run(wait())
