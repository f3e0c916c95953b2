"""The addresses of servers that a client could not reach."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from callslip._base.failure import message_of

__all__ = ["unreached"]

_NO_CONNECTION = frozenset(
    {
        "APIConnectionError",
        "ClientConnectorError",
        "ConnectError",
        "ConnectTimeout",
        "ConnectionError",
        "NewConnectionError",
    }
)
"""Exceptions of HTTP clients, by name: none of the clients need be installed."""

_PORTS = {"http": 80, "https": 443}
_CAUSES = 8


def unreached(error: BaseException) -> str | None:
    """Return the address of the server that a client could not reach, and a hint.

    Args:
        error: The exception of a client.

    Returns:
        Such as `127.0.0.1:8080: Connection refused; check that …`; `None` for other failures, and
        if the address is not known.
    """
    if type(error).__name__ not in _NO_CONNECTION:
        return None
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and len(causes) < _CAUSES:
        causes.append(cause)
    address = next((found for one in causes if (found := _address(one))), None)
    if address is None:
        return None
    reason = next((words for one in reversed(causes) if (words := _reason(one))), None)
    why = "" if reason is None or reason in message_of(error) else f": {reason}"
    return (
        f"{address}{why}; check that a server listens there, and the address that was passed to "
        "the client"
    )


def _reason(error: BaseException) -> str | None:
    """Return the words of the operating system."""
    if not isinstance(error, OSError) or error.errno is None:
        return None
    # A negative number is one of name resolution.
    return os.strerror(error.errno) if error.errno > 0 else error.strerror


def _address(error: BaseException) -> str | None:
    """Return host and port of the request that an exception names."""
    try:
        told: Any = error
        if isinstance(getattr(told, "port", None), int):  # aiohttp
            return f"{told.host}:{told.port}"
        parts = urlsplit(str(told.request.url))
        port = parts.port or _PORTS.get(parts.scheme)
    except Exception:  # noqa: BLE001  # httpx raises if there was no request
        return None
    host = parts.hostname
    if not host:
        return None
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"
