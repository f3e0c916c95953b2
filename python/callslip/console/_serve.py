"""A console in a server of its own."""

from __future__ import annotations

import os
import socket
import tempfile
import webbrowser
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import uvicorn

from callslip._base.options import check_flag
from callslip.console._app import Console
from callslip.console._open import console
from callslip.console._options import Name
from callslip.look._markup import DOCTYPE, el, joined
from callslip.store import TicketStore
from callslip.web._server import Place, check_no_loop, server_config

__all__ = ["serve"]


def serve(
    store: TicketStore | str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    by: Name | None = None,
    open_browser: bool = False,
) -> None:
    """Serve the console of a store until Ctrl-C. The address with the token is printed.

    Args:
        store: As for `console`.
        host: The address to listen on. Default: that of this machine itself, which no other one
            can reach.
        port: The port. Default: a free one.
        token: As for `console`. Needed for another `host`.
        hosts: As for `console`. Needed for another `host`.
        by: As for `console`.
        open_browser: Whether a browser is opened with the page.

    Raises:
        UsageError: An option has a wrong value, the port is in use, this process has the file open,
            or an event loop runs in this thread: there, mount `console(store)` in an application.
        StoreError: The file cannot be read, or is not a store.
    """
    place = Place.checked("console", host, port, token=token, hosts=hosts)
    check_no_loop("console(store)")
    check_flag("open_browser", open_browser)
    app = console(store, token=token, hosts=place.names, by=by)
    with place.listen() as listening:
        page = _address(place.url(listening), app.token)
        print(f"the console is at {page}", flush=True)  # noqa: T201  # it is waited for
        with suppress(KeyboardInterrupt), _opened(page if open_browser else None):
            _Server(server_config(app), app).run(sockets=[listening])


def _address(base: str, token: str) -> str:
    """Return the address that signs a person in. No server is sent the part behind `#`."""
    return f"{base}/login#token={quote(token, safe='')}"


@contextmanager
def _opened(page: str | None) -> Iterator[None]:
    """Open a page in a browser, whose command line every user of the machine can read.

    It has the name of a file that only this user can read, and that leads to the page.
    """
    if page is None:
        yield
        return
    handle, name = tempfile.mkstemp(prefix="callslip-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            refresh = el("meta", http_equiv="refresh", content=f"0; url={page}")
            file.write(joined(DOCTYPE, refresh, el("meta", name="referrer", content="no-referrer")))
        webbrowser.open(Path(name).as_uri())
        yield
    finally:
        Path(name).unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """A server that ends the streams of open pages when it stops."""

    def __init__(self, config: uvicorn.Config, app: Console) -> None:
        super().__init__(config)
        self._console = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._console.end_streams()
        await super().shutdown(sockets)
