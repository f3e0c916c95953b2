"""Checks of options that the type checker sees and a notebook does not."""

from __future__ import annotations

__all__ = ["check_one_of"]


def check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise `ValueError` where an option is none of the words it may be."""
    if value not in allowed:
        expected = " or ".join(repr(word) for word in allowed)
        raise ValueError(f"expected {name}={expected}: got {value!r}")
