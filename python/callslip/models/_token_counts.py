"""Token counts and costs of a reply, from the fields of each client."""

from __future__ import annotations

import math
from collections.abc import Mapping

from callslip._base.options import shown
from callslip._base.usage import Usage
from callslip.errors import UsageError
from callslip.models._fields import field

__all__ = ["check_counts", "read_usage"]


def read_usage(usage: object) -> dict[str, float] | None:
    """Return a client's counts as `input_tokens`, `output_tokens`, `cached_tokens` and `cost`.

    `input_tokens` counts the whole input, the cached part included, whatever the client means by
    the word; OpenRouter reports `cost`. Missing counts are left out; `None` if there are none.
    """
    if usage is None:
        return None
    # Cohere counts what it bills beside what the model has read.
    tokens = field(usage, "tokens")
    counted = usage if tokens is None or isinstance(tokens, int) else tokens
    total, cached = _input_of(counted)
    if cached is None:
        cached = _first(usage, "cached_tokens")
    cost = field(usage, "cost")
    counts: dict[str, float | None] = {
        "input_tokens": total,
        "output_tokens": _output_of(counted),
        "cached_tokens": cached,
        "cost": cost if isinstance(cost, (int, float)) else None,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    return known or None


def check_counts(usage: object) -> None:
    """Check the counts that a program's own model passes. Those of clients may be anything.

    Raises:
        UsageError: A count is no number, or is no whole number of tokens.
    """
    if not isinstance(usage, (Mapping, Usage)):
        return
    for name in _COUNTS:
        count = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, (int, float)):
            raise UsageError(f"expected {name} of usage as a number: got {shown(count)}; {_HINT}")
        if name != "cost" and math.isfinite(count) and count % 1:
            raise UsageError(
                f"expected {name} of usage as a whole number of tokens: got {count}; {_HINT}"
            )


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cost")
_HINT = "pass usage={'input_tokens': 12, 'output_tokens': 3, 'cost': 0.01}, or no usage"


def _input_of(usage: object) -> tuple[int | None, int | None]:
    """Return the tokens of the input, and the cached ones among them."""
    # LiteLLM reports OpenAI's totals with Anthropic's parts beside them: the totals go first.
    total = _first(usage, "prompt_tokens", "prompt_token_count", "promptTokenCount")
    if total is not None:
        details = _first(field(usage, "prompt_tokens_details"), "cached_tokens")
        names = ("cached_content_token_count", "cachedContentTokenCount", "prompt_cache_hit_tokens")
        return total, _first(usage, *names) if details is None else details
    total = _first(usage, "prompt_eval_count")
    if total is not None:
        return total, None
    read = _first(usage, "cache_read_input_tokens", "cacheReadInputTokens")
    total = _first(usage, "input_tokens", "inputTokens")
    if total is not None:
        # Anthropic and Bedrock count the three parts of the input apart.
        written = _first(usage, "cache_creation_input_tokens", "cacheWriteInputTokens")
        total += (read or 0) + (written or 0)
    for cached in (
        read,
        _first(field(usage, "input_tokens_details"), "cached_tokens"),
        _first(field(usage, "input_token_details"), "cache_read"),
    ):
        if cached is not None:
            return total, cached
    return total, None


def _output_of(usage: object) -> int | None:
    made = _first(usage, "candidates_token_count", "candidatesTokenCount")
    thought = _first(usage, "thoughts_token_count", "thoughtsTokenCount")
    if made is not None or thought is not None:
        return (made or 0) + (thought or 0)
    return _first(
        usage,
        "completion_tokens",
        "output_tokens",
        "outputTokens",
        "eval_count",
        "generated_tokens",
        "generation_tokens",
    )


def _first(item: object, *names: str) -> int | None:
    for name in names:
        value = field(item, name)
        # Cohere counts in floats.
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
