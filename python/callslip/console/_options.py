"""The options of a console, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from inspect import iscoroutinefunction
from ipaddress import ip_address
from typing import TypeAlias

from starlette.requests import Request

from callslip._base.options import check_called_with
from callslip.errors import UsageError

__all__ = [
    "Name",
    "checked_hosts",
    "checked_name",
    "checked_place",
    "checked_token",
    "is_loopback",
]

Name: TypeAlias = Callable[[Request], str | None]
"""Returns the name of the person who makes a request."""

_SHORTEST = 32
_TOKEN = re.compile(r"[!-~]+")
_HOST = re.compile(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
    r"|[0-9A-Fa-f]*(?::[0-9A-Fa-f.]*){2,}"
)


def checked_token(token: object) -> str:
    """Return the token.

    Raises:
        UsageError: It is too short to be a secret, or no text that fits into an address.
    """
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise UsageError(
            "expected token to be letters, digits and signs of ASCII, without spaces: got another "
            "value; use secrets.token_urlsafe()"
        )
    if len(token) < _SHORTEST:
        raise UsageError(
            f"expected token to have {_SHORTEST} characters or more: got {len(token)}; "
            "use secrets.token_urlsafe()"
        )
    return token


def checked_hosts(hosts: object) -> Collection[str]:
    """Return the names of hosts.

    Raises:
        UsageError: They are no names.
    """
    if (
        isinstance(hosts, str)
        or not isinstance(hosts, Collection)
        or not hosts
        or not all(isinstance(host, str) and _HOST.fullmatch(host) for host in hosts)
    ):
        raise UsageError(
            f"expected hosts to be names of hosts: got {hosts!r}; "
            'pass them as browsers send them: ["ops.example.com"]'
        )
    return [_name(host) for host in hosts]


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


def _name(host: str) -> str:
    """Return the name without a port, which an address of version 6 has only in brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name, _, port = host.partition(":")
    return (name if ":" not in port else host).lower()
