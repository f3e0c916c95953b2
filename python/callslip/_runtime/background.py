"""Runs in tasks of their own, on the event loop that is running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip._base.log import GuardedLogger
from callslip._runtime.drive import drive_async
from callslip._runtime.early_driver import EarlyDriver, UnstartedDriver
from callslip._runtime.start import begins_with_calls
from callslip.errors import RunFailed
from callslip.runs._feed import feed_of

if TYPE_CHECKING:
    from asyncio import Task

    from callslip._runtime.session import RunSession
    from callslip.runs import RunResult

__all__ = ["keep", "start_task"]

_log = GuardedLogger("callslip")

_tasks: set[Task[Any]] = set()
"""The event loop keeps only weak references to tasks."""


def start_task(session: RunSession) -> None:
    """Drive a run to its end in a task of its own.

    A run that a store keeps is left as it is if the task is cancelled, as at the end of
    `asyncio.run`, and can be resumed.
    """
    if session.store is not None:
        session.kept_while = lambda: True
    # Whoever watches later is told of the present reply from its beginning.
    feed_of(session.run).readers.has_raised = False
    if begins_with_calls(session):
        UnstartedDriver(session)
    else:
        EarlyDriver.of(session)
    loop = _lazy.asyncio.get_running_loop()
    task = loop.create_task(drive_async(session), name=f"run {session.run.id}")
    keep(task)
    task.add_done_callback(lambda task: _on_done(task, session))


def keep(task: Task[Any]) -> None:
    """Keep a task until it is done."""
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def _on_done(task: Task[RunResult], session: RunSession) -> None:
    if task.cancelled():
        if session.run._driver is not None:
            # A task that is cancelled before its start does nothing at all.
            with session:
                if not session.is_kept:
                    session.cancel()
        return
    error = task.exception()
    # A failure is raised to those who watch the run and to those who await it.
    is_read = feed_of(session.run).readers.are_there
    if error is not None and not isinstance(error, RunFailed) and not is_read:
        _log.error("run %s was left before its end", session.run.id, exc_info=error)
