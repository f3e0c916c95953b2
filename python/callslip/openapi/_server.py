"""Which server the operations of a document are called at."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from callslip._core import Document
from callslip.errors import ToolError

__all__ = ["Servers"]


class Servers:
    """The URL that goes before the path of each operation.

    Args:
        document: Names servers, for all operations or for some.
        client: Its `base_url`, where it has one, stands for an absolute server of the document;
            a server that is a path alone is one of that host.
        server: Stands for all of them.
        found_at: Where the document was fetched from; `None` where it was not.

    Raises:
        ToolError: There is none of all these.
    """

    def __init__(
        self, document: Document, client: Any, server: str | None, found_at: str | None
    ) -> None:
        self._document = document
        base_url = getattr(client, "base_url", None)
        self._base_url = "" if base_url is None else str(base_url)
        if server is not None and not isinstance(server, str):
            raise ToolError(
                f"server must be a URL such as 'https://api.example.com': got {server!r}"
            )
        if server is not None and re.match("(?:[^/?#]*//)?[^/?#]*@", server):
            # Clients log the URL of each request.
            raise ToolError("server holds a user: say who calls by auth=… or by the client")
        self._server = server
        self._found_at = found_at
        # Most documents name one server for all: that there is none is said before the first call.
        for name in document.names()[:1]:
            self.base(name)

    def base(self, name: str) -> str:
        """Return what goes before the path of an operation.

        Raises:
            ToolError: There is nothing.
        """
        if self._server is not None:
            joined = _joined(self._base_url, self._server)
            if not _is_absolute(joined):
                raise ToolError(
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
            return self._base_url if _is_absolute(said) else _joined(self._base_url, said)
        if _is_absolute(said):
            return said
        if self._found_at is not None:
            return _joined(self._found_at, said)
        where = "no server" if said == "/" else f"its server as '{said}' alone"
        raise ToolError(
            f"the document names {where}: say server='https://…', or give a client with a base_url"
        )


def _is_absolute(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # Of "localhost:8000" the name is taken for the scheme.
    return bool(parts.scheme and parts.hostname)


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return ""
