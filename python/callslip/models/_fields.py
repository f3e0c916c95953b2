"""Fields of a client's objects, or of dicts with the same JSON."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["field", "first_field", "has_field"]


def field(item: object, name: str) -> object:
    """Return the field of this name; `None` if there is none."""
    if isinstance(item, Mapping):
        return item.get(name)
    return getattr(item, name, None)


def has_field(item: object, name: str) -> bool:
    """Whether there is a field of this name, even if it is `None`."""
    return name in item if isinstance(item, Mapping) else hasattr(item, name)


def first_field(item: object, *names: str) -> object:
    """Return the first of these fields that is not `None`."""
    for name in names:
        value = field(item, name)
        if value is not None:
            return value
    return None
