"""The policy that shows the last exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_whole
from callslip.errors import UsageError
from callslip.history._exchange import Exchange, bare

__all__ = ["KeepLast"]


@knows_names_of_class(
    {
        "last": "exchanges=…",
        "max_messages": "exchanges=…",
        "messages": "exchanges=…",
        "n": "exchanges=…",
    }
)
@dataclass(frozen=True, slots=True)
class KeepLast:
    """Keeps the last exchanges, and drops older ones a block at a time.

    Each trim drops half of the limit, so the prefix of the messages stays stable for several turns,
    and a server with a prompt cache processes only the new messages.

    Pass at least one limit. If the exchanges exceed `characters` or `tokens`, loaded results are
    dropped, oldest first, until half of the limit is reached, and then whole exchanges. The last
    exchange is always kept whole. The prompt and the task are not counted.

    Args:
        exchanges: The largest number of exchanges, 1 or more; `None` (default) for no limit.
        characters: The largest total length, 1 or more; `None` (default) for no limit.
        tokens: The same in tokens: counted by the model (`count_tokens`), or estimated as one token
            for three bytes of text. `None` (default) for no limit.

    Raises:
        UsageError: A number is less than 1, or there is none.
    """

    exchanges: int | None = None
    characters: int | None = field(default=None, kw_only=True)
    tokens: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        bounds = {name: getattr(self, name) for name in ("exchanges", "characters", "tokens")}
        for name, value in bounds.items():
            check_whole(f"KeepLast({name}=…)", value, 1, none="no bound")
        if not any(bounds.values()):
            raise UsageError("expected a bound: got KeepLast(): pass KeepLast(20) or tokens=8_000")

    def __call__(self, exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
        """Return the exchanges that are shown."""
        if self.characters is None and self.tokens is None:
            assert self.exchanges is not None
            block = max(1, self.exchanges // 2)
            surplus = len(exchanges) - self.exchanges
            return exchanges[-(-surplus // block) * block :] if surplus > 0 else exchanges
        return self._choose_by_length(exchanges)

    def _choose_by_length(self, exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
        # The choice of each turn is repeated, because it must not depend on later exchanges.
        shown = _Shown(exchanges, self.characters, self.tokens)
        most = self.exchanges
        for last in range(len(exchanges)):
            shown.add()
            if most is not None and last - shown.first >= most:
                shown.leave_out(shown.first + max(1, most // 2))
            if shown.are_within(1):
                continue
            while not shown.are_within(2) and shown.bare < last:
                shown.leave_results()
            if shown.are_within(1):
                continue
            while not shown.are_within(2) and shown.first < last:
                shown.leave_out(shown.first + 1)
        first, without = shown.first, shown.bare
        if not first and not without:
            return exchanges
        return [*map(bare, exchanges[first:without]), *exchanges[without:]]


class _Shown:
    """The exchanges that are shown, and their length in each unit that is bounded.

    Attributes:
        first: The position of the first one.
        bare: The position of the first one with results.
    """

    __slots__ = ("_every", "_lengths", "_units", "bare", "end", "first")

    def __init__(
        self, every: Sequence[Exchange], characters: int | None, tokens: int | None
    ) -> None:
        units = (("characters", characters), ("tokens", tokens))
        self._units = [(attrgetter(name), most) for name, most in units if most is not None]
        self._lengths = [0] * len(self._units)
        self._every = every
        self.first = self.bare = self.end = 0

    def are_within(self, part: int) -> bool:
        """Whether no length is above its bound, divided by a number."""
        return all(
            length <= most // part
            for length, (_, most) in zip(self._lengths, self._units, strict=True)
        )

    def add(self) -> None:
        """Show the next exchange."""
        self._change(self._every[self.end], 1)
        self.end += 1

    def leave_results(self) -> None:
        """Leave the results out of the next exchange."""
        whole = self._every[self.bare]
        self._change(whole, -1)
        self._change(bare(whole), 1)
        self.bare += 1

    def leave_out(self, first: int) -> None:
        """Leave out all exchanges before a position."""
        for position in range(self.first, first):
            one = self._every[position]
            self._change(bare(one) if position < self.bare else one, -1)
        self.first = first
        self.bare = max(self.bare, first)

    def _change(self, exchange: Exchange, sign: int) -> None:
        for position, (length, _) in enumerate(self._units):
            self._lengths[position] += sign * length(exchange)
