"""History policies: the part of a long conversation that the model is shown.

    Agent(model, history=KeepLast(20))

A policy chooses among the exchanges of a run: each reply of the model together with its outcome.
The prompt, its example and the task are always shown, and the messages of the run never change.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from callslip._failure import is_failure, message_of
from callslip.errors import UsageError
from callslip.models._reply import Message, Messages
from callslip.tools._callable import is_async

__all__ = ["Exchange", "History", "HistoryPolicy", "KeepLast"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A reply of the model and its outcome. Do not change the messages: the run shares them.

    Attributes:
        reply: The message of the model.
        outcome: The message that answers it.
        short: The outcome without the results that were loaded into it; `None` if there are none,
            or only very short ones.
    """

    reply: Message
    outcome: Message
    short: Message | None = None

    @property
    def characters(self) -> int:
        """The length of the reply and its outcome together, in characters."""
        return len(self.reply["content"]) + len(self.outcome["content"])

    def without_results(self) -> Exchange:
        """Return the exchange without the results that were loaded into its outcome."""
        return self if self.short is None else Exchange(self.reply, self.short)


HistoryPolicy: TypeAlias = Callable[[Sequence[Exchange]], Sequence[Exchange]]
"""A function from all exchanges, oldest first, to those that the model is shown, in the same order,
each as it is or `without_results()`."""


