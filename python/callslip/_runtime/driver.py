"""The async driver: performs a run's commands on the caller's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callslip._core import Command
from callslip._runtime.on_loop import End, make_call, receive, work
from callslip._runtime.session import Call, Session
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import StoreError
from callslip.models._reply import ModelReply, open_result

if TYPE_CHECKING:
    from contextvars import Context as ContextVariables

    from callslip._threads.gate import Gate
    from callslip.runs import RunResult

__all__ = ["drive"]

AskModel, CallTool, StartRun = Command.AskModel, Command.CallTool, Command.StartRun
Settle = Command.Settle

T = TypeVar("T")


async def drive(session: Session) -> None:
    """Perform the run to its end.

    Raises:
        asyncio.CancelledError: The caller's task was cancelled; the run is cancelled with it.
    """
    check_loop()
    try:
        await _to_end(session)
    except _GroupError as group:
        # A store that fails tells every call that waits for it.
        errors = group.errors
        first, others = errors.exceptions[0], errors.split(StoreError)[1]
        if others is not None:
            session.cancelled()
        if others is None or len(errors.exceptions) == 1:
            raise first from None
        raise errors from None
    except StoreError:
        raise
    except BaseException as error:
        session.cancelled()
        if isinstance(error, asyncio.CancelledError):
            error.run = session.run  # type: ignore[attr-defined]
        raise


async def _to_end(session: Session) -> None:
    driver = _Driver(session)
    session.run._drive_by(driver)
    try:
        await _perform_all(session, driver)
    finally:
        driver.end_grace()


async def _perform_all(session: Session, driver: _Driver) -> None:
    if session.offer.begins_beside:
        commands: Sequence[Command] = session.start()
    else:
        # Most runs do one thing at a time, and need no group.
        commands = await driver.follow(session.start())
    while True:
        commands = [*driver.late(), *commands]
        if commands or not driver.has_ended:
            try:
                async with asyncio.TaskGroup() as group:
                    driver.group = group
                    await driver.follow(commands)
                    if not driver.has_ended:
                        await driver.ended()
                    driver.group = None
            except BaseExceptionGroup as errors:
                raise _GroupError(errors) from None
        if session.over():
            return
        # Something was said in the very end, of which the driver may be told in a moment.
        driver.reopen()
        commands = ()


class _GroupError(BaseException):
    """What the driver's own task group raised. What a tool raised may be a group too."""

    def __init__(self, errors: BaseExceptionGroup[BaseException]) -> None:
        super().__init__(errors)
        self.errors = errors


