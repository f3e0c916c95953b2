"""The fields of a client's objects, and of the dicts of their JSON, which are read alike."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["field", "first_field"]


def field(item: object, name: str) -> object:
    """The field of that name; `None` where there is none."""
    if isinstance(item, Mapping):
        return item.get(name)
    return getattr(item, name, None)


def first_field(item: object, *names: str) -> object:
    """The first of these fields that is not `None`."""
    for name in names:
        value = field(item, name)
        if value is not None:
            return value
    return None
