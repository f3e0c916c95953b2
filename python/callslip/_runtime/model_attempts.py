"""Attempts at one reply in a run: the part that both drivers share, and that of the async one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, cast

from callslip import _lazy
from callslip._failure import one_line
from callslip._runtime.on_loop import read_stream
from callslip._runtime.streamed_reply import StreamedReply
from callslip._threads import pool
from callslip.errors import CallslipError, ModelError
from callslip.models._direct import in_time
from callslip.models._reply import ModelReply, open_result

if TYPE_CHECKING:
    from contextvars import Context as ContextVariables

    from callslip._core import Command
    from callslip._runtime.cancel_scope import CancelScope
    from callslip._runtime.session import RunSession
    from callslip.models._rates import Reservation

__all__ = ["ModelAttempts", "ask"]


class ModelAttempts:
    """The attempts at the reply of one turn, as the wrappers of the model decide.

    Attributes:
        attempt: The attempt to make now.
        reply: Its reply.
    """

    def __init__(self, session: RunSession, turn: int) -> None:
        self._session = session
        self._turn = turn
        self._reservation: Reservation | None = None
        self._begin()

    def _begin(self) -> None:
        self._attempts = self._session.model.attempts()
        self.attempt = next(self._attempts)
        self.reply = StreamedReply(self._session, self._turn, self.attempt)

    def restart(self) -> None:
        """Begin again with the first attempt: the messages have changed."""
        self.close()
        self._begin()

    def reserve(self) -> float:
        """Take the share of the attempt from the rates. Returns the seconds to wait before it."""
        rates = self.attempt.rates
        if rates is None:
            return 0.0
        messages = self._session.requests.shown_messages()
        characters = sum(len(message["content"]) for message in messages)
        self._reservation = rates.reserve(characters)
        return self._reservation.wait

    def give_back(self) -> None:
        """Return the share of an attempt that is not made."""
        if self.attempt.rates is not None and self._reservation is not None:
            self.attempt.rates.give_back(self._reservation)
        self._reservation = None

    def fail(self, error: Exception) -> Exception | None:
        """Record the failure of the attempt, and continue with the next one.

        Returns:
            The exception that ends the run; `None` if there is a next attempt.
        """
        session = self._session
        is_own = isinstance(error, CallslipError) and not isinstance(error, ModelError)
        if is_own or session.core.unwritten or not self.attempt.is_retried:
            return error
        self._settle()
        if self.reply.counts is None:
            self.reply.add_usage(getattr(error, "_usage", None))
        failed, usage = self.attempt, self.reply.core_usage()
        wait = None
        failure: Exception | None = error
        # Nothing that was executed is done again.
        if not session.core.has_early_calls:
            try:
                self.attempt = self._attempts.throw(error)
            except Exception as last:  # noqa: BLE001  # it is reported
                failure = last
            else:
                wait, failure = self.attempt.wait, None
        words = session.requests.failure_words(error)
        session.publish_events(
            session.core.attempt_failed(
                failed.call.name, one_line(words), wait, usage, session.now()
            )
        )
        self.reply = StreamedReply(session, self._turn, self.attempt)
        return failure

    def close(self) -> None:
        """End the attempts."""
        self._settle()
        self._attempts.close()

    def _settle(self) -> None:
        rates, reservation = self.attempt.rates, self._reservation
        self._reservation = None
        counts = self.reply.counts
        if rates is not None and reservation is not None and counts is not None:
            names = ("input_tokens", "output_tokens")
            rates.settle(reservation, sum(counts.get(name) or 0 for name in names))


async def ask(
    session: RunSession, turn: int, scope: CancelScope, start_call: Callable[..., object]
) -> Sequence[Command]:
    """Make attempts until there is a reply, and read it into the run.

    Args:
        session: The session of the run.
        turn: The turn that is asked in.
        scope: The scope of the request: a reply that comes after its cancellation is not read.
        start_call: Starts a call that may start before the reply is complete, in a context.

    Returns:
        The commands that follow from the reply.

    Raises:
        Exception: That of the last attempt.
    """
    attempts = ModelAttempts(session, turn)
    try:
        while True:
            try:
                return await _attempt(session, attempts, scope, start_call)
            except Exception as error:
                if scope.cancel_called or not session.is_current_turn(turn):
                    raise
                failure = attempts.fail(error)
                if failure is not None:
                    raise failure from failure.__cause__
            await _lazy.asyncio.sleep(attempts.attempt.wait)
    finally:
        attempts.close()


async def _attempt(
    session: RunSession,
    attempts: ModelAttempts,
    scope: CancelScope,
    start_call: Callable[..., object],
) -> Sequence[Command]:
    gate = attempts.attempt.gate
    if gate is None:
        return await _request(session, attempts, scope, start_call)
    # A call that starts early does not belong to the model's call.
    outside: ContextVariables = copy_context()
    async with gate.held(session.root):
        return await _request(
            session, attempts, scope, lambda early: start_call(early, outside.copy())
        )


async def _request(
    session: RunSession,
    attempts: ModelAttempts,
    scope: CancelScope,
    start_call: Callable[[Command], object],
) -> Sequence[Command]:
    attempt, reply = attempts.attempt, attempts.reply
    seconds = attempts.reserve()
    if seconds:
        try:
            await _lazy.asyncio.sleep(seconds)
        except BaseException:
            attempts.give_back()
            raise
    result, awaited = await in_time(attempt.timeout, _send(session, attempts))
    opened = open_result(result, awaited=awaited)
    if not isinstance(opened, ModelReply):
        return await read_stream(session, opened, start_call, reply, attempt)
    return () if scope.cancel_called else reply.read(opened)


async def _send(session: RunSession, attempts: ModelAttempts) -> tuple[object, bool]:
    """Call the model. Returns its result, and whether it was an awaitable."""
    attempt = attempts.attempt
    if attempt.call.is_async:
        result = session.requests.send(attempt.call)
    elif attempt.gate is None:
        result = await pool.in_thread(session.requests.send, attempt.call)
    else:
        inside = pool.submit_inside(attempt.gate, session.requests.send, attempt.call)
        result = await pool.result_of(inside)
    if not hasattr(result, "__await__"):
        return result, False
    return await cast("Awaitable[Any]", result), True
