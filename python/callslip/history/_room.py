"""Room in the context of a model: the part of a run that is left out so that the rest fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from callslip.history._exchange import Exchange, bare
from callslip.history._history import Cut, Transcript, note
from callslip.history._summary import Summarize
from callslip.models._context import TokenCounter, message_tokens
from callslip.models._reply import Message, Messages

__all__ = ["Plan", "Room", "reply_room"]

_HIGH = 0.4
"""The share of the context, after the prompt and the task, that exchanges may take. Each turn sends
them again: a higher share costs more tokens in every turn."""
_SMALL = 2_400
"""Tokens that exchanges may take in any context that holds them."""
_LOW = 0.1
"""The share that is left of it. What is left out at once is not left out in the next turns, in
which the messages have the same beginning."""
_REPLY = 1_024
"""Tokens that are left for the reply, but no more than a quarter of the context."""
_RECENT = 2
"""Exchanges that stay whole as long as they fit the context at all."""


_LEAST = 256
"""Bytes of a result that are shown however little room there is."""
_MARK = 200
"""Bytes that a cut saves at least: its mark, which says how to read on, is nearly as long."""
_CUT = 0.5
"""The share of the room that is left to results that do not fit it even alone. An earlier exchange
fits beside them."""
_WORTHWHILE = 2
"""A summary takes the place of one in so many tokens of the exchanges, or more."""


def reply_room(context: int, reply: int | None) -> int:
    """Return the tokens of a context that are left for the reply.

    Args:
        context: The tokens of the context.
        reply: The tokens that a reply may have; `None` if that is not known.
    """
    return min(_REPLY if reply is None else reply, context // 4)


@dataclass(frozen=True, slots=True)
class Plan:
    """A longer cut.

    Attributes:
        cut: The cut.
        summarized: The exchanges of which a summary takes the place.
        result_bytes: The bytes of one result that are shown in the last message, and later; `None`
            if its results fit.
    """

    cut: Cut
    summarized: tuple[Exchange, ...] = ()
    result_bytes: int | None = None


class Room:
    """Decides about the exchanges of one run that are left out.

    Args:
        transcript: The messages of the run.
        count: Counts tokens.
        context: The tokens of the context; `None` if that is not known.
        longest: Returns the bytes that the last message shows of its longest result; 0 if nothing
            of it can be cut.
        reply: The tokens that a reply may have; `None` if that is not known.
        summarize: The policy for summaries; `None` for none.
    """

    __slots__ = ("_bound", "_context", "_count", "_longest", "_reply", "_summarize", "_transcript")

    def __init__(
        self,
        transcript: Transcript,
        count: TokenCounter,
        *,
        context: int | None,
        longest: Callable[[], int],
        reply: int | None = None,
        summarize: Summarize | None = None,
    ) -> None:
        self._longest = longest
        self._transcript = transcript
        self._count = count
        self._context = context
        self._reply = reply
        self._summarize = summarize
        # No less than the tokens of all that is shown.
        self._bound = 0

    def forget(self) -> None:
        """Count all messages again: the results of the last one were cut."""
        self._transcript.forget()
        self._bound = 0

    def is_ample(self, messages: Messages) -> bool:
        """Whether nothing is to be left out, as far as that is seen without counting.

        Args:
            messages: All messages of the run.
        """
        fresh = self._transcript.read(messages)
        self._bound += sum(message_tokens(one, self._count.at_most) for one in fresh)
        return not self._transcript.exchanges or self._bound <= self._at_least()

    def plan(
        self, messages: Messages, cut: Cut, said_at: int, *, is_full: bool = False
    ) -> Plan | None:
        """Return a longer cut; `None` if none is needed, or there is none.

        Args:
            messages: All messages of the run.
            cut: The cut so far.
            said_at: The position of the message with the user's last words; 0 for the task.
            is_full: Whether the model has refused what is shown, because it is too long.
        """
        transcript = self._transcript
        is_ample = self.is_ample(messages)
        if not transcript.exchanges or (is_ample and not is_full):
            return None
        pinned = transcript.exchange_of(said_at)
        opening = self._tokens(transcript.opened(note(1, cut.summary)))
        total = self._bound = opening + self._length(cut, pinned)
        if is_full:
            self._context = total if self._context is None else min(self._context, total)
        elif (plan := self._summary(cut, total - opening, opening)) is not None:
            return plan
        if self._context is None:
            return None
        most = self._most()
        # A prompt that leaves no room is refused by the model.
        room = max(most - opening, 0)
        if total > most and (result_bytes := self._result_bytes(room)) is not None:
            return Plan(cut, result_bytes=result_bytes)
        high = most
        if self._summarize is None or is_full:
            # Where the last ones are that long, something would be left out in every turn.
            last = sum(one.tokens for one in transcript.exchanges[-_RECENT:])
            high = opening + min(max(self._share(opening), 2 * last), room)
        if total <= high:
            return None
        left = _Left(transcript.exchanges, cut, pinned, total)
        left.shorten(high, opening + int(room * _LOW), most)
        longer = replace(cut, exchanges=left.exchanges, results=left.results)
        return None if longer == cut else Plan(longer)

    def _result_bytes(self, room: int) -> int | None:
        """Return how many bytes of a result the last message may show to fit, with room to spare.

        Args:
            room: The tokens after the prompt and the task.

        Returns:
            The number; `None` if the message fits, or would be hardly shorter.
        """
        last = self._transcript.exchanges[-1]
        longest = self._longest() if last.tokens > room else 0
        if longest < _LEAST + _MARK:
            return None
        surplus = last.tokens - room * _CUT
        kept = 1 - surplus / message_tokens(last.outcome, self._count)
        return max(_LEAST, min(int(longest * kept), longest - _MARK))

    def _at_least(self) -> int:
        """Return a number of tokens up to which nothing is left out."""
        bounds = [] if self._summarize is None else [self._summarize.after]
        if self._context is not None:
            bounds.append(int(self._most() * _HIGH))
        return min(bounds, default=self._bound)

    def _most(self) -> int:
        """Return the tokens that the messages may have, so that there is room for a reply."""
        assert self._context is not None
        return self._context - reply_room(self._context, self._reply)

    def _share(self, opening: int) -> int:
        """Return the tokens that exchanges may take after the prompt and the task."""
        room = max(self._most() - opening, 0)
        return max(int(room * _HIGH), min(room, _SMALL))

    def _summary(self, cut: Cut, length: int, opening: int) -> Plan | None:
        summarize, exchanges = self._summarize, self._transcript.exchanges
        if summarize is None:
            return None
        after = summarize.after
        if self._context is not None:
            after = min(after, self._share(opening))
        first = len(exchanges) - summarize.keep
        if length <= after or first <= cut.exchanges:
            return None
        longer = Cut(first, max(first, cut.results), cut.summary)
        # The last ones may be so long that there would be a summary in every turn.
        if (length - self._length(longer, None)) * _WORTHWHILE < length:
            return None
        return Plan(longer, tuple(exchanges[cut.exchanges : first]))

    def _length(self, cut: Cut, pinned: int | None) -> int:
        """Return the tokens of the exchanges that are shown."""
        tokens = 0
        for position, one in enumerate(self._transcript.exchanges):
            if position >= cut.exchanges or position == pinned:
                tokens += (bare(one) if position < cut.results else one).tokens
        reply = self._transcript.reply
        return tokens + (self._tokens([reply]) if reply is not None else 0)

    def _tokens(self, messages: list[Message]) -> int:
        return sum(message_tokens(one, self._count) for one in messages)


class _Left:
    """The exchanges that are left while a cut becomes longer.

    Attributes:
        exchanges: As of `Cut`.
        results: As of `Cut`.
    """

    def __init__(
        self,
        every: list[Exchange],
        cut: Cut,
        pinned: int | None,
        total: int,
    ) -> None:
        self._every = every
        self._pinned = pinned
        self._total = total
        self.exchanges = cut.exchanges
        self.results = cut.results

    def shorten(self, high: int, low: int, most: int) -> None:
        """Leave out results, and then exchanges, until `low` is reached; the last ones for `most`.

        The results of the last exchange stay: the model has just asked for them.

        Args:
            high: The tokens above which something is left out.
            low: The tokens down to which it is left out.
            most: The tokens that the model can read.
        """
        last = len(self._every) - 1
        recent = max(last + 1 - _RECENT, 0)
        self._leave_results(low, recent)
        if self._total > (low + high) / 2:
            self._leave_out(low, recent)
        self._leave_results(most, last)
        self._leave_out(most, last)

    def _leave_results(self, to: int, end: int) -> None:
        for at in range(self.results, end):
            if self._total <= to:
                break
            one = self._every[at]
            if one.short is not None:
                self._total -= one.tokens - bare(one).tokens
                self.results = at + 1

    def _leave_out(self, to: int, end: int) -> None:
        while self._total > to and self.exchanges < end:
            at = self.exchanges
            one = self._every[at]
            shown = bare(one) if at < self.results else one
            if at != self._pinned:
                self._total -= shown.tokens
            elif shown is one:
                self._total -= one.tokens - bare(one).tokens
            self.exchanges += 1
            self.results = max(self.results, self.exchanges)
