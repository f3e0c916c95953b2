"""A server for a gateway."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Unpack

import uvicorn

from callslip.gateway._app import Gateway
from callslip.gateway._open import GatewayOptions, gateway
from callslip.web._server import Place, check_no_loop, server_config

__all__ = ["serve"]


def serve(
    models: object,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    **options: Unpack[GatewayOptions],
) -> None:
    """Serve models to clients of OpenAI and Anthropic until Ctrl-C.

    The address, the settings for clients and a line for each request are printed.

    Args:
        models: As for `gateway`.
        host: The address to listen on. Default: loopback, which no other machine can reach.
        port: The port; 0 for a free one. Default: 8000.
        token: As for `gateway`. Needed for another `host`.
        hosts: As for `gateway`. Needed for another `host`.
        options: As for `gateway`.

    Raises:
        UsageError: An option has a wrong value, the port is in use, or an event loop runs in this
            thread: there, mount `gateway(models)` in an application.
    """
    place = Place.checked("gateway", host, port, token=token, hosts=hosts)
    check_no_loop("gateway(models)")
    app = gateway(models, token=token, hosts=place.names, **options)
    with place.listen() as listening, _lines_of_requests():
        _greet(app, place.url(listening), has_token=token is not None)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(server_config(app)).run(sockets=[listening])


def _greet(app: Gateway, address: str, *, has_token: bool) -> None:
    key = "your token" if has_token else "any text"
    lines = [
        *(f"serving {line}" for line in app.described()),
        f"export OPENAI_BASE_URL={address}/v1",
        f"export ANTHROPIC_BASE_URL={address}",
        f"the key of clients (OPENAI_API_KEY, ANTHROPIC_API_KEY): {key}",
    ]
    print("\n".join(lines), flush=True)  # noqa: T201  # it is waited for


@contextmanager
def _lines_of_requests() -> Iterator[None]:
    """Print a line for each request."""
    logger = logging.getLogger("callslip.gateway")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
