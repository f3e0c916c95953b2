"""Replies, whole or streamed chunk by chunk, on their way into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from callslip._core import Delta, note_certainty
from callslip._runtime.reported_usage import core_usage, reported_counts
from callslip.models._direct import broken_off, check_text_came
from callslip.models._envelope import EnvelopePieces

if TYPE_CHECKING:
    from callslip import _core
    from callslip._core import Command
    from callslip._runtime.session import RunSession
    from callslip.models._attempt import Attempt
    from callslip.models._reply import ModelChunk, ModelReply

__all__ = ["StreamedReply"]

_SURPLUS = 8
"""Chunks without text that are read after the end of a move."""


class StreamedReply:
    """One reply on its way into the run.

    Args:
        session: The session of the run.
        turn: The turn that it was asked in.
        attempt: The attempt that the reply belongs to; `None` for a model without wrappers.
    """

    __slots__ = (
        "_attempt",
        "_envelope",
        "_finish_reason",
        "_first_at",
        "_has_text",
        "_is_read_on",
        "_session",
        "_surplus",
        "_turn",
        "_usage",
    )

    def __init__(self, session: RunSession, turn: int, attempt: Attempt | None = None) -> None:
        self._session = session
        self._attempt = attempt
        self._envelope = EnvelopePieces() if session.takes_calls else None
        self._turn = turn
        self._finish_reason: str | None = None
        self._usage: dict[str, float] | None = None
        self._surplus: int | None = None
        self._has_text = False
        self._first_at: float | None = None
        # Usage comes at the end of a stream, and what is limited must be counted.
        self._is_read_on: bool | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the move of the reply is there, so that a failure after it does not matter."""
        return self._surplus is not None

    @property
    def counts(self) -> Mapping[str, float] | None:
        """The usage that was reported so far, with its cost; `None` if there was none."""
        attempt, counts = self._attempt, self._usage
        if counts is None or attempt is None or attempt.prices is None:
            return counts
        return attempt.prices.add_cost(attempt.call.name, counts)

    def read(self, reply: ModelReply) -> list[Command]:
        """Read a whole reply. Returns the commands that follow from it.

        Raises:
            ModelError: It is empty, and the attempt is followed by another one.
        """
        if self._attempt is None:
            return self._session.read_reply(reply, self._turn)
        self.add_usage(reply.usage)
        if self._attempt.is_retried and self._envelope is None:
            check_text_came(reply.text, reply.finish_reason)
        counted = replace(reply, usage=self.counts)
        return self._session.read_reply(counted, self._turn, self._other_model())

    def push(self, chunk: ModelChunk) -> tuple[bool, Sequence[Command]]:
        """Read a chunk. Returns whether to stop the stream, and calls that may start now.

        If a reply ends by itself at the end of its move, the finish reason and the usage come in
        the next chunks. So the stream is only stopped when more text comes. If tokens or cost are
        limited, it is read to its end.
        """
        if chunk.finish_reason is not None:
            self._finish_reason = chunk.finish_reason
        if chunk.certainty is not None and self._session.is_current_turn(self._turn):
            note_certainty(self._session.core, chunk.certainty)
        self.add_usage(chunk.usage)
        if self._surplus is not None:
            self._surplus += 1
            is_over = bool(chunk.text) or self._surplus > _SURPLUS
            return is_over and not self._must_read_on(), ()
        session = self._session
        text = chunk.text if self._envelope is None else self._envelope.add(chunk)
        if self._first_at is None and (text or chunk.reasoning):
            self._first_at = session.now()
        feed = session.run._feed
        if chunk.reasoning and feed is not None and session.is_current_turn(self._turn):
            feed.on_delta(Delta.Reasoning(chunk.reasoning, self._turn))
        if not text:
            return False, ()
        if not session.is_current_turn(self._turn):
            # Meanwhile the run has ended, or is in another turn.
            return True, ()
        self._has_text = self._has_text or not text.isspace()
        return False, self._push(text)

    def _push(self, text: str) -> list[Command]:
        """Read more of the text. Returns calls that may start now."""
        session, feed = self._session, self._session.run._feed
        deltas, stop, commands = session.core.push(text, self._turn, session.now())
        if feed is not None:
            for delta in deltas:
                feed.on_delta(delta)
        if stop:
            self._surplus = 0
        return session.publish_events(commands)

    def close(self, *, broke: bool = False) -> list[Command]:
        """End the reply, complete or stopped. Returns the commands that follow from it.

        Args:
            broke: Whether the stream broke off.

        Raises:
            ModelError: It broke off or is empty, and the attempt is followed by another one.
        """
        session = self._session
        if not session.is_current_turn(self._turn):
            return []
        is_retried = self._attempt is not None and self._attempt.is_retried
        if is_retried and not self.is_complete and not session.core.has_early_calls:
            if broke:
                raise broken_off()
            check_text_came("text" if self._has_text else "", self._finish_reason)
        early: list[Command] = []
        if self._envelope is not None and self._surplus is None:
            rest = self._envelope.end(is_cut=self._finish_reason == "length")
            early = self._push(rest) if rest else []
        return early + session.publish_events(
            session.core.end_reply(
                self._turn,
                self._finish_reason,
                self.core_usage(),
                session.now(),
                first_at=self._first_at,
                model=self._other_model(),
            )
        )

    def add_usage(self, usage: object) -> None:
        """Record usage. A client may report it in parts."""
        if usage is not None:
            self._usage = {**(self._usage or {}), **reported_counts(usage)}

    def core_usage(self) -> _core.Usage | None:
        """Return the usage as the core takes it."""
        counts = self.counts
        return None if counts is None else core_usage(counts)

    def _other_model(self) -> tuple[str, str | None] | None:
        """Return the name of the model and of its provider, if it is not the one asked first."""
        model = self._session.model
        if self._attempt is None or self._attempt.call in (model, model.leaves()[0]):
            return None
        return self._attempt.call.name, self._attempt.call.known_name[1]

    def _must_read_on(self) -> bool:
        if self._is_read_on is None:
            self._is_read_on = self._session.core.limits_usage
        return self._is_read_on
