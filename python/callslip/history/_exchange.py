"""The exchanges of a run: each reply of the model together with its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from callslip.models._context import estimate, message_tokens
from callslip.models._reply import Message

__all__ = ["Exchange", "HistoryPolicy", "bare"]


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
    _count: Callable[[str], int] = field(default=estimate, repr=False, compare=False, kw_only=True)

    @property
    def characters(self) -> int:
        """The length of the reply and its outcome together, in characters."""
        return len(self.reply["content"]) + len(self.outcome["content"])

    @property
    def tokens(self) -> int:
        """The length of both in tokens: as the model counts them, or else estimated."""
        return message_tokens(self.reply, self._count) + message_tokens(self.outcome, self._count)

    def without_results(self) -> Exchange:
        """Return the exchange without the results that were loaded into its outcome."""
        if self.short is None:
            return self
        return Exchange(self.reply, self.short, _count=self._count)


HistoryPolicy: TypeAlias = Callable[[Sequence[Exchange]], Sequence[Exchange]]
"""A function from all exchanges, oldest first, to those that the model is shown, in the same order,
each as it is or `without_results()`."""


def bare(exchange: Exchange) -> Exchange:
    """Return the exchange without its results, unless that is longer."""
    shorter = exchange.without_results()
    return shorter if shorter.characters < exchange.characters else exchange
