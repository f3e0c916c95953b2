"""A model whose replies have a cost."""

from __future__ import annotations

from dataclasses import replace

from callslip.errors import UsageError
from callslip.models._attempt import Attempt, Attempts
from callslip.models._prices import FixedPrices, KnownPrices, Prices
from callslip.models._wrapper import Wrapper

__all__ = ["Priced"]


class Priced(Wrapper):
    """A model whose replies have a cost, computed from the tokens that its client reports.

    The cost is added to `Usage.cost`, where `Limits(cost=…)` counts it, and replaces a cost that
    the client itself reports. Failed attempts whose usage is reported count too.

    Without prices, those of the package genai-prices (extra `prices`) are taken, in US dollars, by
    the name of the model. They are as new as the installed package: nothing is fetched.

    Args:
        model: Any model that reports its usage.
        input: Price of a million input tokens, in any currency.
        output: Price of a million output tokens.
        cached: Price of a million of those input tokens that came from the service's cache.
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
