"""Secrets that calls of a document's operations carry, and keeping them out of all else."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus

from callslip.errors import ToolError

__all__ = ["Auth", "Secret", "check_auth", "current", "hidden", "hides_in_logs", "resolved"]

Secret: TypeAlias = "str | tuple[str, str]"  # noqa: S105  # a type
"""A key or token; or user and password."""

Auth: TypeAlias = "Secret | Callable[[], Secret | Awaitable[Secret]]"

_SHORTEST = 4
"""Characters of a secret; a shorter one would be found in any text."""

current: ContextVar[tuple[str, ...]] = ContextVar("callslip_secrets", default=())
"""Texts that hold the secrets of the request under way."""


def check_auth(auth: Mapping[str, Auth], schemes: list[str]) -> dict[str, Auth]:
    """Return the secrets by scheme.

    Raises:
        ToolError: The document has no such scheme, or what is given is no secret.
    """
    if not isinstance(auth, Mapping):
        # Not the value: it may be the secret itself.
        kind = type(auth).__name__
        raise ToolError(f"auth must be a dict of secrets by security scheme: got {kind}")
    for name, secret in auth.items():
        if name not in schemes:
            known = ", ".join(repr(scheme) for scheme in schemes) or "none"
            raise ToolError(
                f"auth names the security scheme '{name}', which the document has not: it has "
                f"{known}"
            )
        if not callable(secret):
            _check(name, secret)
    return dict(auth)


async def resolved(auth: Mapping[str, Auth], names: Iterable[str]) -> list[tuple[str, Secret]]:
    """Return the secrets of these schemes; functions are asked each time."""
    secrets: list[tuple[str, Secret]] = []
    for name in names:
        secret: Any = auth[name]
        if callable(secret):
            secret = secret()
            if hasattr(secret, "__await__"):
                secret = await secret
        secrets.append((name, _check(name, secret)))
    return secrets


def _check(name: str, secret: Any) -> Secret:
    pair = isinstance(secret, tuple) and len(secret) == 2
    texts = secret if pair else (secret,)
    if not all(isinstance(text, str) and text for text in texts):
        # Not the value: it may be the secret in another form.
        raise ToolError(
            f"auth['{name}'] must be a string, (user, password) or a function that returns one: "
            f"got {type(secret).__name__}"
        )
    if any(character in text for text in texts for character in "\r\n\0"):
        raise ToolError(f"auth['{name}'] holds a line break, which can't be sent")
    return secret  # type: ignore[no-any-return]


def forms(secrets: Iterable[tuple[str, Secret]]) -> tuple[str, ...]:
    """Return the texts by which the secrets would be found somewhere, the longest first."""
    found: set[str] = set()
    for _, secret in secrets:
        plain = [secret] if isinstance(secret, str) else [secret[1], f"{secret[0]}:{secret[1]}"]
        plain += [base64.b64encode(text.encode()).decode() for text in plain]
        for text in plain:
            found.update((text, quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1]))
            found.add(json.dumps(text, ensure_ascii=False)[1:-1])
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST), key=len, reverse=True))


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets."""
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return text


class _Filter(logging.Filter):
    """Keeps the secrets of the request under way out of what its client logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        secrets = current.get()
        if secrets:
            message = record.getMessage()
            clean = hidden(message, secrets)
            if clean != message:
                record.msg, record.args = clean, ()
        return True


_filter = _Filter()

_LOGGERS = (
    "httpx",
    "httpx2",
    *(
        f"{library}.{part}"
        for library in ("httpcore", "httpcore2")
        for part in ("connection", "http11", "http2", "proxy", "socks")
    ),
    "hpack.hpack",
    "hpack.table",
    "urllib3.connectionpool",
    "aiohttp.client",
)


def hides_in_logs() -> None:
    """Have the known clients log no secrets of requests that are made here."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _filter not in logger.filters:
            logger.addFilter(_filter)