@dataclass(frozen=True, slots=True)
class KeepLast:
    """Shows the last exchanges, and leaves out older ones a block at a time.

    A block is half of the exchanges that may be shown. So the messages have the same beginning for
    several turns, and a server with a prompt cache reads only the new ones.

    Args:
        exchanges: The largest number of exchanges, 1 or more.
        characters: The largest length of all of them, 1 or more; `None` (default) for no bound. If
            they are longer, loaded results are left out, oldest first, until half of this length is
            reached, and then whole exchanges. The last exchange is always shown whole.

    Raises:
        UsageError: A number is less than 1.
    """

    exchanges: int
    characters: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name, value in (("exchanges", self.exchanges), ("characters", self.characters)):
            if value is None and name == "characters":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"expected KeepLast({name}=…) to be 1 or more: got {value!r}")

    def __call__(self, exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
        """Return the exchanges that are shown."""
        block = max(1, self.exchanges // 2)
        if self.characters is None:
            surplus = len(exchanges) - self.exchanges
            return exchanges[-(-surplus // block) * block :] if surplus > 0 else exchanges
        # The choice of each turn is repeated, because it must not depend on later exchanges.
        first = bare = length = 0
        for last, one in enumerate(exchanges):
            length += one.characters
            if last - first >= self.exchanges:
                dropped = exchanges[first : first + block]
                length -= sum(_length(one, bare=at < bare) for at, one in enumerate(dropped, first))
                first += block
                bare = max(bare, first)
            if length <= self.characters:
                continue
            while length > self.characters // 2 and bare < last:
                length -= exchanges[bare].characters - _length(exchanges[bare], bare=True)
                bare += 1
            if length <= self.characters:
                continue
            while length > self.characters // 2 and first < last:
                length -= _length(exchanges[first], bare=True)
                first += 1
        if not first and not bare:
            return exchanges
        return [*map(_bare, exchanges[first:bare]), *exchanges[bare:]]


def _bare(exchange: Exchange) -> Exchange:
    """Return the exchange without its results, unless that is longer."""
    shorter = exchange.without_results()
    return shorter if shorter.characters < exchange.characters else exchange


def _length(exchange: Exchange, *, bare: bool) -> int:
    return (_bare(exchange) if bare else exchange).characters


class History:
    """The messages of one run that the model is shown. Each message is read only once.

    Args:
        policy: The policy that chooses the exchanges.
        short: Returns the text of the message at a position without loaded results; `None` if it
            has none, or only very short ones.
        examples: The number of messages of the example, after the prompt.
        tickets: Returns the list of all tickets, if messages end with a list that leaves out the
            tickets of earlier messages (ticket).
    """

    __slots__ = (
        "_exchanges",
        "_head",
        "_opening",
        "_policy",
        "_read",
        "_reply",
        "_short",
        "_tickets",
    )

    def __init__(
        self,
        policy: HistoryPolicy,
        short: Callable[[int], str | None],
        *,
        examples: int = 0,
        tickets: Callable[[], str] | None = None,
    ) -> None:
        self._policy = policy
        self._short = short
        self._tickets = tickets
        self._head = 1 + examples
        self._read = 0
        self._opening: list[Message] = []
        self._exchanges: list[Exchange] = []
        self._reply: Message | None = None

    def choose(self, messages: Messages) -> Messages:
        """Return the messages that the model is shown.

        Args:
            messages: All messages of the run: those of the last call, and later ones.

        Returns:
            The chosen messages; `messages` itself if nothing is left out.

        Raises:
            UsageError: The policy failed, or returned something that it was not passed.
        """
        for position in range(self._read, len(messages)):
            self._take(messages[position], position)
        self._read = len(messages)
        if not self._exchanges:
            return messages
        every = tuple(self._exchanges)
        try:
            kept = self._policy(every)
        except BaseException as error:
            if not is_failure(error):
                raise
            text = f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
            raise UsageError(f"the policy of Agent(history=…) failed: {text}") from error
        if kept is every:
            return messages
        _check(kept, every)
        left_out = len(every) - len(kept)
        if not left_out and all(
            one.outcome is own.outcome for one, own in zip(kept, every, strict=True)
        ):
            return messages
        shown = self._opening_messages(left_out)
        for one in kept:
            shown += (one.reply, one.outcome)
        if self._reply is not None:
            shown.append(self._reply)
        elif left_out and self._tickets is not None:
            # Changes since messages that are not shown must be in the list too.
            shown[-1] = _listing(shown[-1], self._tickets())
        return shown

    def _take(self, message: Message, position: int) -> None:
        if position < self._head:
            self._opening.append(message)
        elif message["role"] == "assistant":
            self._reply = message
        elif self._reply is not None:
            self._exchanges.append(Exchange(self._reply, message, self._short_message(position)))
            self._reply = None
        elif not self._exchanges:
            self._opening.append(message)
        else:
            # The model was asked again before it replied: at a time limit, or after a crash.
            last = self._exchanges[-1]
            short = self._short_message(position)
            if last.short is not None or short is not None:
                short = _join([last.short or last.outcome, short or message])
            outcome = _join([last.outcome, message])
            self._exchanges[-1] = Exchange(last.reply, outcome, short)

    def _short_message(self, position: int) -> Message | None:
        text = self._short(position)
        return None if text is None else {"role": "user", "content": text}

    def _opening_messages(self, left_out: int) -> list[Message]:
        """Return the messages before the first reply, with a note about the exchanges left out."""
        head, asked = self._opening[: self._head], self._opening[self._head :]
        opened = _join(asked)
        if left_out:
            text, ticket_list = opened["content"], ""
            if self._tickets is not None and _LIST in text:
                # The list stays last, as the prompt describes it. JSON contains no such line.
                before, mark, after = text.rpartition(_LIST)
                text, ticket_list = before, mark + after
            opened = {"role": "user", "content": f"{text}\n\n{_note(left_out)}{ticket_list}"}
        return [*head, opened]


_LIST = "\n\nTickets:\n"


def _listing(message: Message, tickets: str) -> Message:
    """Return the message with another list of tickets at its end."""
    before, mark, _ = message["content"].rpartition(_LIST)
    if not mark:
        return message
    return {"role": message["role"], "content": f"{before}{mark}{tickets}"}


def check_policy(policy: object) -> None:
    """Check that an object is a history policy.

    Raises:
        UsageError: It is not.
    """
    got = None
    if inspect.isclass(policy):
        got = f"the class {policy.__name__}"
    elif not callable(policy):
        got = type(policy).__name__
    elif is_async(policy):
        got = "an async function"
    if got is not None:
        raise UsageError(
            "expected history=KeepLast(…), or a function from all exchanges to those that are "
            f"shown: got {got}"
        )


def _check(kept: object, every: Sequence[Exchange]) -> None:
    """Check that a policy has returned some of its exchanges, in the same order."""
    at = len(every)
    # From the end, because most policies choose the last exchanges.
    for one in reversed(kept) if isinstance(kept, Sequence) else (None,):
        if isinstance(one, Exchange):
            at -= 1
            while at >= 0 and every[at].reply is not one.reply:
                at -= 1
            if at >= 0 and (one.outcome is every[at].outcome or one.outcome is every[at].short):
                continue
        raise UsageError(
            "expected the history policy to return exchanges of its argument, in the same order, "
            "each as it is or its without_results(): got something else"
        )


def _join(messages: Sequence[Message]) -> Message:
    if len(messages) == 1:
        return messages[0]
    return {"role": "user", "content": "\n\n".join(one["content"] for one in messages)}


def _note(left_out: int) -> str:
    if left_out == 1:
        return "[1 earlier reply and its outcome are left out here.]"
    return f"[{left_out} earlier replies and their outcomes are left out here.]"