class _Driver:
    __slots__ = (
        "_asking",
        "_calls",
        "_cancelled_before",
        "_commits",
        "_dropped",
        "_finish",
        "_given_up",
        "_grace",
        "_grace_ends",
        "_is_bounded",
        "_late",
        "_loop",
        "_model_is_async",
        "_room",
        "_session",
        "_task",
        "_turn",
        "group",
        "has_ended",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        # While it ends there is none: what is said then comes late.
        self.group: asyncio.TaskGroup | None = None
        self._late: list[Command] = []
        self._loop = asyncio.get_running_loop()
        self._task, self._cancelled_before = _cancelled_before(self._loop)
        self._commits = session.commits
        self._calls: dict[int, asyncio.Task[Any]] = {}
        self._given_up: set[int] | None = None
        # Made where somebody waits: most runs need none.
        self._finish: asyncio.Event | None = None
        self.has_ended = False
        # When the grace of a call just started is over (ticket). One timer serves all calls: most
        # end first, and a timer for each would cost more than they do.
        self._grace_ends: float | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[Any] | None = None
        # The question under way, and the last one whose answer nobody wants any more.
        self._turn = 0
        self._dropped = 0
        self._is_bounded = session.core.deadline is not None
        self._model_is_async = session.model.is_async
        self._room = session.room

    def give(self, make: Callable[[float], list[Command]]) -> bool:
        """Take what somebody else gives in, from any thread. Returns whether it was taken."""
        commands = self._session.given(make)
        if commands is None:
            return False
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._take(commands)
        else:
            self._loop.call_soon_threadsafe(self._take, commands)
        return True

    def result(self) -> Awaitable[RunResult]:
        """Return what is to be awaited for the end of the run."""
        return End(self._session.outcome())

    def _take(self, commands: list[Command]) -> None:
        session = self._session
        session.told(commands)
        if not session.core.finished:
            # It may be one that had ended, and goes on.
            self.reopen()
        for command in commands:
            if isinstance(command, Command.Cancel):
                self._give_up(command.ticket)
            else:
                self._begin(command)
        ends = any(isinstance(command, Command.Finish) for command in commands)
        if ends and self._asking is not None and self._dropped != self._turn:
            self._dropped = self._turn
            self._cancel(self._asking, lambda: self._asking)

    async def ended(self) -> None:
        """Wait for the end of the run; while all its calls are parked, nothing else does."""
        while not self.has_ended:
            if not self._is_bounded:
                await self._end().wait()
                continue
            deadline = self._session.core.deadline or 0.0
            try:
                async with asyncio.timeout(deadline - self._session.now()):
                    await self._end().wait()
            except TimeoutError:
                await self.follow(self._session.timed_out(deadline))

    async def follow(self, commands: Sequence[Command]) -> Sequence[Command]:
        """Perform commands, and what comes of them: the first inline, its siblings in tasks.

        Returns:
            What is left to do as soon as there is a group to do it in.
        """
        # With the loop, which asking for costs a system call.
        task = asyncio.current_task(self._loop)
        assert task is not None
        while commands:
            # Runs below runs are awaited from tasks of their own, however deep.
            inline = not isinstance(commands[0], (StartRun, Settle))
            if self.group is None and (len(commands) > 1 or not inline):
                return commands
            if self._commits is not None or self._room is not None:
                commands = await self._written(commands)
                if not commands:
                    return ()
                inline = not isinstance(commands[0], (StartRun, Settle))
            for sibling in commands[inline:]:
                self._begin(sibling)
            if not inline:
                return ()
            performing = self._perform(commands[0], task)
            # What is performed is not kept: it would be one thing more for each of many runs.
            commands = ()
            commands = await (self._bounded(performing) if self._is_bounded else performing)
        return ()

    async def _written(self, commands: Sequence[Command]) -> Sequence[Command]:
        """Wait until what has happened is written down, and whoever watches has caught up.

        Returns:
            What of the commands is still to be performed: the run may have ended meanwhile.
        """
        if self._commits is not None:
            await self._commits.written(self._session.core.position)
        if self._room is not None:
            await self._room()
        return [command for command in commands if self._session.is_due(command)]

    async def _later(self, command: Command) -> None:
        if self._session.is_due(command):
            await self.follow([command])

    def late(self) -> list[Command]:
        """Return what is to be done because of what was said while there was no group."""
        late, self._late = self._late, []
        return late

    def reopen(self) -> None:
        """Say that the run goes on."""
        self.has_ended = False
        if self._finish is not None:
            self._finish.clear()

    def _begin(self, command: Command, context: ContextVariables | None = None) -> None:
        group = self.group
        if group is None:
            self._late.append(command)
        elif isinstance(command, Settle):
            self._begin_grace()
        elif isinstance(command, StartRun):
            _create_task(group, self._follow_run(command), context)
        else:
            _create_task(group, self._later(command), context)

    async def _follow_run(self, command: Command.StartRun) -> None:
        if not await self._written([command]):
            return
        performing = self._start_run(command)
        await self.follow(await (self._bounded(performing) if self._is_bounded else performing))

    def _perform(self, command: Command, task: asyncio.Task[Any]) -> Awaitable[Sequence[Command]]:
        if isinstance(command, AskModel):
            return self._ask(task, command.turn)
        if isinstance(command, CallTool):
            return self._call(command, task)
        return self._note(command)

    async def _bounded(self, performing: Awaitable[Sequence[Command]]) -> Sequence[Command]:
        deadline = self._session.core.deadline or 0.0
        task = asyncio.current_task(self._loop)
        assert task is not None
        try:
            async with asyncio.timeout(deadline - self._session.now()) as scope:
                commands = await performing
        except TimeoutError:
            if not scope.expired():
                raise
            commands = self._session.timed_out(deadline)
        if task.cancelling() > self._before(task):
            # What it performed has swallowed that.
            await _cancel_here()
        return commands

    async def _note(self, command: Command) -> Sequence[Command]:
        if isinstance(command, Command.Cancel):
            self._give_up(command.ticket)
        else:
            self.has_ended = True
            self.end_grace()
            if self._finish is not None:
                self._finish.set()
        return ()

    def _end(self) -> asyncio.Event:
        if self._finish is None:
            self._finish = asyncio.Event()
        return self._finish

    async def _ask(self, task: asyncio.Task[Any], turn: int) -> Sequence[Command]:
        session = self._session
        self._asking, self._turn = task, turn
        self._grace_ends = None
        cancelled_before = self._before(task)
        try:
            if session.model.gate is not None:
                commands = await self._ask_in_turn(session.model.gate)
            else:
                result = (
                    session.ask() if self._model_is_async else await pool.in_thread(session.ask)
                )
                awaited = type(result) is CoroutineType or hasattr(result, "__await__")
                if awaited:
                    self._model_is_async = True
                    result = await cast("Awaitable[object]", result)
                if type(result) is not str:
                    commands = await self._open(result, awaited=awaited, begin=self._begin)
                elif self._dropped != turn:
                    commands = session.reply(result)
                else:
                    commands = ()
        except BaseException as error:
            instead = self._failed(error, task, turn)
            if instead is None:
                raise
            commands = instead
        finally:
            self._asking = None
        if self._dropped == turn and task.cancelling() > cancelled_before:
            # The model was stopped and has swallowed it.
            task.uncancel()
        if self._is_to_end(task, cancelled_before):
            await _cancel_here()
        return commands

    def _failed(
        self, error: BaseException, task: asyncio.Task[Any], turn: int
    ) -> Sequence[Command] | None:
        """Return what is done where a model raised something; `None` where that is to pass."""
        cancelled_before = self._before(task)
        is_dropped = self._dropped == turn
        if isinstance(error, asyncio.CancelledError):
            if is_dropped and task.uncancel() <= cancelled_before:
                # The run is over, and nobody has cancelled the task as a whole.
                return ()
            passes = task.cancelling() > cancelled_before
        elif isinstance(error, GeneratorExit):
            # Of a coroutine that is closed, because nobody runs it any more.
            passes = asyncio.current_task(self._loop) is not task
        else:
            passes = not isinstance(error, Exception)
        if passes:
            return None
        return () if is_dropped else self._session.failed(error)

    async def _ask_in_turn(self, gate: Gate) -> Sequence[Command]:
        session = self._session
        # A call that starts early is no part of the model's call.
        outside = copy_context()
        async with gate.held(session.root):
            if self._model_is_async:
                result = session.ask()
            else:
                asking = pool.submit_inside(gate, session.ask)
                result = await pool.result_of(asking)
            awaited = hasattr(result, "__await__")
            if awaited:
                result = await cast("Awaitable[object]", result)
            return await self._open(
                result,
                awaited=awaited,
                begin=lambda early: self._begin(early, outside.copy()),
            )

    async def _open(
        self, result: object, *, awaited: bool, begin: Callable[[Command], object]
    ) -> Sequence[Command]:
        """Take a reply that is more than text, or streamed."""
        reply = open_result(result, awaited=awaited)
        if isinstance(reply, ModelReply):
            if self._dropped == self._turn:
                return ()
            return self._session.reply(
                reply.text, reply.finish_reason, reply.usage, reply.reasoning
            )
        return await receive(self._session, reply, begin)

    async def _call(self, command: Command.CallTool, task: asyncio.Task[Any]) -> Sequence[Command]:
        session, ticket = self._session, command.ticket
        self._calls[ticket] = task
        cancelled_before = self._before(task)
        call = Call(session, ticket)
        try:
            tool = session.offer.toolbox.get(command.tool)
            asks_first = tool.reconcile is not None and command.again
            if tool._direct is not None and tool.gate is None and not asks_first:
                try:
                    result = await tool._direct(**command.arguments)
                except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
                    outcome = tool._failed(error)
                else:
                    outcome = tool._returned(result)
            else:
                outcome = await make_call(session, command, call)
        except asyncio.CancelledError:
            call.cancelled = True
            if self._was_given_up(ticket, task, cancelled_before):
                return ()
            outcome = session.cancelled_inside(command)
        finally:
            call.end()
            del self._calls[ticket]
        if self._given_up and ticket in self._given_up and task.cancelling() > cancelled_before:
            # It was given up and has swallowed that.
            task.uncancel()
        commands = session.completed(ticket, outcome)
        if self._is_to_end(task, cancelled_before):
            await _cancel_here()
        return commands

    def _is_to_end(self, task: asyncio.Task[Any], cancelled_before: int) -> bool:
        """Whether a model or tool has swallowed that its task was cancelled."""
        # Under a time limit it may have been that which is reached: `_bounded` tells them apart.
        return not self._is_bounded and task.cancelling() > cancelled_before

    def _before(self, task: asyncio.Task[Any]) -> int:
        """Return how often a task was cancelled before it worked on the run.

        More than that is the caller's doing, whenever it came; except for what the driver itself
        cancels and takes back.
        """
        return self._cancelled_before if task is self._task else 0

    async def _start_run(self, command: Command.StartRun) -> Sequence[Command]:
        session, ticket = self._session, command.ticket
        task = asyncio.current_task(self._loop)
        assert task is not None
        self._calls[ticket] = task
        cancelled_before = self._before(task)
        run = None
        try:
            outcome, run = await work(session, command)
        except asyncio.CancelledError:
            if self._was_given_up(ticket, task, cancelled_before):
                return ()
            outcome = session.cancelled_inside(command)
        finally:
            del self._calls[ticket]
        return session.run_ended(ticket, outcome, run)

    def _was_given_up(self, ticket: int, task: asyncio.Task[Any], cancelled_before: int) -> bool:
        """Whether it was the run that cancelled the work on a ticket, and not something in it.

        Raises:
            asyncio.CancelledError: The task as a whole was cancelled.
        """
        given_up = self._given_up is not None and ticket in self._given_up
        if given_up and task.uncancel() <= cancelled_before:
            return True
        if task.cancelling() > cancelled_before:
            raise  # noqa: PLE0704  # called where it is handled
        # Something that was waited for in it was cancelled.
        return False

    def _give_up(self, ticket: int) -> None:
        task = self._calls.get(ticket)
        if task is not None:
            if self._given_up is None:
                self._given_up = set()
            self._given_up.add(ticket)
            self._cancel(task, lambda: self._calls.get(ticket))

    def _cancel(
        self, task: asyncio.Task[Any], at_work: Callable[[], asyncio.Task[Any] | None]
    ) -> None:
        """Cancel what a task is at; not what it does after that."""
        if asyncio.current_task(self._loop) is not task:
            task.cancel()
        else:
            # It was its own doing, and may be done with in a moment.
            self._loop.call_soon(lambda: task.cancel() if at_work() is task else None)

    def _begin_grace(self) -> None:
        self._grace_ends = self._loop.time() + self._session.grace
        if self._grace is None:
            self._grace = self._loop.call_at(self._grace_ends, self._look_at_grace)

    def end_grace(self) -> None:
        """Have the grace of a call end with nothing done about it."""
        self._grace_ends = None
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None

    def _look_at_grace(self) -> None:
        """Go on without a call whose grace is over."""
        self._grace = None
        if self._grace_ends is None:
            return
        if self._grace_ends > self._loop.time():
            # It is that of a later call than the one for which the timer was set.
            self._grace = self._loop.call_at(self._grace_ends, self._look_at_grace)
            return
        self._grace_ends = None
        if self.group is None:
            self._late.append(Settle())
        else:
            _create_task(self.group, self._settled(), None)

    async def _settled(self) -> None:
        await self.follow(self._session.settled())


def _create_task(
    group: asyncio.TaskGroup,
    following: Coroutine[Any, Any, object],
    context: ContextVariables | None,
) -> None:
    try:
        group.create_task(following, context=context)
    except RuntimeError:
        # It is being cancelled, or has failed: nothing begins any more.
        following.close()


def _cancelled_before(loop: asyncio.AbstractEventLoop) -> tuple[asyncio.Task[Any], int]:
    """Return the task that runs, and how often it was cancelled and works on all the same.

    A cancellation that it is still to be told of is none of these.
    """
    task = asyncio.current_task(loop)
    assert task is not None
    return task, task.cancelling() - bool(getattr(task, "_must_cancel", False))


async def _cancel_here() -> None:
    """Raise `CancelledError` in a task that was cancelled."""
    # Where it is still to be told of that, it is told here, and not once more later.
    await asyncio.sleep(0)
    raise asyncio.CancelledError
