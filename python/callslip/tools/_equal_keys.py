"""Keys of JSON objects that differ as text and are one key as values of their type."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["check_keys"]


def check_keys(value: Any, made: Any) -> None:
    """Check that no entry of an object was lost when JSON became a value.

    `dict[int, str]` keeps one of `"1"` and `"01"`, and a number too large for a float is infinite.

    Args:
        value: The JSON value.
        made: What pydantic made of it.

    Raises:
        ValueError: Keys became equal, or one became infinite.
    """
    if isinstance(value, list):
        if isinstance(made, (list, tuple)):
            for part, made_part in zip(value, made, strict=False):
                check_keys(part, made_part)
        return
    if not isinstance(value, dict):
        return
    if not isinstance(made, Mapping):
        fields = getattr(made, "__dict__", {})
        for name in value.keys() & fields.keys():
            check_keys(value[name], fields[name])
        return
    _check_mapping(value, made)
    if len(value) == len(made):
        for part, made_part in zip(value.values(), made.values(), strict=True):
            check_keys(part, made_part)


def _check_mapping(value: dict[str, Any], made: Mapping[Any, Any]) -> None:
    if any(isinstance(key, float) and not math.isfinite(key) for key in made):
        message = "expected finite numbers as keys"
        raise ValueError(f"{message}: got {_listed(value)}")
    if len(made) >= len(value):
        return
    # A `TypedDict` may leave out names that it doesn't know.
    kept = {key.strip().casefold() for key in made if isinstance(key, str)}
    lost = [key for key in value if key not in made]
    if len(kept) < len(made) or any(key.strip().casefold() in kept for key in lost):
        message = "expected each key once"
        raise ValueError(f"{message}: got keys that are equal, {_listed(value)}")


def _listed(keys: Mapping[str, Any]) -> str:
    return ", ".join(json.dumps(key, ensure_ascii=False) for key in keys)
