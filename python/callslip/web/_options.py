"""Options of what is served, checked."""

from __future__ import annotations

import re
from collections.abc import Collection

from callslip._base.options import shown
from callslip.errors import UsageError

__all__ = ["LOOPBACK", "checked_hosts", "checked_paths", "checked_token"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine for itself."""

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


def checked_paths(name: str, paths: object) -> Collection[str]:
    """Return an option that is a list of paths of requests.

    Raises:
        UsageError: It is no such list, or one of them can't be the path of a request.
    """
    if isinstance(paths, str):
        raise UsageError(f"expected {name} as a list of paths: got {paths!r}; pass [{paths!r}]")
    if not isinstance(paths, Collection) or not all(isinstance(path, str) for path in paths):
        raise UsageError(f"expected {name} as a list of paths: got {shown(paths)}; pass texts")
    for path in paths:
        if not path.startswith("/"):
            raise UsageError(
                f"expected {name} as paths that begin with a slash: got {path!r}; pass '/{path}'"
            )
    return paths


def _name(host: str) -> str:
    """Return the name without a port, which an address of version 6 has only in brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name, _, port = host.partition(":")
    return (name if ":" not in port else host).lower()
