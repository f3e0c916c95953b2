"""The async driver: performs the commands of a run on the caller's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from callslip._core import Command
from callslip._runtime.calls import Call
from callslip._runtime.cancel_scope import CancelScope, cancellations_before, raise_cancelled
from callslip._runtime.grace import GraceTimer
from callslip._runtime.model_on_loop import LoopRequester
from callslip._runtime.model_step import ask
from callslip._runtime.on_loop import SessionDriver, call_tool, read_spent, run_task
from callslip._runtime.pauses import DeadlineTimer
from callslip._runtime.pending import await_result
from callslip._runtime.questions import Question, answer
from callslip._runtime.siblings import Finish, Siblings
from callslip._runtime.start import begins_with_calls, prepare
from callslip._runtime.tool_attempts import repeat
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import StoreError
from callslip.tools import Outcome
from callslip.tools._pending import PendingCall

if TYPE_CHECKING:
    from contextvars import Context as ContextVariables

    from callslip._runtime.early_driver import UnstartedDriver
    from callslip._runtime.session import RunSession

__all__ = ["drive"]

AskModel, CallTool, StartRun = Command.AskModel, Command.CallTool, Command.StartRun
Settle, CheckAnswer = Command.Settle, Command.CheckAnswer
QUESTIONS = (CheckAnswer, Command.CheckApproval, Command.AskApproval, Command.AskResult)


async def drive(session: RunSession) -> None:
    """Perform the run to its end.

    Raises:
        asyncio.CancelledError: The caller's task was cancelled; the run is cancelled with it.
    """
    check_loop()
    if begins_with_calls(session):
        if (early := session.beginning.unstarted) is not None:
            await _prepare_unstarted(session, early)
        else:
            await prepare(session)
    try:
        await _to_end(session)
    except _GroupError as group:
        # A store that fails raises in every call that waits for it.
        errors = group.errors
        first, others = errors.exceptions[0], errors.split(StoreError)[1]
        if others is not None and not session.is_of_worker:
            session.cancel()
        if others is None or len(errors.exceptions) == 1:
            raise first from None
        raise errors from None
    except StoreError:
        raise
    except BaseException as error:
        is_cancelled = isinstance(error, asyncio.CancelledError)
        if not (session.is_kept if is_cancelled else session.is_of_worker):
            session.cancel()
        raise


async def _prepare_unstarted(session: RunSession, early: UnstartedDriver) -> None:
    task = asyncio.current_task()
    assert task is not None
    with CancelScope(task, cancellations_before(task)) as scope:
        if early.is_wanted_in(scope):
            await prepare(session)
    early.leave()


async def _to_end(session: RunSession) -> None:
    driver = _Driver(session)
    session.run._set_driver(driver)
    try:
        await _perform_all(session, driver)
    finally:
        driver.cancel_timers()


async def _perform_all(session: RunSession, driver: _Driver) -> None:
    siblings = driver.siblings
    commands = session.start()
    if session.setup.runs_concurrently:
        siblings.queue.extend(commands)
    else:
        # Most runs do one thing at a time, and need no group.
        await driver.follow(commands)
    while True:
        if siblings.queue or not driver.finish.is_set:
            try:
                async with asyncio.TaskGroup() as group:
                    siblings.group = group
                    await driver.follow(siblings.take_queue())
                    while not driver.finish.is_set:
                        # As it does while all its calls are awaiting approval.
                        await driver.finish.wait()
                    siblings.group = None
            except BaseExceptionGroup as errors:
                raise _GroupError(errors) from None
        driver.raise_fault()
        if session.close_if_finished():
            return
        # A message came at the very end; its commands are in the queue, or will be in a moment.
        driver.finish.clear()


class _GroupError(BaseException):
    """An exception group of the driver's own task group. A tool may raise groups too."""

    def __init__(self, errors: BaseExceptionGroup[BaseException]) -> None:
        super().__init__(errors)
        self.errors = errors


