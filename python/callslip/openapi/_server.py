"""The servers of the operations of a document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from callslip._core import Document
from callslip.errors import ToolError, UsageError
from callslip.openapi._app import App

__all__ = ["Servers"]


class Servers:
    """The base URL of each operation.

    Args:
        document: Declares servers, for all operations or for some.
        client: Its `base_url`, if it has one, replaces an absolute server of the document. A server
            that is only a path belongs to that host.
        server: Replaces all other servers.
        found_at: The URL that the document was fetched from, if any.
        trusted: Further hosts that may receive secrets.

    Raises:
        UsageError: `server` is not a URL, or contains credentials.
        ToolError: There is no server.
    """

    def __init__(
        self,
        document: Document,
        client: Any,
        server: str | None,
        found_at: str | None,
        trusted: Sequence[str] = (),
    ) -> None:
        self._document = document
        self._is_app = isinstance(client, App)
        base_url = getattr(client, "base_url", None)
        self._base_url = "" if base_url is None else str(base_url)
        if server is not None and not isinstance(server, str):
            raise UsageError(
                f"server must be a URL such as 'https://api.example.com': got {server!r}"
            )
        if server is not None and re.match("(?:[^/?#]*//)?[^/?#]*@", server):
            # Clients log the URL of each request.
            raise UsageError(
                "server must not contain credentials: pass them with auth=… or in the client"
            )
        self._server = server
        self._found_at = found_at
        self._trusted = {host.lower() for host in trusted}
        # A missing server is reported now, and not at the first call.
        for name in document.names()[:1]:
            self.base(name)

    def address(self, in_process: str) -> str | None:
        """Return the address that replaces the servers of the document; `None` if there is none.

        Args:
            in_process: The address for an app, which has none of its own.
        """
        if self._server is None and not self._base_url and self._found_at is None:
            return in_process if self._is_app else None
        try:
            return self.base(self._document.names()[0])
        except (ToolError, UsageError, IndexError):
            return None

    def is_trusted(self, base: str) -> bool:
        """Whether this server may receive secrets: that of the whole document, and allowed ones."""
        host = _host(base)
        if self._server is not None or self._base_url or host is None:
            # The program has chosen it.
            return True
        first = self._document.default_server()
        own = {_host(first or ""), _host(self._found_at or "")} if first else {host}
        if first and not _is_absolute(first):
            own = {_host(self._found_at or "")}
        return host in own or host in self._trusted or host.partition(":")[0] in self._trusted

    def untrusted_warnings(self, names: Sequence[str]) -> list[str]:
        """Return warnings about operations whose server receives no secrets."""
        told: list[str] = []
        for name in names:
            try:
                base = self.base(name)
            except (ToolError, UsageError):
                continue
            if not self.is_trusted(base):
                told.append(f"'{name}' at {_host(base)}")
        if not told:
            return []
        more = f", and {len(told) - 5} more" if len(told) > 5 else ""
        return [
            "no secret is sent to operations with a server of their own: "
            f"{', '.join(told[:5])}{more}. Allow it with trusted_hosts=[…]"
        ]

    def base(self, name: str) -> str:
        """Return the base URL of an operation.

        Raises:
            UsageError: `server` is not a URL.
            ToolError: There is no server.
        """
        if self._server is not None:
            joined = _join(self._base_url, self._server)
            if not _is_absolute(joined):
                raise UsageError(
                    f"server must be a URL such as 'https://api.example.com': got {self._server!r}"
                )
            return joined
        try:
            said = self._document.server(name) or "/"
        except ValueError as error:
            if self._base_url:
                return self._base_url
            raise ToolError(str(error)) from None
        if self._base_url:
            return self._base_url if _is_absolute(said) else _join(self._base_url, said)
        if _is_absolute(said):
            return said
        if self._found_at is not None:
            return _join(self._found_at, said)
        where = "no server" if said == "/" else f"its server as '{said}' alone"
        raise ToolError(
            f"the document names {where}: pass server='https://…', or a client with a base_url"
        )


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.hostname is None:
        return None
    plain = port is None or port == {"http": 80, "https": 443}.get(parts.scheme)
    return parts.hostname if plain else f"{parts.hostname}:{port}"


def _is_absolute(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # In "localhost:8000", the host would be read as the scheme.
    return bool(parts.scheme and parts.hostname)


def _join(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return ""
