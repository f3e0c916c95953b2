"""The options of a console, checked."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TypeAlias

from starlette.requests import Request

from callslip._base.options import check_called_with
from callslip.errors import UsageError

__all__ = ["Name", "checked_name"]

Name: TypeAlias = Callable[[Request], str | None]
"""Returns the name of the person who makes a request."""


def checked_name(by: object) -> Name | None:
    """Return the function that names people.

    Raises:
        UsageError: It is none, or is async.
    """
    if by is not None and (not callable(by) or iscoroutinefunction(by)):
        raise UsageError(
            f"expected by to be a function of the request: got {by!r}; pass one that is not async "
            "and returns a name"
        )
    if by is not None:
        check_called_with("by", by, "the request")
    return by
