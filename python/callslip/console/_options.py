"""The options of a console, checked."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from ipaddress import ip_address
from typing import TypeAlias

from starlette.requests import Request

from callslip._base.options import check_called_with
from callslip.errors import UsageError

__all__ = [
    "Name",
    "checked_name",
    "checked_place",
    "is_loopback",
]

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


def checked_place(host: object, port: object) -> None:
    """Check where a server is to listen.

    Raises:
        UsageError: It is no host, or no port.
    """
    if not isinstance(host, str) or not host:
        raise UsageError(f"expected host to be an address: got {host!r}; pass one, or none")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65_536:
        raise UsageError(f"expected port to be a number below 65536: got {port!r}; pass 0 for any")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
