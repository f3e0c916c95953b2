"""Costs computed from token usage."""

from __future__ import annotations

from dataclasses import replace

from callslip._base.option_names import knows_names_of_class
from callslip.errors import UsageError
from callslip.models._attempt import Attempt, Attempts
from callslip.models._prices import FixedPrices, KnownPrices, Prices
from callslip.models._wrapper import Wrapper

__all__ = ["Priced"]


@knows_names_of_class({"input_price": "input=…", "output_price": "output=…"})
class Priced(Wrapper):
    """Adds a cost to the replies of a model, computed from the tokens that its client reports.

    The cost is added to `Usage.cost`, counts towards `Limits(cost=…)`, and replaces a cost reported
    by the client. Failed attempts count too if they report usage.

    Without prices, the model's prices, in US dollars, come from the installed package genai-prices
    (extra `prices`); nothing is downloaded.

    Args:
        model: Any model that reports its usage.
        input: Price of a million input tokens, in any currency.
        output: Price of a million output tokens.
        cached: Price of a million input tokens that came from the service's cache.
            Default: as `input`.

    Raises:
        UsageError: The model cannot be called, a price is missing or negative, or the prices of the
            model are not known.
    """

    def __init__(
        self,
        model: object,
        *,
        input: float | None = None,  # noqa: A002  # as services call it
        output: float | None = None,
        cached: float | None = None,
    ) -> None:
        super().__init__(model)
        self._prices = self._find_prices(input, output, cached)

    def _find_prices(self, given: float | None, made: float | None, cached: float | None) -> Prices:
        if given is not None and made is not None:
            return FixedPrices(given, made, given if cached is None else cached)
        if (given, made, cached) != (None, None, None):
            raise UsageError(
                "expected prices of input and output tokens: got one of them: pass "
                "Priced(model, input=…, output=…)"
            )
        prices = KnownPrices()
        for leaf in self._leaves():
            prices.check(leaf.name)
        return prices

    def _attempts(self, attempt: Attempt) -> Attempts:
        """Yield the attempts of the model, with prices."""
        return self._calls[0].attempts(replace(attempt, prices=self._prices))

    def __repr__(self) -> str:
        return f"Priced({self._inner!r}, {self._prices!r})"
