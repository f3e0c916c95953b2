"""A run that is being streamed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, cast

from callslip._runtime.driver import drive
from callslip._runtime.early_driver import EarlyDriver
from callslip._runtime.event_queue import EventQueue
from callslip._runtime.kept_run import DrivenRun
from callslip._runtime.on_loop import PendingResult
from callslip._runtime.opening import release, take_in_thread
from callslip._runtime.sessions import continued_session
from callslip._runtime.start import begins_with_calls, prepare
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import UsageError
from callslip.events import Progress
from callslip.runs import RunResult, Waiting
from callslip.runs._conversation import agent_of, append_message, check_message, send_to_driver
from callslip.runs._elsewhere import catch_up
from callslip.runs._feed import feed_of
from callslip.runs._result import AnswerT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from contextvars import Context as ContextVariables
    from types import TracebackType
    from typing import Any

    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip.events import Delta, Event
    from callslip.parts import Content, Said
    from callslip.runs import Run, Ticket

    _Attach = Callable[[RunSession], RunSession]

__all__ = ["RunStream"]


class RunStream(Generic[AnswerT]):
    """The events of a run, as they happen. Made by `Agent.stream`.

    The iteration ends when the run does. Its last event is `run_finished`, with the reason; if the
    run has failed, the iteration raises its exception then. The stream applies backpressure: a run
    is never more than a few hundred events ahead of its reader, unless another driver has it.
    """

    def __init__(
        self,
        session: RunSession | Callable[[_Attach], RunSession | DrivenRun],
        *,
        children: bool,
    ) -> None:
        # A run that a store keeps is read when the block is entered.
        self._read: Callable[[_Attach], RunSession | DrivenRun] | None = None
        # None if another driver has the run.
        self._session: RunSession | None = None
        self._run: Run[AnswerT] | None = None
        if callable(session):
            self._read = session
        else:
            self._take(session)
        self._children = children
        self._task: asyncio.Task[None] | None = None
        self._early: EarlyDriver | None = None
        # A message may be sent at the very moment at which the block is left.
        self._lock = threading.Lock()
        self._is_open = False
        # Whether the run continues, and the task for that is still to be made.
        self._is_due = False
        # Whether the iteration has raised the exception of the run.
        self._has_raised = False
        self._queue: EventQueue
        self._loop: asyncio.AbstractEventLoop
        self._context: ContextVariables

    def _take(self, session: RunSession) -> None:
        self._session = session
        self._run = session.run

    @property
    def run(self) -> Run[AnswerT]:
        """The run. For `Agent.stream(run=…)` it is there once the block is entered.

        Raises:
            UsageError: The block was not entered yet.
        """
        if self._run is None:
            raise UsageError(
                "the run of this stream has not been read yet: enter the stream first, or take an "
                "item of stream_sync(…)"
            )
        return self._run

    async def __aenter__(self) -> Self:
        check_loop()
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        if self._read is not None:
            found = await take_in_thread(partial(self._read, self._attach), _give_up)
            if isinstance(found, DrivenRun):
                self._follow(found)
                return self
            session = found
        else:
            assert self._session is not None
            session = self._session
            if begins_with_calls(session):
                await self._prepare(session)
            self._attach(session)
        self._is_open = True
        self._open(session)
        self._create_task()
        return self

    def _follow(self, driven: DrivenRun) -> None:
        """Pass on what a watcher of the run is told."""
        driven.see_to_message()
        self._run = driven.run
        self._queue = EventQueue(self._loop, driven.run.id, children=self._children)
        self._is_open = True
        self._task = self._loop.create_task(self._pass_on(driven), context=self._context)
        self._task.add_done_callback(lambda _: self._queue.wake())

    async def _pass_on(self, driven: DrivenRun) -> None:
        run, queue = driven.run, self._queue
        watch = run.watch(after=driven.after, children=self._children)
        async for item in watch:
            if isinstance(item, Progress):
                queue.on_progress(item)
            elif not isinstance(item, Waiting):
                queue.on_event(item)
            await queue.backpressure()
        if watch.run is not run and run._driver is None:
            # Whoever has the stream reads the result with this object.
            await pool.in_own_thread(catch_up, run)

    def _attach(self, session: RunSession) -> RunSession:
        """Queue all that happens in the run from now on, before a decision can reach it."""
        self._take(session)
        self._queue = EventQueue(self._loop, self.run.id, children=self._children)
        self._listen(session.agent)
        return session

    def _listen(self, agent: DrivenAgent) -> None:
        feed = feed_of(self.run)
        feed.reader = self._queue
        # Whoever decides has to see the calls of child runs that wait; otherwise nobody does.
        if self._children or any(agent._waits_for):
            feed.want_children()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._is_open = self._is_due = False
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])
        if task is not None and not task.cancelled():
            task.exception()  # the iteration has raised a failure of the driver itself
        if self._early is not None and not self._early.is_over:
            # A task that is cancelled before its start does nothing at all.
            assert self._session is not None
            with self._session:
                self._session.cancel()
        feed = feed_of(self.run)
        if feed.reader is self._queue:
            feed.reader = None

    async def _prepare(self, session: RunSession) -> None:
        try:
            await prepare(session)
        except BaseException as error:
            # The block is not entered, and so not left.
            session.__exit__(type(error), error, None)
            raise

    def _open(self, session: RunSession) -> None:
        """Start or resume a run, as far as that needs no driver."""
        self._early = EarlyDriver.of(session)
        self._session = session

    def _create_task(self) -> None:
        if self._is_open and self._session is not None:
            self._is_due = False
            task = self._loop.create_task(self._drive(self._session), context=self._context)
            task.add_done_callback(lambda _: self._queue.wake())
            self._task = task

    async def _drive(self, session: RunSession) -> None:
        with session:
            await drive(session)

    if not TYPE_CHECKING:
        # Type checkers say it themselves.

        def __await__(self) -> NoReturn:
            _refuse("await agent.stream(…)")

        def __iter__(self) -> NoReturn:
            _refuse("for … in agent.stream(…)")

        def __enter__(self) -> NoReturn:
            _refuse("with agent.stream(…)")

        def __exit__(self, *_: object) -> None:
            """Never called: it was not entered."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Delta | Progress:
        if self._task is None:
            raise UsageError("enter the stream first: async with agent.stream(…) as run: …")
        if not self._queue.is_here():
            raise UsageError(
                "expected the event loop on which the stream was entered: got another; use "
                "run.watch(), which any number of loops can read"
            )
        while (item := await self._queue.next(self._is_over)) is None:
            # A message from another thread may continue the run at this very moment, or have
            # continued it to its next end since.
            with self._lock:
                if self._is_over() and self._queue.is_empty:
                    self._raise_failure(self._task)
                    raise StopAsyncIteration
        return item

    def _raise_failure(self, task: asyncio.Task[None]) -> None:
        """Raise the exception of the driver, or that of the run, which is raised once."""
        if task.cancelled() and not self._is_open:
            # Whoever has left the block has cancelled it.
            return
        if self._session is not None:
            task.result()
        if not self._has_raised:
            self._has_raised = True
            if self._session is None:
                task.result()
                return
            # An answer of another type is told where the result is read.
            with suppress(UsageError):
                self._session.result()

    def _is_over(self) -> bool:
        return self._task is not None and self._task.done() and not self._is_due

    @property
    def awaiting_approval(self) -> list[Ticket]:
        """The tickets that are awaiting approval. As `Run.awaiting_approval`."""
        return self.run.awaiting_approval

    @property
    def awaiting_result(self) -> list[Ticket]:
        """The tickets that await a result from outside. As `Run.awaiting_result`."""
        return self.run.awaiting_result

    def approve(
        self,
        ticket: Ticket | str,
        *,
        arguments: Mapping[str, Any] | None = None,
        by: str | None = None,
    ) -> None:
        """Approve a call that is awaiting approval. As `Run.approve`."""
        self.run.approve(ticket, arguments=arguments, by=by)

    def deny(self, ticket: Ticket | str, why: str = "", *, by: str | None = None) -> None:
        """Deny a call that is awaiting approval. As `Run.deny`."""
        self.run.deny(ticket, why, by=by)

    def answer(
        self,
        ticket: Ticket | str,
        value: object = None,
        *,
        error: str | None = None,
        by: str | None = None,
    ) -> None:
        """Answer a call whose result comes from outside. As `Run.answer`."""
        self.run.answer(ticket, value, error=error, by=by)

    def send(
        self, message: Content, *, deps: object = None, key: str | None = None
    ) -> Awaitable[RunResult[AnswerT]]:
        """Add a user message. As `Run.send`, but a finished run continues by itself.

        Continue to iterate. While a task awaits the object that this returns, the run continues
        without backpressure.

        Raises:
            UsageError: The message is blank or not text, or the run has not started.
            StoreError: The message cannot be written down.
        """
        said = check_message(message, key)
        while (result := send_to_driver(self.run, said, deps)) is None:
            if not self._is_open or self._has_failed():
                return self.run.send(message, deps=deps, key=key)
            self.run._replace_deps(deps)
            result = self._continue(said)
            if result is not None:
                break
        return _StreamedResult(self._queue, result)

    def _continue(self, said: Said) -> PendingResult | None:
        """Add a message to a finished run, and drive it further. `None` if there is a driver."""
        with self._lock:
            # Another thread may have continued it just now, or the block may have been left.
            if not self._is_open or self.run._driver is not None:
                return None
            if self._session is None:
                self._listen(_driven(self.run))
            commands = append_message(self.run, said)
            if commands is None:
                return None
            session = continued_session(_driven(self.run), self.run, commands)
            self._open(session)
            # Made before the loop's thread can drive the session to its end.
            result = PendingResult(session)
            self._is_due = True
            self._has_raised = False
            self._loop.call_soon_threadsafe(self._create_task)
            return result

    def _has_failed(self) -> bool:
        """Whether the driver itself has failed, which the iteration raises."""
        task = self._task
        if task is None or not task.done() or task.cancelled():
            return False
        return task.exception() is not None

    def cancel(self) -> None:
        """Cancel the run and its child runs. As `Run.cancel`; the iteration ends then."""
        self.run.cancel()

    @property
    def result(self) -> RunResult[AnswerT]:
        """The result of the run.

        Raises:
            UsageError: The run is not over yet.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached, and there is no answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled.
        """
        if not self.run.finished:
            raise UsageError("the run is not over yet: iterate the stream to its end first")
        return RunResult._of(self.run) if self._session is None else self._session.result()


class _StreamedResult:
    """The result that follows from a message to a stream."""

    def __init__(self, queue: EventQueue, result: Awaitable[RunResult]) -> None:
        self._queue = queue
        self._result = result

    def __await__(self) -> Generator[Any, Any, RunResult]:
        return self._wait().__await__()

    async def _wait(self) -> RunResult:
        waiter = self._queue.add_waiter()
        try:
            return await self._result
        finally:
            self._queue.remove_waiter(waiter)


def _give_up(found: RunSession | DrivenRun) -> None:
    if not isinstance(found, DrivenRun):
        release(found)
        feed_of(found.run).reader = None


def _driven(run: Run[Any]) -> DrivenAgent:
    # Every agent of a run was passed by the runtime.
    return cast("DrivenAgent", agent_of(run))


def _refuse(written: str) -> NoReturn:
    raise UsageError(
        f"expected the events of a stream: got {written}; use async with agent.stream(…) as run, "
        "and async for event in run inside of it, or agent.stream_sync(…) without an event loop"
    )
