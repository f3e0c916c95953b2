"""The sync driver: performs a run's commands in the caller's thread.

A sync model and sync tools are called right there. What turns out to be async goes to the one
private event loop; calls beside another one, and calls under a time limit, go to the pool.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from queue import Empty, SimpleQueue
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callslip._core import Command
from callslip._failure import is_cancelled, is_failure
from callslip._runtime.on_loop import End, make_call, receive, work
from callslip._runtime.session import Call, Receipt, Session
from callslip._threads import pool
from callslip.errors import StoreError
from callslip.models._reply import AsyncReplyStream, ModelReply, ReplyStream, open_result

if TYPE_CHECKING:
    from callslip.models._reply import ModelChunk
    from callslip.runs import Run, RunResult
    from callslip.tools import Outcome

__all__ = ["drive"]

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds to wait for runs that were given up. What holds one up is a tool that will not end."""


def drive(session: Session) -> None:
    """Perform the run to its end.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the run is cancelled and kept as its `.run`.
    """
    driver = _Driver(session)
    session.run._drive_by(driver)
    try:
        commands: Sequence[Command] = session.start()
        while True:
            driver.drive(commands)
            driver.clear()
            if session.over():
                return
            commands = ()
    except BaseException as error:
        if not isinstance(error, StoreError):
            session.cancelled()
        driver.abandon()
        driver.clear()
        if isinstance(error, KeyboardInterrupt):
            error.run = session.run  # type: ignore[attr-defined]
        raise


class _DeadlineReached(Exception):  # noqa: N818
    """The run's time is over."""


class _Stopped(Exception):  # noqa: N818
    """The run was ended from outside, while something was waited for."""


