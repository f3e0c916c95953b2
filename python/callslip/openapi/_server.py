"""The servers of the operations of a document."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from callslip._core import Document
from callslip.errors import ToolError, UsageError
from callslip.openapi._app import App
from callslip.openapi._redirects import is_same_host, port_of

__all__ = ["Fetched", "Servers", "is_link_local"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Fetched(NamedTuple):
    """Where a document was fetched.

    Attributes:
        named: The URL that the program has named.
        found_at: The URL after redirects.
    """

    named: str
    found_at: str


class Servers:
    """The base URL of each operation.

    Args:
        document: Declares servers, for all operations or for some.
        client: Its `base_url`, if it has one, replaces an absolute server of the document. A server
            that is only a path belongs to that host.
        server: Replaces all other servers.
        fetched: Where the document was fetched, if it was.
        trusted: Further hosts that may receive secrets.

    Raises:
        UsageError: `server` is not a URL, or contains credentials; or `trusted` has no hosts.
        ToolError: There is no server.
    """

    def __init__(
        self,
        document: Document,
        client: Any,
        server: str | None,
        fetched: Fetched | None,
        trusted: Sequence[str] = (),
    ) -> None:
        self._document = document
        self._is_app = isinstance(client, App)
        base_url = getattr(client, "base_url", None)
        self._base_url = "" if base_url is None else str(base_url)
        if server is not None and re.match("(?:[^/?#]*//)?[^/?#]*@", server):
            # Clients log the URL of each request.
            raise UsageError(
                "expected server to be a URL without credentials: pass them with auth=… or in "
                "the client"
            )
        self._server = server
        self._found_at = None if fetched is None else fetched.found_at
        self._named = None if fetched is None else _split(fetched.named)
        self._trusted = [_Trusted(host) for host in trusted]
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
        """Whether this server may receive secrets.

        Those of `server`, of the client and of `trusted_hosts` may, and the one that a document was
        fetched from. The first server of a document may if the program has the document itself.
        """
        if self._server is not None or self._base_url:
            # The program has chosen it.
            return True
        url = _split(base)
        if url is None or url.hostname is None:
            return True
        own = self._named or _split(self._document.default_server() or base)
        if own is not None and is_same_host(own, url):
            return True
        return any(allowed.allows(url) for allowed in self._trusted)

    def is_out_of_bounds(self, base: str) -> bool:
        """Whether nothing is sent to this server: only a document names this link-local address.

        Machines of clouds give their credentials to whoever asks such an address.
        """
        url = _split(base)
        if self._server is not None or self._base_url or url is None or url.hostname is None:
            return False
        if not is_link_local(url.hostname):
            return False
        if self._named is not None and is_same_host(self._named, url):
            return False
        return not any(allowed.allows(url) for allowed in self._trusted)

    def host(self, name: str) -> str:
        """Return the host of an operation, as `trusted_hosts` has it."""
        return _shown(self.base(name))

    def untrusted_warnings(self, names: Sequence[str]) -> list[str]:
        """Return warnings about operations whose server receives no secrets.

        Raises:
            UsageError: None of them may, because a fetched document leads to other hosts.
        """
        hosts: dict[str, str] = {}
        for name in names:
            with suppress(ToolError, UsageError):
                hosts[name] = _shown(self.base(name))
        told = [
            f"'{name}' at {host}"
            for name, host in hosts.items()
            if not self.is_trusted(self.base(name))
        ]
        if not told:
            return []
        if self._named is not None and len(told) == len(hosts):
            others = sorted(set(hosts.values()))[:5]
            raise UsageError(
                f"expected the servers of the document at {_shown(self._named.geturl())} to be "
                f"there, because secrets are for that host: got {', '.join(others)}: pass "
                f"trusted_hosts={others} if they may have the secrets, or server='…'"
            )
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
                    f"expected server to be a URL: got {self._server!r}: pass one such as "
                    "'https://api.example.com'"
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


class _Trusted:
    """A host that may receive secrets: `host`, `host:port`, or a URL with either.

    Without a scheme, secrets are sent over https, and over http within this machine.

    Raises:
        UsageError: It is none of these.
    """

    def __init__(self, text: str) -> None:
        self._names_scheme = "://" in text
        url = _split(text if self._names_scheme else f"https://{text}")
        if (
            url is None
            or url.scheme not in ("http", "https")
            or not url.hostname
            or not re.fullmatch(r"[\w.:-]+", url.hostname)
            or "@" in url.netloc
            or url.path not in ("", "/")
            or url.query
            or url.fragment
        ):
            raise UsageError(
                "expected trusted_hosts as hosts such as 'uploads.example.com', "
                "'uploads.example.com:8443' or 'http://uploads.example.com': got "
                f"{text!r}; pass each host by its name, without wildcards and paths"
            )
        self._url = url

    def allows(self, url: SplitResult) -> bool:
        """Whether this is the host of a URL."""
        own = self._url
        if own.hostname != url.hostname:
            return False
        if self._names_scheme:
            return is_same_host(own, url)
        if url.scheme != "https" and url.hostname not in _LOOPBACK:
            return False
        return own.port is None or own.port == port_of(url)


def is_link_local(host: str) -> bool:
    """Whether a host is an address of this network link alone, such as 169.254.169.254."""
    # Clients map wide digits and dots to those of ASCII.
    host = unicodedata.normalize("NFKC", host).replace("\u3002", ".").rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            # Clients read 2852039166, 0xa9fea9fe and 169.254.43518 as addresses too.
            address = ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, ValueError):
            return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_link_local


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL; `None` if it is not one."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is not a number
    except ValueError:
        return None
    return parts


def _shown(url: str) -> str:
    """Return the host as `trusted_hosts` has it: with the scheme if that matters."""
    parts = _split(url)
    if parts is None or parts.hostname is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return f"http://{host}" if parts.scheme == "http" else host


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
