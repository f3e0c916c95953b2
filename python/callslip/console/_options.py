"""The options of a console, checked."""

from __future__ import annotations

from collections.abc import Collection

from callslip.console._access import LOOPBACK
from callslip.errors import UsageError

__all__ = ["checked_hosts", "checked_token", "is_loopback"]

_SHORTEST = 32


def checked_token(token: object) -> str:
    """Return the token.

    Raises:
        UsageError: It is too short to be a secret, or no text that fits into an address.
    """
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise UsageError(
            "expected token to be printable text in ASCII: got another value; "
            "use secrets.token_urlsafe()"
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
        or not all(isinstance(host, str) and host and not set(host) & set("/@ *") for host in hosts)
    ):
        raise UsageError(
            f'expected hosts to be names of hosts: got {hosts!r}; pass them as ["ops.example.com"]'
        )
    return [_name(host) for host in hosts]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host in LOOPBACK


def _name(host: str) -> str:
    """Return the name without a port, which an address of version 6 has only in brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.partition(":")
    return name if ":" not in port else host