class _Driver:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._todo: deque[Command] = deque()
        self._calls: dict[int, tuple[Call | None, Callable[[], object] | None]] = {}
        # The runs of tasks that were given up and may not have ended yet.
        self._ending: list[Future[Any]] = []
        self._ended: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._settle_at: float | None = None
        # What the run's own thread waits for, or does, right now.
        self._awaited: Future[Any] | None = None
        self._reading: Future[Any] | None = None
        self._inline: Call | None = None

    def give(self, make: Callable[[float], list[Command]]) -> bool:
        """Take what somebody else gives in, from any thread. Returns whether it was taken."""
        commands = self._session.given(make)
        if commands is None:
            return False
        self._ended.put(lambda: self._todo.extend(self._session.told(commands)))
        if not self._session.core.finished:
            return True
        if (inline := self._inline) is not None:
            inline.cancelled = True
        if (awaited := self._awaited) is not None:
            awaited.cancel()
        return True

    def here(self, function: Callable[[], T]) -> Future[T]:
        """Have the run's own thread call a function, once it waits for nothing but calls."""
        future: Future[T] = Future()

        def call() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
                if not isinstance(error, Exception):
                    raise

        self._ended.put(call)
        return future

    def result(self) -> Awaitable[RunResult]:
        """Return what is to be awaited for the end of the run."""
        return End(self._session.outcome())

    def drive(self, commands: Sequence[Command]) -> None:
        """Perform commands until the run is over."""
        self._todo.extend(commands)
        while not self._session.core.finished:
            deadline = self._session.core.deadline
            try:
                if self._todo:
                    command = self._todo.popleft()
                    self._written()
                    if self._session.is_due(command):
                        self._perform(command)
                else:
                    self._wait()
            except _DeadlineReached:
                self._todo.extend(self._session.timed_out(deadline))
            except _Stopped:
                self._take_ended()
        self._written()
        self._take_ended()
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

    def clear(self) -> None:
        """Wait until the runs that were given up have ended: none survives its parent."""
        if self._ending:
            wait(self._ending, _PATIENCE)

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
            case Command.StartRun():
                self._begin(command)
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
        ended()

    def _ask(self) -> Sequence[Command]:
        gate = self._session.model.gate
        if gate is None:
            return self._asked()
        try:
            hold = gate.held_sync(self._session.root, self._session.remaining())
            with hold:
                return self._asked()
        except TimeoutError:
            if hold.inside:
                raise
            raise _DeadlineReached from None

    def _asked(self) -> Sequence[Command]:
        session = self._session
        self._settle_at = None
        turn = session.core.counts[0]
        try:
            if session.core.deadline is not None and not session.model.is_async:
                result = self._in_thread(session.ask)
            else:
                result = session.ask()
            awaited = hasattr(result, "__await__")
            if awaited:
                result = self._result(pool.on_loop(_coroutine(result)))
            reply = open_result(result, awaited=awaited)
            if isinstance(reply, ModelReply):
                self._take_ended()
                if not session.is_asked(turn):
                    # The run has ended meanwhile, or goes on with another question.
                    return ()
                return session.reply(reply.text, reply.finish_reason, reply.usage, reply.reasoning)
            return self._receive(reply)
        except (_DeadlineReached, _Stopped):
            raise
        except BaseException as error:  # whatever a client raises ends the run
            if not is_failure(error):
                raise
            return session.failed(error) if session.is_asked(turn) else ()

    def _take_ended(self) -> None:
        """What ended while the model was writing comes before its reply."""
        while not self._ended.empty():
            self._ended.get()()

    def _receive(self, stream: ReplyStream | AsyncReplyStream) -> Sequence[Command]:
        if isinstance(stream, AsyncReplyStream):
            self._take_ended()
            return self._result(pool.on_loop(receive(self._session, stream, self._begin)))
        receipt = Receipt(self._session)
        is_bounded = self._session.core.deadline is not None
        try:
            chunks = self._chunks(stream) if is_bounded else stream
            for chunk in chunks:
                stop, commands = receipt.take(chunk)
                for command in commands:
                    self._begin(command)
                if stop:
                    break
        except _DeadlineReached:
            # It may stall at its end too.
            pool.close_soon(stream, self._reading)
            raise
        except BaseException:
            stream.close()
            raise
        if is_bounded:
            self._in_thread(stream.close)
        else:
            stream.close()
        self._take_ended()
        return receipt.close()

    def _chunks(self, stream: ReplyStream) -> Iterator[ModelChunk]:
        """Read a stream in other threads, no longer than the run may take."""
        while True:
            self._reading = pool.submit_next(stream, self._session.model.gate)
            chunk = self._result(self._reading)
            if chunk is None:
                return
            yield chunk
            if self._session.remaining() == 0.0:
                raise _DeadlineReached

    def _in_thread(self, function: Callable[[], T]) -> T:
        gate = self._session.model.gate
        if gate is None:
            return self._result(pool.submit(function))
        return self._result(pool.submit_inside(gate, function))

    def _call(self, command: Command.CallTool) -> Sequence[Command]:
        """Make a call that nothing stands beside, in this thread."""
        session = self._session
        call = self._inline = Call(session, command.ticket)
        try:
            tool, context = session.tool(command, call)
            if tool.is_async or tool.gate is not None:
                outcome = self._result(_on_loop(session, command, call))
            else:
                outcome = tool.call(command.arguments, context)
                if hasattr(outcome, "__await__"):
                    outcome = self._result(pool.on_loop(_coroutine(outcome)))
        except _Stopped:
            return ()
        except BaseException as error:
            if not is_cancelled(error):
                call.cancelled = True
                raise
            outcome = session.cancelled_inside(command)
        finally:
            self._inline = None
            call.end()
        return session.completed(command.ticket, outcome)

    def _begin(self, command: Command) -> None:
        """Make a call, or start the run of a task, beside what else is going on."""
        if isinstance(command, Command.StartRun):
            self._begin_run(command)
            return
        if not isinstance(command, Command.CallTool):
            self._todo.append(command)
            return
        self._written()
        session, ticket = self._session, command.ticket
        if not session.is_due(command):
            return
        call = Call(session, ticket)
        tool, context = session.tool(command, call)
        future: Future[pool.Ended[Outcome]]
        if tool.is_async or tool.gate is not None:
            future = _on_loop(session, command, call)
        else:
            future = pool.submit(_finish_call, tool.call, command.arguments, context)
        call.leave()
        self._calls[ticket] = (call, future.cancel)

        def ended(done: Future[pool.Ended[Outcome]]) -> None:
            call.over = True
            self._ended.put(lambda: self._take(command, done))

        future.add_done_callback(ended)

    def _begin_run(self, command: Command.StartRun) -> None:
        """Start the run of a task on the private loop, where it never holds a thread."""
        self._written()
        if not self._session.is_due(command):
            return
        future, cancel = pool.to_end_on_loop(work(self._session, command))

        def give_up() -> None:
            self._ending.append(future)
            cancel()

        self._calls[command.ticket] = (None, give_up)
        future.add_done_callback(
            lambda done: self._ended.put(lambda: self._take_run(command, done))
        )

    def _take(self, command: Command.CallTool, call: Future[pool.Ended[Outcome]]) -> None:
        if self._calls.pop(command.ticket, None) is None:
            return
        try:
            outcome = call.result().get()
        except BaseException as error:
            if not is_cancelled(error):
                raise
            outcome = self._session.cancelled_inside(command)
        self._todo.extend(self._session.completed(command.ticket, outcome))

    def _take_run(
        self,
        command: Command.StartRun,
        working: Future[pool.Ended[tuple[Outcome, Run | None]]],
    ) -> None:
        if self._calls.pop(command.ticket, None) is None:
            return
        run = None
        try:
            outcome, run = working.result().get()
        except BaseException as error:
            if not is_cancelled(error):
                raise
            # Something in it has cancelled the task that it works in.
            outcome = self._session.cancelled_inside(command)
        self._todo.extend(self._session.run_ended(command.ticket, outcome, run))

    def _give_up(self, ticket: int) -> None:
        call, cancel = self._calls.pop(ticket, (None, None))
        if call is not None:
            call.cancelled = True
        if cancel is not None:
            cancel()

    def _result(self, future: Future[pool.Ended[T]]) -> T:
        """Wait for something in another thread, no longer than the run may take."""
        self._awaited = future
        if self._session.core.finished:
            # It was ended from outside in this very moment.
            future.cancel()
        try:
            ended = future.result(self._session.remaining())
        except FutureTimeoutError:
            future.cancel()
            raise _DeadlineReached from None
        except FutureCancelledError:
            raise _Stopped from None
        except BaseException:
            future.cancel()
            raise
        finally:
            self._awaited = None
        return ended.get()


def _on_loop(
    session: Session, command: Command.CallTool, call: Call
) -> Future[pool.Ended[Outcome]]:
    return pool.on_loop(make_call(session, command, call))


def _coroutine(awaitable: Any) -> Coroutine[Any, Any, Any]:
    """A coroutine as it is: one that is given up before it begins can be closed."""
    return awaitable if isinstance(awaitable, CoroutineType) else _awaited(awaitable)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _finish_call(call: Callable[..., Any], *args: Any) -> Outcome:
    """Call a tool in the pool; what turns out to be async is waited for there."""
    outcome = call(*args)
    if hasattr(outcome, "__await__"):
        outcome = pool.on_loop(_coroutine(outcome)).result().get()
    return cast("Outcome", outcome)
