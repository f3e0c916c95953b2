"""What proves who calls: secrets by the security schemes of a document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from callslip._function import is_async
from callslip.errors import ToolError

__all__ = ["Auth", "Secret", "check_auth", "resolved", "texts_of"]

Secret: TypeAlias = "str | tuple[str, str]"  # noqa: S105  # a type
"""A key or token; or user and password."""

Auth: TypeAlias = "Secret | Callable[[], Secret | Awaitable[Secret]]"


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
    from callslip._drive import in_thread

    secrets: list[tuple[str, Secret]] = []
    for name in names:
        secret: Any = auth[name]
        if callable(secret):
            # It may take its time, which is not that of the event loop.
            secret = secret() if is_async(secret) else await in_thread(secret)
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


def texts_of(secrets: Iterable[Secret]) -> Iterator[str]:
    """Return the texts that nobody is to see."""
    for secret in secrets:
        if isinstance(secret, str):
            yield secret
        else:
            user, password = secret
            yield password
            yield f"{user}:{password}"
