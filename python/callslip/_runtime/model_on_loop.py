"""How the async driver asks the model: on the caller's own event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from types import CoroutineType
from typing import TYPE_CHECKING, Any, cast

from callslip._base import _lazy
from callslip._threads import pool
from callslip.models._direct import in_time
from callslip.models._reply import AsyncReplyStream, ReplyStream

if TYPE_CHECKING:
    from concurrent.futures import Future
    from contextvars import Context as ContextVariables

    from callslip._core import Command
    from callslip._runtime.cancel_scope import CancelScope
    from callslip._runtime.session import RunSession
    from callslip._runtime.shown_history import ShownHistory
    from callslip._runtime.streamed_reply import StreamedReply
    from callslip._threads.gate import Gate
    from callslip.models._attempt import Attempt
    from callslip.models._reply import ModelChunk

__all__ = ["LoopRequester", "read_stream"]


class LoopRequester:
    """Asks the model in a task. As `Requester`.

    Args:
        session: The session of the run.
        scope: The scope of the request: a reply that comes after its cancellation is not read.
        start_call: Starts a call that may start before the reply is complete, in a context.
    """

    __slots__ = ("_outside", "_scope", "_session", "_start_call")

    def __init__(
        self, session: RunSession, scope: CancelScope, start_call: Callable[..., object]
    ) -> None:
        self._session = session
        self._scope = scope
        self._start_call = start_call
        self._outside: ContextVariables | None = None

    async def make_room(self, shown: ShownHistory) -> None:
        """Leave out what does not fit. As `Requester.make_room`."""
        await shown.make_room(self._session)

    async def send(self, attempt: Attempt | None) -> tuple[object, bool]:
        """Send a request. As `Requester.send`."""
        if attempt is not None:
            return await in_time(attempt.timeout, self._send(attempt))
        session = self._session
        send = session.requests.send
        result = send() if session.model.is_async else await pool.in_thread(send)
        if type(result) is CoroutineType or hasattr(result, "__await__"):
            return await cast("Awaitable[object]", result), True
        return result, False

    async def _send(self, attempt: Attempt) -> tuple[object, bool]:
        send = self._session.requests.send
        if attempt.call.is_async:
            result = send(attempt.call)
        elif attempt.gate is None:
            result = await pool.in_thread(send, attempt.call)
        else:
            result = await pool.result_of(pool.submit_inside(attempt.gate, send, attempt.call))
        if not hasattr(result, "__await__"):
            return result, False
        return await cast("Awaitable[Any]", result), True

    async def read_stream(
        self, stream: ReplyStream | AsyncReplyStream, reply: StreamedReply, attempt: Attempt | None
    ) -> Sequence[Command]:
        """Read a streamed reply into the run. As `Requester.read_stream`."""
        return await read_stream(self._session, stream, self._start, reply, attempt)

    def _start(self, early: Command) -> object:
        # A call that starts early does not belong to the model's call.
        context = None if self._outside is None else self._outside.copy()
        return self._start_call(early, context)

    async def sleep(self, seconds: float) -> None:
        """Wait between two requests."""
        await _lazy.asyncio.sleep(seconds)

    def hold(self, gate: Gate) -> AbstractAsyncContextManager[None]:
        """Return a context in which the run has a slot of a gate."""
        self._outside = copy_context()
        return gate.held(self._session.root)

    def is_wanted(self) -> bool:
        """Whether a reply that has come is to be read."""
        return not self._scope.cancel_called

    def is_failure(self, error: BaseException) -> bool:
        """Whether the model has failed. Once its request is cancelled, it may raise anything."""
        return not self._scope.cancel_called and not self._scope.is_for_task(error)


async def read_stream(
    session: RunSession,
    stream: ReplyStream | AsyncReplyStream,
    start_call: Callable[[Command], object],
    reply: StreamedReply,
    attempt: Attempt | None,
) -> Sequence[Command]:
    """Read a streamed reply into the run.

    Args:
        session: The session of the run.
        stream: The stream.
        start_call: Starts a call that may start before the reply is complete.
        reply: The reply.
        attempt: The attempt that it belongs to; `None` for a model without wrappers.

    Returns:
        The commands that follow from the reply.
    """
    seconds = None if attempt is None else attempt.timeout
    gate = None if attempt is None else attempt.gate
    reading = None
    try:
        while True:
            if isinstance(stream, ReplyStream):
                reading = pool.submit_next(stream, gate)
                following: Awaitable[ModelChunk | None] = pool.result_of(reading)
            else:
                following = anext(stream, None)
            chunk = await _next_chunk(following, seconds, reply)
            if chunk is None:
                break
            stop, commands = reply.push(chunk)
            for command in commands:
                start_call(command)
            if stop:
                break
            # A slow reader must not hold up other runs that wait for the same model.
            if (feed := session.run._feed) is not None and gate is None:
                await feed.backpressure()
    except BaseException:
        await _give_up(stream, reading)
        raise
    if isinstance(stream, AsyncReplyStream):
        await stream.aclose()
    else:
        await pool.in_thread(stream.close)
    return reply.close(broke=stream.broke)


async def _next_chunk(
    following: Awaitable[ModelChunk | None], seconds: float | None, reply: StreamedReply
) -> ModelChunk | None:
    try:
        return await in_time(seconds, following)
    except Exception:
        if not reply.is_complete:
            raise
        return None


async def _give_up(stream: ReplyStream | AsyncReplyStream, reading: Future[Any] | None) -> None:
    if isinstance(stream, AsyncReplyStream):
        await stream.aclose()
    else:
        pool.close_soon(stream, reading)
