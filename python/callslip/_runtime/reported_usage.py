"""The usage that a model client reports, as the core takes it."""

from __future__ import annotations

from collections.abc import Mapping

from callslip import _core
from callslip.errors import ModelError
from callslip.models._token_counts import read_usage

__all__ = ["core_usage", "reported_counts"]


def reported_counts(usage: object) -> Mapping[str, float]:
    """Return the counts in a mapping, a `Usage` or a client's own object.

    Raises:
        ModelError: There are no counts in it.
    """
    counts = read_usage(usage)
    if counts is not None or isinstance(usage, Mapping):
        return counts or {}
    raise ModelError(
        "expected the usage of a reply as a Usage or a mapping with input_tokens and "
        f"output_tokens: got {usage!r}"
    )


def core_usage(counts: Mapping[str, float]) -> _core.Usage:
    """Return the counts with those that are missing or no amounts as 0."""
    cost = counts.get("cost")
    return _core.Usage(
        int(_amount(counts.get("input_tokens"))),
        int(_amount(counts.get("output_tokens"))),
        int(_amount(counts.get("cached_tokens"))),
        None if cost is None else float(_amount(cost)),
    )


def _amount(reported: float | None) -> float:
    # NaN, infinity and negative numbers are not amounts.
    return reported if reported is not None and 0 <= reported < 1e18 else 0
