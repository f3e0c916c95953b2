"""The servers that the clients call: the gateway, and forge."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from callslip.gateway import gateway

__all__ = ["Counted", "forge", "gateway_at"]

_START = 60.0
"""Seconds until a server listens."""


class Counted:
    """An ASGI application that counts the requests, attempts and errors of the one inside.

    Attributes:
        statuses: The status of each request.
        refused: Replies of the model that the gateway refused before a valid one.
        changes: The repairs and violations that the gateway names.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self.reset()

    def reset(self) -> None:
        self.statuses: list[int] = []
        self.refused = 0
        self.changes: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def counting(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = dict(message["headers"])
                self.statuses.append(message["status"])
                self.refused += int(headers.get(b"x-callslip-attempts", b"1")) - 1
                if b"x-callslip-repairs" in headers:
                    self.changes.append(headers[b"x-callslip-repairs"].decode())
            await send(message)

        await self._app(scope, receive, counting)


@contextlib.contextmanager
def gateway_at(model: Any, protocol: Any) -> Iterator[tuple[str, Counted]]:
    """Serve a model on loopback; yields the base URL and the counts."""
    app = Counted(gateway({"m": model}, protocol=protocol, verbose=True))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", app
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def forge(python: Path, url: str, more: list[str], log: Path) -> Iterator[str]:
    """Start forge's proxy in front of a server like OpenAI's; yields its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    upstream = ["--backend", "llamaserver", "--backend-url", url.removesuffix("/v1")]
    command = [str(python), "-m", "forge.proxy", *upstream, "--model", "m", "--port", str(port)]
    with log.open("ab") as errors:
        process = subprocess.Popen([*command, *more], stdout=errors, stderr=errors)
    try:
        _wait(port, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, log: Path) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"expected forge to listen on port {port}: got its errors in {log}")