class _Driver(SessionDriver):
    __slots__ = (
        "_asking",
        "_calls",
        "_count",
        "_fault",
        "_grace",
        "_is_stored",
        "_loop",
        "_own_task",
        "_questions",
        "_timer",
        "finish",
        "siblings",
    )

    def __init__(self, session: RunSession) -> None:
        super().__init__(session)
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(self._loop)
        assert task is not None
        self._own_task, self._count = task, cancellations_before(task)
        self._calls: dict[int, CancelScope] = {}
        self._questions: dict[int, tuple[Question, CancelScope]] = {}
        self._asking: CancelScope | None = None
        self._grace = GraceTimer(self._loop, self._grace_is_over)
        is_timed = session.core.is_timed
        self._timer = DeadlineTimer(session, self._loop, self._end_time) if is_timed else None
        self._fault: StoreError | None = None
        self._is_stored = session.store is not None
        self.finish = Finish()
        self.siblings = Siblings()

    def inject(self, make: Callable[[float], list[Command]]) -> bool:
        """Admit a message or a decision, from any thread. As `Driver.inject`."""
        commands = self._session.inject(make)
        if commands is None:
            return False
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._apply(commands)
        else:
            self._loop.call_soon_threadsafe(self._apply, commands)
        return True

    def _apply(self, commands: list[Command]) -> None:
        """Start with the commands that follow from a message or a decision."""
        session = self._session
        session.publish_events(commands)
        if not session.core.finished:
            # The run may have been finished, and continues.
            self.finish.clear()
        ends = any(isinstance(command, Command.Finish) for command in commands)
        if ends and self._asking is not None:
            self._asking.cancel()
        for command in commands:
            if isinstance(command, Command.Cancel):
                self._give_up(command.ticket)
            else:
                self._start(command)
        self._drop_questions()

    def look_at_time(self) -> None:
        """Look at the deadline of the run again, from any thread. As `Driver.look_at_time`."""
        if self._timer is not None:
            # Nothing waits for the time of a loop that is closed.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._timer.start)

    def _end_time(self, deadline: float) -> None:
        """Give up what is in progress, because the time is over, and start with what follows."""
        try:
            commands = self._session.reach_deadline(deadline)
        except StoreError as error:
            self._fault = error
            for ticket in list(self._calls):
                self._give_up(ticket)
            for _, scope in self._questions.values():
                scope.cancel()
            commands = []
            self.finish.set()
        if (commands or self._fault is not None) and self._asking is not None:
            self._asking.cancel()
        self._apply(commands)

    def raise_fault(self) -> None:
        """Raise the error of the store at the end of the time of the run, if there was one."""
        if self._fault is not None:
            raise self._fault

    async def follow(self, commands: Sequence[Command]) -> None:
        """Perform commands and those that follow from them: the first inline, others in tasks.

        Commands that need a task group wait in the queue if there is none: before the first one,
        and while the run ends and a message continues it.
        """
        # With the loop, because looking it up costs a system call.
        task = asyncio.current_task(self._loop)
        assert task is not None
        while commands:
            # Child runs are always in tasks of their own, so that their depth is not limited.
            inline = not isinstance(commands[0], (StartRun, Settle))
            if self.siblings.group is None and (len(commands) > 1 or not inline):
                self.siblings.queue.extend(commands)
                return
            if self._is_stored or self._session.run._feed is not None:
                commands = await self._wait_until_due(commands)
                if not commands:
                    return
                inline = not isinstance(commands[0], (StartRun, Settle))
            for sibling in commands[inline:]:
                self._start(sibling)
            if not inline:
                return
            performing = self._perform(commands[0], task)
            # No reference is kept to them: many runs wait here at once.
            commands = ()
            commands = await performing

    async def _wait_until_due(self, commands: Sequence[Command]) -> Sequence[Command]:
        """Wait until the log is written down and the stream's reader has caught up.

        Returns:
            The commands that are still to be performed: the run may have ended meanwhile.
        """
        session = self._session
        if session.commits is not None:
            await session.commits.written_async(session.core)
        if (feed := session.run._feed) is not None:
            await feed.backpressure()
        return [command for command in commands if session.is_due(command)]

    def _start(self, command: Command, context: ContextVariables | None = None) -> None:
        """Perform a command in a task of its own, now or once there is a group for it."""
        siblings = self.siblings
        if siblings.group is None:
            siblings.queue.append(command)
        elif isinstance(command, Settle):
            self._grace.start(self._session.grace)
        elif isinstance(command, StartRun):
            siblings.create_task(self._follow_run(command), context)
        else:
            siblings.create_task(self._follow_if_due(command), context)

    async def _follow_if_due(self, command: Command) -> None:
        if self._session.is_due(command):
            await self.follow([command])

    async def _follow_run(self, command: Command.StartRun) -> None:
        if not await self._wait_until_due([command]):
            return
        if self._timer is not None:
            self._timer.start()
        await self.follow(await self._start_run(command))

    def _perform(self, command: Command, task: asyncio.Task[Any]) -> Awaitable[Sequence[Command]]:
        if self._timer is not None:
            self._timer.start()
        if isinstance(command, AskModel):
            return self._ask(command, task)
        if isinstance(command, CallTool):
            return self._call(command, task)
        if isinstance(command, QUESTIONS):
            return self._answer(command, task)
        return self._cancel_or_finish(command)

    async def _cancel_or_finish(self, command: Command) -> Sequence[Command]:
        if isinstance(command, Command.Cancel):
            self._give_up(command.ticket)
        elif self._session.core.finished:
            self.cancel_timers()
            self.finish.set()
        return ()

    async def _ask(self, command: Command.AskModel, task: asyncio.Task[Any]) -> Sequence[Command]:
        session = self._session
        scope = self._asking = self._scope(task)
        self._grace.clear()
        commands: Sequence[Command] = ()
        try:
            with scope:
                if self._is_stored:
                    await read_spent(session)
                commands = await ask(
                    session, command.turn, LoopRequester(session, scope, self._start)
                )
        except BaseException as error:
            if not scope.cancel_called or scope.is_for_task(error):
                raise
        finally:
            if self._asking is scope:
                self._asking = None
        if scope.is_task_cancelled:
            await raise_cancelled()
        return commands

    async def _call(self, command: Command.CallTool, task: asyncio.Task[Any]) -> Sequence[Command]:
        session, ticket = self._session, command.ticket
        scope = self._calls[ticket] = self._scope(task)
        call = Call(session, ticket)
        try:
            with scope:
                outcome = await call_tool(session, command, call)
                if isinstance(outcome, Outcome.Error):
                    outcome = await repeat(session, command, outcome, call_tool)
        except asyncio.CancelledError:
            call.cancelled = True
            self._reraise_if_cancelled(scope)
            outcome = session.cancelled_outcome(command)
        finally:
            call.end()
            del self._calls[ticket]
        if scope.cancelled_caught:
            call.cancelled = True
            return ()
        commands: Sequence[Command]
        if isinstance(outcome, PendingCall):
            pending = await pool.in_own_thread(await_result, session, ticket, outcome)
            commands = session.publish_events(pending)
        else:
            commands = session.complete_call(ticket, outcome)
        if scope.is_task_cancelled:
            await raise_cancelled()
        return commands

    async def _answer(self, command: Question, task: asyncio.Task[Any]) -> Sequence[Command]:
        """Let the program or a person answer a question."""
        scope = self._scope(task)
        # The answer of a run belongs to no ticket.
        key = 0 if isinstance(command, CheckAnswer) else command.ticket
        self._questions[key] = command, scope
        commands: Sequence[Command] = ()
        try:
            with scope:
                commands = await answer(self._session, command)
        except BaseException as error:
            if not scope.cancel_called or scope.is_for_task(error):
                raise
        finally:
            if self._questions.get(key) == (command, scope):
                del self._questions[key]
        if scope.is_task_cancelled:
            await raise_cancelled()
        return commands

    def _drop_questions(self) -> None:
        """Give up the questions that need no answer any more."""
        for command, scope in list(self._questions.values()):
            if not self._session.is_due(command):
                scope.cancel()

    async def _start_run(self, command: Command.StartRun) -> Sequence[Command]:
        session, ticket = self._session, command.ticket
        task = asyncio.current_task(self._loop)
        assert task is not None
        scope = self._calls[ticket] = self._scope(task)
        run = None
        try:
            with scope:
                outcome, run = await run_task(session, command)
        except asyncio.CancelledError:
            self._reraise_if_cancelled(scope)
            outcome = session.cancelled_outcome(command)
        finally:
            del self._calls[ticket]
        if scope.cancelled_caught:
            return ()
        return session.complete_task(ticket, outcome, run)

    def _scope(self, task: asyncio.Task[Any]) -> CancelScope:
        # The caller's task may have been cancelled, and have called the agent all the same.
        return CancelScope(task, self._count if task is self._own_task else 0)

    def _reraise_if_cancelled(self, scope: CancelScope) -> None:
        """Reraise a `CancelledError`, unless it came from something that the work awaited."""
        if scope.is_task_cancelled:
            raise  # noqa: PLE0704  # called where the error is handled

    def _give_up(self, ticket: int) -> None:
        scope = self._calls.get(ticket)
        if scope is not None:
            scope.cancel()
        self._drop_questions()

    def cancel_timers(self) -> None:
        """End the grace of the latest call, without the model going on, and look at no deadline."""
        self._grace.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def _grace_is_over(self) -> None:
        if self.siblings.group is None:
            self.siblings.queue.append(Settle())
        else:
            self.siblings.create_task(self._follow_end_of_grace(), None)

    async def _follow_end_of_grace(self) -> None:
        await self.follow(self._session.end_grace())
