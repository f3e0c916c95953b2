"""Prices of tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from callslip._base import _lazy
from callslip._base.options import check_number
from callslip.errors import UsageError

__all__ = ["FixedPrices", "KnownPrices", "Prices"]


class Prices(ABC):
    """Computes the cost of replies."""

    def add_cost(self, model: str, counts: Mapping[str, float]) -> Mapping[str, float]:
        """Return the counts of a reply with its `cost`, which replaces a reported one.

        Args:
            model: The name of the model.
            counts: `input_tokens`, `output_tokens` and `cached_tokens`, those that are known.
        """
        tokens = [_amount(counts.get(f"{name}_tokens")) for name in ("input", "output", "cached")]
        if not any(tokens):
            return counts
        return {**counts, "cost": self._cost(model, *tokens)}

    @abstractmethod
    def _cost(self, model: str, given: float, made: float, cached: float) -> float:
        """Return the cost of input tokens (the cached ones included) and output tokens."""


@dataclass(frozen=True, slots=True)
class FixedPrices(Prices):
    """Prices of a million tokens. `cached` is that of input tokens from the cache.

    Raises:
        UsageError: A price is not a number from 0.
    """

    input: float
    output: float
    cached: float

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            check_number(f"Priced({name}=…)", getattr(self, name))

    def _cost(self, _: str, given: float, made: float, cached: float) -> float:
        cached = min(cached, given)
        cost = (given - cached) * self.input + cached * self.cached + made * self.output
        return cost / 1_000_000


class KnownPrices(Prices):
    """The prices of genai-prices, in US dollars. They are those of its installed version.

    Raises:
        UsageError: genai-prices is not installed.
    """

    def __init__(self) -> None:
        try:
            _lazy.genai_prices  # noqa: B018  # imports it
        except ImportError:
            raise UsageError(
                "expected prices, Priced(model, input=…, output=…): got none; pass them, or use "
                'those of genai-prices: pip install "callslip[prices]"'
            ) from None

    def check(self, model: str) -> None:
        """Check that the prices of a model are known.

        Raises:
            UsageError: They are not.
        """
        try:
            self._cost(model, 1, 1, 0)
        except LookupError:
            raise UsageError(
                f"expected a model of known prices: got {model!r}; pass its prices, "
                "Priced(model, input=…, output=…)"
            ) from None

    def _cost(self, model: str, given: float, made: float, cached: float) -> float:
        usage = _lazy.genai_prices.Usage(
            input_tokens=int(given),
            output_tokens=int(made),
            cache_read_tokens=int(min(cached, given)),
        )
        return float(_lazy.genai_prices.calc_price(usage, model_ref=model).total_price)


def _amount(count: float | None) -> float:
    # NaN, infinity and negative numbers are not amounts.
    return count if count is not None and 0 <= count < 1e18 else 0
