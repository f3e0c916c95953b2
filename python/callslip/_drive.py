"""The async driver: performs a run's commands on the caller's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callslip import _threads
from callslip._core import Command
from callslip._session import Call, Receipt, Session, cancelled_inside
from callslip.errors import StoreError
from callslip.models._reply import AsyncReplyStream, ModelReply, ReplyStream, open_result

if TYPE_CHECKING:
    from callslip.tools import Outcome

__all__ = ["drive", "receive"]

AskModel, CallTool = Command.AskModel, Command.CallTool

T = TypeVar("T")


async def drive(session: Session) -> None:
    """Perform the run to its end.

    Raises:
        asyncio.CancelledError: The caller's task was cancelled; the run is cancelled with it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            await _Driver(session, group).follow(session.start())
    except BaseExceptionGroup as errors:
        # A store that fails tells every call that waits for it.
        first, others = errors.exceptions[0], errors.split(StoreError)[1]
        if others is not None:
            session.cancelled()
        if others is None or len(errors.exceptions) == 1:
            raise first from None
        raise
    except StoreError:
        raise
    except BaseException as error:
        session.cancelled()
        if isinstance(error, asyncio.CancelledError):
            error.run = session.run  # type: ignore[attr-defined]
        raise


class _Driver:
    __slots__ = (
        "_calls",
        "_commits",
        "_ended",
        "_given_up",
        "_group",
        "_is_bounded",
        "_model_is_async",
        "_session",
    )

    def __init__(self, session: Session, group: asyncio.TaskGroup) -> None:
        self._session = session
        self._group = group
        self._commits = session.commits
        self._calls: dict[int, asyncio.Task[Any]] = {}
        self._given_up: set[int] = set()
        self._ended = asyncio.Event()
        self._is_bounded = session.core.deadline is not None
        self._model_is_async = session.model.is_async

    async def follow(self, commands: Sequence[Command]) -> None:
        """Perform commands, and what comes of them: the first inline, its siblings in tasks."""
        while commands:
            if self._commits is not None:
                # What has happened is written down before anything is done about it.
                await self._commits.written(self._session.core.position)
            for sibling in commands[1:]:
                self._begin(sibling)
            performing = self._perform(commands[0])
            commands = await (self._bounded(performing) if self._is_bounded else performing)

    def _begin(self, command: Command) -> None:
        self._group.create_task(self.follow([command]))

    def _perform(self, command: Command) -> Awaitable[Sequence[Command]]:
        if isinstance(command, AskModel):
            return self._ask()
        if isinstance(command, CallTool):
            return self._call(command)
        if isinstance(command, Command.Settle):
            return self._settle()
        return self._note(command)

    async def _bounded(self, performing: Awaitable[Sequence[Command]]) -> Sequence[Command]:
        deadline = self._session.core.deadline or 0.0
        try:
            async with asyncio.timeout(deadline - self._session.now()) as scope:
                return await performing
        except TimeoutError:
            if not scope.expired():
                raise
            return self._session.timed_out(deadline)

    async def _note(self, command: Command) -> Sequence[Command]:
        if isinstance(command, Command.Cancel):
            self._give_up(command.ticket)
        else:
            self._ended.set()
        return ()

    async def _ask(self) -> Sequence[Command]:
        session = self._session
        cancelled_before = _cancelling()
        try:
            if self._model_is_async:
                result = session.ask()
            else:
                result = await _in_thread(session.ask)
            awaited = hasattr(result, "__await__")
            if awaited:
                self._model_is_async = True
                result = await cast("Awaitable[object]", result)
            if type(result) is str:
                return session.reply(result)
            reply = open_result(result, awaited=awaited)
            if isinstance(reply, ModelReply):
                return session.reply(reply.text, reply.finish_reason, reply.usage)
            return await receive(session, reply, self._begin)
        except asyncio.CancelledError as error:
            if _cancelling() > cancelled_before:
                raise
            return session.failed(error)
        except Exception as error:  # noqa: BLE001  # whatever a client raises ends the run
            return session.failed(error)

    async def _call(self, command: Command.CallTool) -> Sequence[Command]:
        session, ticket = self._session, command.ticket
        task = asyncio.current_task()
        assert task is not None
        self._calls[ticket] = task
        # The task may be one that its owner has cancelled, and that works on all the same.
        cancelled_before = task.cancelling()
        call = Call(session.run.id, ticket)
        try:
            tool, context = session.tool(command)
            if tool.is_async:
                outcome = await tool.acall(command.arguments, context)
            else:
                outcome = await _in_thread(tool.call, command.arguments, context)
                if hasattr(outcome, "__await__"):
                    outcome = await cast("Awaitable[Outcome]", outcome)
        except asyncio.CancelledError:
            # The run has given this call up, and nobody has cancelled the task as a whole.
            if ticket in self._given_up and task.uncancel() <= cancelled_before:
                return ()
            if task.cancelling() > cancelled_before:
                raise
            # Something that the tool waited for was cancelled, and not the run.
            outcome = cancelled_inside(command.tool)
        finally:
            call.end()
            del self._calls[ticket]
        if ticket in self._given_up and task.cancelling() > cancelled_before:
            # The call was given up and has swallowed it.
            task.uncancel()
        return session.completed(ticket, outcome)

    def _give_up(self, ticket: int) -> None:
        task = self._calls.get(ticket)
        if task is not None:
            self._given_up.add(ticket)
            task.cancel()

    async def _settle(self) -> Sequence[Command]:
        try:
            async with asyncio.timeout(self._session.grace):
                await self._ended.wait()
        except TimeoutError:
            return self._session.settled()
        return ()


def _cancelling() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def receive(
    session: Session,
    stream: ReplyStream | AsyncReplyStream,
    begin: Callable[[Command], object],
) -> Sequence[Command]:
    """Read a streamed reply into the run; `begin` starts calls that may start early."""
    receipt = Receipt(session)
    if isinstance(stream, AsyncReplyStream):
        try:
            async for chunk in stream:
                stop, commands = receipt.take(chunk)
                for command in commands:
                    begin(command)
                if stop:
                    break
        finally:
            await stream.aclose()
        return receipt.close()
    try:
        while (chunk := await _in_thread(next, stream, None)) is not None:
            stop, commands = receipt.take(chunk)
            for command in commands:
                begin(command)
            if stop:
                break
        await _in_thread(stream.close)
    except BaseException:
        # The thread may still be in the generator: it is closed when that has come back.
        _threads.submit(stream.close)
        raise
    return receipt.close()


async def _in_thread(function: Callable[..., T], /, *args: Any) -> T:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads.pool(), copy_context().run, function, *args)
