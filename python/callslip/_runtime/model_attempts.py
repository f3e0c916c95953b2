"""The attempts at one reply in a run, as the wrappers of its model decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip._base.failure import one_line
from callslip._runtime.streamed_reply import StreamedReply
from callslip.errors import CallslipError, ModelError
from callslip.models._attempt import report_reply

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.models._rates import Reservation

__all__ = ["ModelAttempts"]


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
        self._skipped: set[tuple[str, str]] = set()
        self._begin()

    def _begin(self) -> None:
        self._attempts = self._session.model.attempts()
        self.attempt = next(self._attempts)
        self._log_skipped()
        self.reply = StreamedReply(self._session, self._turn, self.attempt)

    def _log_skipped(self) -> None:
        """Record the models that were not asked."""
        session = self._session
        for name, words in self.attempt.skipped:
            if (name, words) not in self._skipped:
                self._skipped.add((name, words))
                session.publish_events(
                    session.core.attempt_failed(name, words, 0.0, None, session.now())
                )

    def succeed(self) -> None:
        """Record that the attempt has led to a reply."""
        report_reply(self._attempts)

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
        if failure is None:
            self._log_skipped()
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
