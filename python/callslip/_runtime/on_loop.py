"""The work of both drivers on an event loop: async tools, child runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from callslip._base import _lazy
from callslip._runtime.children import child_session, refused_task, task_outcome
from callslip._runtime.home import Home
from callslip._runtime.shared.remote_children import run_apart
from callslip._runtime.shared.tree_position import runs_above
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip._threads.shield import shielded
from callslip.errors import StoreError
from callslip.tools import Outcome, Tool

if TYPE_CHECKING:
    from asyncio import Future

    from callslip._core import Command
    from callslip._runtime.calls import Call
    from callslip._runtime.reconcile import Reconciling
    from callslip._runtime.session import RunSession
    from callslip._runtime.shared.remote_calls import CallElsewhere, CallInDoubt
    from callslip.runs import Run, RunResult
    from callslip.tools import Context

__all__ = [
    "PendingResult",
    "SessionDriver",
    "call_held",
    "call_if",
    "call_to_end",
    "call_tool",
    "leave_if_ended",
    "read_spent",
    "run_task",
]

_LOOK = 0.25
"""Seconds between two looks whether the event loop of a run has ended."""

Called: TypeAlias = "Tool[..., Any] | Reconciling | CallElsewhere | CallInDoubt"
"""What is called for a tool."""


async def run_task(session: RunSession, command: Command.StartRun) -> tuple[Outcome, Run | None]:
    """Drive the run of a task to its end.

    Returns:
        The outcome of the task, and the run; `None` if no run was started.
    """
    from callslip._runtime.driver import drive

    if (refused := refused_task(session, command)) is not None:
        return refused, None
    if (inbox := session.beginning.inbox) is not None:
        ended = await run_apart(session, command, inbox.elsewhere)
        if ended is not None:
            return ended
    child = child_session(session, command)
    tool = session.setup.toolbox.find(command.tool)
    with child:
        if tool is None or tool.gate is None:
            await drive(child)
        else:
            async with tool.gate.held(session.root):
                await drive(child)
        return task_outcome(child), child.run


async def read_spent(session: RunSession) -> None:
    """Read what the tree of a run has spent, if other workers drive parts of it.

    While the database is away, what was read before counts.
    """
    inbox, store = session.beginning.inbox, session.store
    if inbox is not None and store is not None and inbox.elsewhere.has_children:
        runs = [session.run.id, *runs_above(session)]
        with suppress(StoreError):
            await pool.in_own_thread(session.core.refresh_spent, store._native, runs)


async def call_tool(session: RunSession, command: Command.CallTool, call: Call) -> Outcome:
    """Call a tool and wait for the outcome. Sync tools run in a thread of the pool."""
    tool, context = session.resolve_tool(command, call)
    if type(tool) is Tool and tool.gate is None and (function := tool._direct) is not None:
        # The most frequent tools take the way that costs least.
        if not call.may_begin():
            return _not_begun()
        try:
            result = await function(**command.arguments)
        except Exception as error:  # noqa: BLE001  # the model reads it
            return tool._outcome_of_error(error)
        return tool._outcome_of_result(result)
    return await call_held(tool, command.arguments, context, session.root, call.may_begin)


async def call_held(
    tool: Called,
    arguments: Mapping[str, Any],
    context: Context | None,
    root: str,
    may_begin: Callable[[], bool],
) -> Outcome:
    """Call a tool once it has a slot for the tree of this root, and wait for the outcome."""
    if tool.gate is None:
        return await _call(tool, arguments, context, may_begin)
    async with tool.gate.held(root):
        return await _call(tool, arguments, context, may_begin)


async def _call(
    tool: Called,
    arguments: Mapping[str, Any],
    context: Context | None,
    may_begin: Callable[[], bool],
) -> Outcome:
    if tool.is_async or tool.awaits_on_loop:
        return await tool.acall(arguments, context) if may_begin() else _not_begun()
    if tool.gate is None:
        outcome = await pool.in_thread(call_if, may_begin, tool.call, arguments, context)
    else:
        inside = pool.submit_inside(tool.gate, call_if, may_begin, tool.call, arguments, context)
        outcome = await pool.result_of(inside)
    if hasattr(outcome, "__await__"):
        outcome = await cast("Awaitable[Outcome]", outcome)
    return cast("Outcome", outcome)


def call_if(may_begin: Callable[[], bool], call: Callable[..., Any], *args: Any) -> Any:
    """Call a tool, unless its run has given the call up while it waited for this thread."""
    return call(*args) if may_begin() else _not_begun()


def _not_begun() -> Outcome:
    """Return an outcome that nobody reads: the ticket of the call is completed."""
    return Outcome.Error("the call was given up before it began")


def call_to_end(may_begin: Callable[[], bool], call: Callable[..., Any], *args: Any) -> Outcome:
    """Call a tool in the pool, and wait there if it returns an awaitable."""
    outcome = call_if(may_begin, call, *args)
    if hasattr(outcome, "__await__"):
        outcome = pool.on_loop(pool.coroutine_of(outcome)).result().get()
    return cast("Outcome", outcome)


class PendingResult:
    """The result of a run in progress. Awaiting it does not drive the run."""

    def __init__(self, session: RunSession) -> None:
        self._future = session.result_future()
        self._session = session

    def __await__(self) -> Generator[Any, Any, RunResult]:
        check_loop("asyncio.run, main()")
        # Cancelling the task that waits does not end the run.
        return self._wait().__await__()

    async def _wait(self) -> RunResult:
        feed, home = self._session.run._feed, self._session.beginning.home
        with nullcontext() if feed is None else feed.readers:
            future = _lazy.asyncio.wrap_future(self._future)
            while not (home is None or home.is_here or future.done()):
                # Whoever waits in another loop must not wait for one that has ended.
                future.add_done_callback(_retrieved)
                await _lazy.asyncio.wait([future], timeout=_LOOK)
                if not future.done():
                    leave_if_ended(self._session)
                    home = self._session.beginning.home
            return await shielded(future)


def _retrieved(future: Future[RunResult]) -> None:
    """Note that the exception of a result is known, if nobody waits for it any more."""
    if not future.cancelled():
        future.exception()


def leave_if_ended(session: RunSession) -> None:
    """Leave a run, and those below it, whose event loop or thread has ended before it has."""
    for child in [*session.run._children]:
        if isinstance(child._driver, SessionDriver):
            leave_if_ended(child._driver._session)
    home = session.beginning.home
    if home is not None and home.has_ended:
        session.abandon()


class SessionDriver:
    """The part that all drivers have: a session, and the result of its run."""

    __slots__ = ("_session",)

    def __init__(self, session: RunSession) -> None:
        self._session = session
        session.beginning.home = Home()

    @property
    def may_rest(self) -> bool:
        """Whether it is a worker's, which may leave the run at rest at any moment."""
        return self._session.is_of_worker

    def cancel_unstarted(self) -> bool:
        """Cancel the run if it has not begun, from any thread. Returns whether that is so."""
        return False

    def look_at_time(self) -> None:
        """Look at the deadline of the run again, from any thread. As `Driver.look_at_time`."""

    def result(self) -> Awaitable[RunResult]:
        """Return an awaitable for the result of the run."""
        return PendingResult(self._session)
