"""The usage of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip._base.attribute_names import knows_attributes

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Usage"]


_ELSEWHERE = {
    "prompt_tokens request_tokens": "usage.input_tokens",
    "completion_tokens response_tokens": "usage.output_tokens",
    "cache_read_tokens cached_input_tokens": "usage.cached_tokens",
    "tokens total total_tokens": "usage.input_tokens + usage.output_tokens",
    "price total_cost": "usage.cost",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a run's replies, as the model client reports it.

    Attributes:
        input_tokens: Tokens of the messages.
        output_tokens: Tokens of the replies.
        cached_tokens: Input tokens that came from the client's cache.
        cost: The cost in the client's own currency; 0.0 if the client does not report it.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float

    @classmethod
    def _from_core(cls, usage: _core.Usage) -> Usage:
        return cls(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost)

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both usages."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost + other.cost,
        )
