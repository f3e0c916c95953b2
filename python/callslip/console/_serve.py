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

from callslip._base import _lazy
from callslip._base.options import check_flag
from callslip.console._access import LOOPBACK
from callslip.console._app import Console
from callslip.console._open import console
from callslip.console._options import Name, checked_place, is_loopback
from callslip.errors import UsageError
from callslip.look._markup import DOCTYPE, el, joined
from callslip.store import TicketStore
from callslip.web._options import checked_hosts

__all__ = ["serve"]

_PATIENCE = 5
"""Seconds for the answers that are under way when the server stops."""


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
    _check(host, port, token, hosts)
    check_flag("open_browser", open_browser)
    names = list(LOOPBACK if hosts is None else checked_hosts(hosts))
    # Another address may stand for all of the machine, and be no name.
    shown = host if is_loopback(host) else names[0]
    if shown not in names:
        names.append(shown)
    app = console(store, token=token, hosts=names, by=by)
    with _listening(host, port) as listening:
        name = f"[{shown}]" if ":" in shown else shown
        address = f"http://{name}:{listening.getsockname()[1]}"
        page = _address(address, app.token)
        print(f"the console is at {page}", flush=True)  # noqa: T201  # it is waited for
        config = uvicorn.Config(
            app,
            proxy_headers=False,  # anybody on this machine could tell any address
            lifespan="off",
            log_level="warning",
            timeout_graceful_shutdown=_PATIENCE,
            ws="none",
        )
        with suppress(KeyboardInterrupt), _opened(page if open_browser else None):
            _Server(config, app).run(sockets=[listening])


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


def _check(host: str, port: int, token: str | None, hosts: Collection[str] | None) -> None:
    checked_place(host, port)
    if not is_loopback(host) and (token is None or hosts is None):
        raise UsageError(
            f"expected token= and hosts= for a console on {host}, which other machines may reach: "
            "pass both"
        )
    try:
        _lazy.asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        "serve() cannot be called where an event loop runs: mount console(store) in an "
        "application, or call serve in a thread"
    )


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen on port {port} of {host}: {error.strerror or error}; pass another host "
            "or port"
        ) from error
