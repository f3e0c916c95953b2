"""The sync driver: performs a run's commands in the caller's thread.

A sync model and sync tools are called right there. What turns out to be async goes to the one
private event loop; calls beside another one, and calls under a time limit, go to the pool.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callslip import _threads
from callslip._core import Command
from callslip._session import Call, Receipt, Session, cancelled_inside
from callslip.errors import StoreError
from callslip.models._reply import AsyncReplyStream, ModelReply, ReplyStream, open_result

if TYPE_CHECKING:
    from callslip.tools import Outcome

__all__ = ["drive"]

T = TypeVar("T")


def drive(session: Session) -> None:
    """Perform the run to its end.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the run is cancelled and kept as its `.run`.
    """
    driver = _Driver(session)
    try:
        driver.drive(session.start())
    except BaseException as error:
        if not isinstance(error, StoreError):
            session.cancelled()
        driver.abandon()
        if isinstance(error, KeyboardInterrupt):
            error.run = session.run  # type: ignore[attr-defined]
        raise


class _DeadlineReached(Exception):  # noqa: N818
    """The run's time is over."""


class _Driver:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._todo: deque[Command] = deque()
        self._calls: dict[int, Future[Any]] = {}
        self._ended: SimpleQueue[tuple[int, str, Future[Outcome]]] = SimpleQueue()
        self._settle_at: float | None = None

    def drive(self, commands: Sequence[Command]) -> None:
        """Perform commands until the run is over."""
        self._todo.extend(commands)
        while not self._session.core.finished:
            deadline = self._session.core.deadline
            try:
                if self._todo:
                    self._written()
                    self._perform(self._todo.popleft())
                else:
                    self._wait()
            except _DeadlineReached:
                self._todo.extend(self._session.timed_out(deadline))
        self._written()
        for command in self._todo:
            if isinstance(command, Command.Cancel):
                self._give_up(command.ticket)

    def _written(self) -> None:
        """What has happened is written down before anything is done about it."""
        if self._session.commits is not None:
            self._session.commits.wait(self._session.core.position)

    def abandon(self) -> None:
        """Give up all calls under way."""
        for ticket in list(self._calls):
            self._give_up(ticket)

    def _perform(self, command: Command) -> None:
        match command:
            case Command.AskModel():
                self._todo.extend(self._ask())
            case Command.CallTool():
                # The next thing to do decides: a call that nothing stands beside needs no thread.
                if self._todo or self._calls or self._session.core.deadline is not None:
                    self._begin(command)
                else:
                    self._todo.extend(self._call(command))
            case Command.Settle():
                self._settle_at = time.perf_counter() + self._session.grace
            case Command.Cancel(ticket=ticket):
                self._give_up(ticket)

    def _wait(self) -> None:
        """Wait for a call to end, the grace to pass or the deadline to come."""
        until = [self._session.remaining()]
        if self._settle_at is not None:
            until.append(self._settle_at - time.perf_counter())
        bounds = [max(0.0, seconds) for seconds in until if seconds is not None]
        try:
            ended = self._ended.get(timeout=min(bounds) if bounds else None)
        except Empty:
            if self._settle_at is not None and time.perf_counter() >= self._settle_at:
                self._settle_at = None
                self._todo.extend(self._session.settled())
            elif self._session.remaining() == 0.0:
                raise _DeadlineReached from None
            return
        self._take(*ended)

    def _take(self, ticket: int, tool: str, call: Future[Outcome]) -> None:
        if self._calls.pop(ticket, None) is None:
            return
        try:
            outcome = call.result()
        except BaseException as error:
            if not _is_cancelled(error):
                raise
            outcome = cancelled_inside(tool)
        self._todo.extend(self._session.completed(ticket, outcome))

    def _ask(self) -> Sequence[Command]:
        session = self._session
        self._settle_at = None
        try:
            if session.core.deadline is not None and not session.model.is_async:
                result = self._result(_threads.submit(session.ask))
            else:
                result = session.ask()
            awaited = hasattr(result, "__await__")
            if awaited:
                result = self._result(_threads.on_loop(_awaited(result)))
            reply = open_result(result, awaited=awaited)
            if isinstance(reply, ModelReply):
                self._take_ended()
                return session.reply(reply.text, reply.finish_reason, reply.usage)
            return self._receive(reply)
        except _DeadlineReached:
            raise
        except BaseException as error:  # whatever a client raises ends the run
            if not isinstance(error, Exception) and not _is_cancelled(error):
                raise
            return session.failed(error)

    def _take_ended(self) -> None:
        """What ended while the model was writing comes before its reply."""
        while not self._ended.empty():
            self._take(*self._ended.get())

    def _receive(self, stream: ReplyStream | AsyncReplyStream) -> Sequence[Command]:
        if isinstance(stream, AsyncReplyStream):
            from callslip._drive import receive

            self._take_ended()
            return self._result(_threads.on_loop(receive(self._session, stream, self._begin)))
        receipt = Receipt(self._session)
        try:
            for chunk in stream:
                stop, commands = receipt.take(chunk)
                for command in commands:
                    self._begin(command)
                if stop:
                    break
                if self._session.remaining() == 0.0:
                    raise _DeadlineReached
        finally:
            stream.close()
        self._take_ended()
        return receipt.close()

    def _call(self, command: Command.CallTool) -> Sequence[Command]:
        session = self._session
        tool, context = session.tool(command)
        call = Call(session.run.id, command.ticket)
        try:
            if tool.is_async:
                outcome = self._result(_threads.on_loop(tool.acall(command.arguments, context)))
            else:
                outcome = tool.call(command.arguments, context)
                if hasattr(outcome, "__await__"):
                    outcome = self._result(_threads.on_loop(_awaited(outcome)))
        except BaseException as error:
            if not _is_cancelled(error):
                raise
            outcome = cancelled_inside(command.tool)
        finally:
            call.end()
        return session.completed(command.ticket, outcome)

    def _begin(self, command: Command) -> None:
        """Make a call beside what else is going on."""
        if not isinstance(command, Command.CallTool):
            self._todo.append(command)
            return
        self._written()
        session, ticket = self._session, command.ticket
        tool, context = session.tool(command)
        call = Call(session.run.id, ticket)
        future: Future[Outcome]
        if tool.is_async:
            future = _threads.on_loop(tool.acall(command.arguments, context))
        else:
            future = _threads.submit(_finish_call, tool.call, command.arguments, context)
        call.leave()
        self._calls[ticket] = future

        def ended(done: Future[Outcome]) -> None:
            call.over = True
            self._ended.put((ticket, command.tool, done))

        future.add_done_callback(ended)

    def _give_up(self, ticket: int) -> None:
        call = self._calls.pop(ticket, None)
        if call is not None:
            call.cancel()

    def _result(self, future: Future[T]) -> T:
        """Wait for something in another thread, no longer than the run may take."""
        try:
            return future.result(self._session.remaining())
        except FutureTimeoutError:
            if future.done():
                raise
            future.cancel()
            raise _DeadlineReached from None
        except BaseException:
            future.cancel()
            raise


def _is_cancelled(error: BaseException) -> bool:
    """Whether something inside a call or a model was cancelled; nobody cancels this driver so."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _finish_call(call: Callable[..., Any], *args: Any) -> Outcome:
    """Call a tool in the pool; what turns out to be async is waited for there."""
    outcome = call(*args)
    if hasattr(outcome, "__await__"):
        outcome = _threads.on_loop(_awaited(outcome)).result()
    return cast("Outcome", outcome)
