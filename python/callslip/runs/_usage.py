"""What the replies of runs cost."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run's replies cost, as the model client reports it.

    Attributes:
        input_tokens: Tokens of the messages.
        output_tokens: Tokens of the replies.
        cached_tokens: Those of the input that came from the client's cache.
        cost: In the client's own currency; 0.0 where it does not say.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float

    def __add__(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost + other.cost,
        )
