"""The model step of both drivers: ask until there is a reply, and read that into the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from callslip._runtime.model_attempts import ModelAttempts
from callslip._runtime.streamed_reply import StreamedReply
from callslip.models._reply import AsyncReplyStream, ModelReply, ReplyStream, open_result

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession
    from callslip._runtime.shown_history import ShownHistory
    from callslip._threads.gate import Gate
    from callslip.models._attempt import Attempt

__all__ = ["Requester", "ask"]


class Requester(Protocol):
    """How a driver asks the model. Those of the sync driver wait, and never suspend."""

    async def make_room(self, shown: ShownHistory) -> None:
        """Leave out what does not fit the context of the model, before it is asked."""

    async def send(self, attempt: Attempt | None) -> tuple[object, bool]:
        """Send a request.

        Args:
            attempt: The attempt; `None` for a model without wrappers.

        Returns:
            What the client has returned, and whether it was awaited.

        Raises:
            BaseException: The client failed.
        """

    async def read_stream(
        self, stream: ReplyStream | AsyncReplyStream, reply: StreamedReply, attempt: Attempt | None
    ) -> Sequence[Command]:
        """Read a streamed reply into the run. Returns the commands that follow from it."""

    async def sleep(self, seconds: float) -> None:
        """Wait between two requests."""

    def hold(self, gate: Gate) -> AbstractAsyncContextManager[None]:
        """Return a context in which the run has a slot of a gate."""

    def is_wanted(self) -> bool:
        """Whether a reply that has come is to be read: the run may have ended meanwhile."""

    def is_failure(self, error: BaseException) -> bool:
        """Whether the model has failed with an exception, which is not meant for the driver."""


async def ask(session: RunSession, turn: int, requester: Requester) -> Sequence[Command]:
    """Ask the model until there is a reply or no further attempt, and tell the run.

    Args:
        session: The session of the run.
        turn: The turn that is asked in.
        requester: How the driver asks.

    Returns:
        The commands that follow.

    Raises:
        BaseException: The model did not fail, but the driver is to stop, the store has failed, or
            the program's own history policy.
    """
    agent = session.agent
    if agent._ends_at_call and (enough := agent._refuses_next(session.run)) is not None:
        return session.model_failed(enough, turn)
    if (failure := await _make_room(session, requester)) is not None:
        return session.model_failed(failure, turn)
    attempts = ModelAttempts(session, turn) if session.model.is_wrapped else None
    try:
        while True:
            try:
                if attempts is None:
                    return await _request(session, turn, requester)
                commands = await _attempt(attempts, requester)
                attempts.succeed()
                return commands  # noqa: TRY300
            except BaseException as error:
                if not requester.is_failure(error):
                    raise
                failure = _end_attempt(session, turn, attempts, error)
                if failure is not None:
                    return session.model_failed(failure, turn)
            if attempts is not None:
                await requester.sleep(attempts.attempt.wait)
    finally:
        if attempts is not None:
            attempts.close()


async def _make_room(session: RunSession, requester: Requester) -> BaseException | None:
    """Leave out what does not fit the context of the model. Returns what has failed."""
    shown = session.requests.shown
    if shown is None or shown.is_ample:
        return None
    try:
        await requester.make_room(shown)
    except BaseException as error:
        if not requester.is_failure(error):
            raise
        return error
    return None


def _end_attempt(
    session: RunSession, turn: int, attempts: ModelAttempts | None, error: BaseException
) -> BaseException | None:
    """Find out how to continue after a failure. Returns what ends the turn; `None` to ask again."""
    if not session.is_current_turn(turn):
        return error
    failure: BaseException | None = error
    if attempts is not None and isinstance(error, Exception):
        failure = attempts.fail(error)
    if failure is None or not session.requests.shorten_after(session, failure):
        return failure
    if attempts is not None:
        attempts.restart()
    return None


async def _request(session: RunSession, turn: int, requester: Requester) -> Sequence[Command]:
    """Ask a model without wrappers."""
    result, awaited = await requester.send(None)
    if type(result) is str:
        # Most replies take this way, which costs least.
        return session.read_text(result, turn) if requester.is_wanted() else ()
    opened = open_result(result, awaited=awaited)
    if isinstance(opened, ModelReply):
        return session.read_reply(opened, turn) if requester.is_wanted() else ()
    return await requester.read_stream(opened, StreamedReply(session, turn), None)


async def _attempt(attempts: ModelAttempts, requester: Requester) -> Sequence[Command]:
    gate = attempts.attempt.gate
    if gate is None:
        return await _request_in_time(attempts, requester)
    async with requester.hold(gate):
        return await _request_in_time(attempts, requester)


async def _request_in_time(attempts: ModelAttempts, requester: Requester) -> Sequence[Command]:
    seconds = attempts.reserve()
    if seconds:
        try:
            await requester.sleep(seconds)
        except BaseException:
            attempts.give_back()
            raise
    result, awaited = await requester.send(attempts.attempt)
    opened = open_result(result, awaited=awaited)
    if isinstance(opened, ModelReply):
        return attempts.reply.read(opened) if requester.is_wanted() else ()
    return await requester.read_stream(opened, attempts.reply, attempts.attempt)
