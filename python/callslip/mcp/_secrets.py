"""Secrets that belong to one MCP server, and addresses without them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from callslip._base.redaction import Secrets

__all__ = ["public_url", "server_secrets"]

_SHORTEST_SECRET = 8
_PLAIN_HEADERS = {"accept", "accept-encoding", "connection", "content-type", "user-agent"}


def server_secrets(
    *,
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    url: str = "",
) -> Secrets:
    """Return the secrets of one server.

    Args:
        headers: Headers of each request. Most values are secret.
        env: The server's own environment variables. Most values are secret.
        url: The address. Its user info and the values of its query are secret.
    """
    found = set()
    for header, value in (headers or {}).items():
        if header.lower() not in _PLAIN_HEADERS:
            # Of `Bearer …`, a server may quote the second part alone.
            found |= {value, value.rpartition(" ")[2]}
    found |= {
        value
        for name, value in (env or {}).items()
        if not (_is_path(value) or _is_word(name, value))
    }
    parts = urlsplit(url)
    found |= {value for _, value in parse_qsl(parts.query)}
    found |= {parts.username or "", parts.password or "", unquote(parts.password or "")}
    # Short values are flags and numbers, which occur in any text.
    return Secrets(found, shortest=_SHORTEST_SECRET)


def _is_word(name: str, value: str) -> bool:
    """Whether a value is a setting such as `production`, which results may contain too."""
    told = re.search("key|token|secret|pass|credential|auth", name, re.IGNORECASE)
    return told is None and re.fullmatch("[a-z][a-z_.-]*", value) is not None


def _is_path(value: str) -> bool:
    return all(os.path.exists(part) for part in value.split(os.pathsep) if part)  # noqa: PTH110


def public_url(url: str) -> str:
    """Return an address without user info and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
