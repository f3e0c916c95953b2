"""A server for one application: its address, its names and its socket."""

from __future__ import annotations

import socket
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import uvicorn

from callslip._base import _lazy
from callslip.errors import UsageError
from callslip.web._options import LOOPBACK, checked_hosts

__all__ = ["Place", "check_no_loop", "server_config"]

_PATIENCE = 5
"""Seconds for the answers that are under way when the server stops."""


@dataclass(frozen=True, slots=True)
class Place:
    """An address to listen on, and the names under which the server is reached.

    Attributes:
        host: The address.
        port: The port; 0 for a free one.
        names: All names of the server.
        shown: The name in its URL.
    """

    host: str
    port: int
    names: list[str]
    shown: str

    @classmethod
    def checked(
        cls,
        what: str,
        host: object,
        port: object,
        *,
        token: str | None,
        hosts: Collection[str] | None,
    ) -> Place:
        """Return the place for options of a program.

        Raises:
            UsageError: It is no address, or one that needs a token and names.
        """
        if not isinstance(host, str) or not host:
            raise UsageError(f"expected host to be an address: got {host!r}; pass one, or none")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65_536:
            raise UsageError(
                f"expected port to be a number below 65536: got {port!r}; pass 0 for any"
            )
        if not _is_loopback(host) and (token is None or hosts is None):
            raise UsageError(
                f"expected token= and hosts= for a {what} on {host}, which other machines may "
                "reach: pass both"
            )
        names = list(LOOPBACK if hosts is None else checked_hosts(hosts))
        # An address such as 0.0.0.0 is no name that clients can use.
        shown = host if _is_loopback(host) else names[0]
        if shown not in names:
            names.append(shown)
        return cls(host, port, names, shown)

    def listen(self) -> socket.socket:
        """Return the socket of a server.

        Raises:
            UsageError: The port is in use, or this machine doesn't have the address.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {self.port} of {self.host}: {error.strerror or error}; "
                "pass another host or port"
            ) from error

    def url(self, listening: socket.socket) -> str:
        """Return the URL of a server, without a path."""
        name = f"[{self.shown}]" if ":" in self.shown else self.shown
        return f"http://{name}:{listening.getsockname()[1]}"


def check_no_loop(instead: str) -> None:
    """Check that no event loop runs in this thread, which a server would stop.

    Raises:
        UsageError: One does.
    """
    try:
        _lazy.asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        f"serve() cannot be called where an event loop runs: mount {instead} in an "
        "application, or call serve in a thread"
    )


def server_config(app: Any) -> uvicorn.Config:
    """Return the settings of a server that stops in a few seconds."""
    return uvicorn.Config(
        app,
        proxy_headers=False,  # anybody on this machine could tell any address
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=_PATIENCE,
        ws="none",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
