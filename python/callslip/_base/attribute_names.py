"""Errors about attributes that there are not, by the names of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["knows_attributes"]

T = TypeVar("T")


def knows_attributes(elsewhere: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Say for an unknown attribute of a class what to use in its place.

    Type checkers are not told of it, so that they find such attributes themselves.

    Args:
        elsewhere: What to use, by the names of other libraries; several names by a space.
    """
    hints = {name: hint for names, hint in elsewhere.items() for name in names.split()}

    def decorate(kind: type[T]) -> type[T]:
        def missing(self: T, name: str) -> object:
            if hasattr(type(self), name):
                # What its own code has raised.
                return object.__getattribute__(self, name)
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = f"; use {hints[name]}" if name in hints else ""
            raise AttributeError(f"{text}{hint}", name=name, obj=self)

        setattr(kind, "__getattr__", missing)  # noqa: B010
        return kind

    return decorate
