"""How the sync driver asks the model: in the caller's thread, or in the pool in limited time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from callslip._base.failure import is_failure
from callslip._runtime.model_on_loop import read_stream
from callslip._runtime.stops import DeadlineReached
from callslip._threads import pool
from callslip.models._reply import AsyncReplyStream, ReplyStream

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession
    from callslip._runtime.shown_history import ShownHistory
    from callslip._runtime.streamed_reply import StreamedReply
    from callslip._threads.gate import Gate
    from callslip.models._attempt import Attempt
    from callslip.models._reply import ModelChunk

__all__ = ["ThreadRequester", "Waiter", "run_here"]

T = TypeVar("T")


class Waiter(Protocol):
    """What the requests need of the sync driver."""

    def wait_for_thread(self, future: Future[pool.Result[T]], timeout: float | None = None) -> T:
        """Wait for another thread, until the deadline of the run at most."""

    def wait_until_written(self) -> None:
        """Wait until the log is written down."""

    def handle_arrived(self) -> None:
        """Handle what came meanwhile."""

    def start(self, command: Command) -> None:
        """Call a tool or start a child run, without waiting for it."""


class ThreadRequester:
    """Asks the model in the thread of the driver. As `Requester`.

    Args:
        session: The session of the run.
        turn: The turn that is asked in.
        waiter: The driver.
    """

    __slots__ = ("_reading", "_session", "_turn", "_waiter")

    def __init__(self, session: RunSession, turn: int, waiter: Waiter) -> None:
        self._session = session
        self._turn = turn
        self._waiter = waiter
        self._reading: Future[Any] | None = None

    async def make_room(self, shown: ShownHistory) -> None:
        """Leave out what does not fit. As `Requester.make_room`."""
        if shown.make_room_sync(self._session, self._wait_on_loop):
            self._waiter.wait_until_written()

    def _wait_on_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._waiter.wait_for_thread(pool.on_loop(coroutine))

    async def send(self, attempt: Attempt | None) -> tuple[object, bool]:
        """Send a request. As `Requester.send`."""
        session = self._session
        send, call = session.requests.send, session.model if attempt is None else attempt.call
        if self._is_bounded(attempt) and not call.is_async:
            result = self._in_thread(attempt, send, call)
        else:
            result = send(call)
        if not hasattr(result, "__await__"):
            return result, False
        future = pool.on_loop(pool.coroutine_of(result))
        return self._waiter.wait_for_thread(future, _timeout(attempt)), True

    def _is_bounded(self, attempt: Attempt | None) -> bool:
        """Whether a request that takes too long is given up."""
        return self._session.core.deadline is not None or _timeout(attempt) is not None

    def _in_thread(self, attempt: Attempt | None, function: Callable[..., T], *args: Any) -> T:
        if attempt is None or attempt.gate is None:
            future = pool.submit(function, *args)
        else:
            future = pool.submit_inside(attempt.gate, function, *args)
        return self._waiter.wait_for_thread(future, _timeout(attempt))

    async def sleep(self, seconds: float) -> None:
        """Wait between two requests, until the deadline or the end of the run at most."""
        if seconds:
            with suppress(TimeoutError):
                self._waiter.wait_for_thread(Future(), seconds)

    def hold(self, gate: Gate) -> AbstractAsyncContextManager[None]:
        """Return a context in which the run has a slot of a gate."""
        return self._hold(gate)

    @asynccontextmanager
    async def _hold(self, gate: Gate) -> AsyncGenerator[None]:
        session, is_inside = self._session, False
        try:
            with gate.held_sync(session.root, session.remaining()):
                is_inside = True
                yield
        except TimeoutError:
            if is_inside:
                raise
            raise DeadlineReached from None

    def is_wanted(self) -> bool:
        """Whether a reply is to be read. Calls that ended while the model was asked precede it."""
        self._waiter.handle_arrived()
        return self._session.is_current_turn(self._turn)

    def is_failure(self, error: BaseException) -> bool:
        """Whether the model has failed."""
        return is_failure(error)

    async def read_stream(
        self, stream: ReplyStream | AsyncReplyStream, reply: StreamedReply, attempt: Attempt | None
    ) -> Sequence[Command]:
        """Read a streamed reply into the run. As `Requester.read_stream`."""
        waiter, session = self._waiter, self._session
        if isinstance(stream, AsyncReplyStream):
            waiter.handle_arrived()
            return self._wait_on_loop(read_stream(session, stream, waiter.start, reply, attempt))
        is_bounded = self._is_bounded(attempt)
        try:
            while (chunk := self._next_chunk(stream, reply, attempt)) is not None:
                stop, commands = reply.push(chunk)
                for command in commands:
                    waiter.start(command)
                if stop:
                    break
                if session.remaining() == 0.0:
                    raise DeadlineReached  # noqa: TRY301  # the stream is closed below
        except BaseException:
            if is_bounded:
                # Closing the stream may stall too.
                pool.close_soon(stream, self._reading)
            else:
                stream.close()
            raise
        if is_bounded:
            self._in_thread(attempt, stream.close)
        else:
            stream.close()
        waiter.handle_arrived()
        return reply.close(broke=stream.broke)

    def _next_chunk(
        self, stream: ReplyStream, reply: StreamedReply, attempt: Attempt | None
    ) -> ModelChunk | None:
        """Read a chunk, in a thread of the pool if that must not take too long."""
        try:
            if not self._is_bounded(attempt):
                return next(stream, None)
            self._reading = pool.submit_next(stream, None if attempt is None else attempt.gate)
            return self._waiter.wait_for_thread(self._reading, _timeout(attempt))
        except Exception:
            if not reply.is_complete:
                raise
            return None


def _timeout(attempt: Attempt | None) -> float | None:
    return None if attempt is None else attempt.timeout


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("expected a step that waits in its thread: got one that suspends")
