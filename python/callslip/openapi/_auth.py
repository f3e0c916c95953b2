"""Credentials: secrets for the security schemes of a document."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from callslip._base.failure import describe_failure
from callslip._base.options import check_dict_of_texts
from callslip._threads.pool import in_thread
from callslip.errors import UsageError
from callslip.tools._callable import is_async

if TYPE_CHECKING:
    from callslip._core import Document

__all__ = [
    "Auth",
    "AuthError",
    "Secret",
    "check_auth",
    "check_headers",
    "client_has_secrets",
    "resolve_secrets",
    "secrets_of_client",
    "texts_in_headers",
    "texts_of",
]

Secret: TypeAlias = "str | tuple[str, str]"  # noqa: S105  # a type
"""A key or token; or user and password."""

Auth: TypeAlias = "Secret | Callable[[], Secret | Awaitable[Secret]]"


class AuthError(Exception):
    """A function that returns a secret has failed."""


def check_auth(auth: Mapping[str, Auth], document: Document) -> dict[str, Auth]:
    """Return the secrets by scheme.

    Raises:
        UsageError: The document has no such scheme, a value is not a secret, or no offered
            operation would receive it.
    """
    schemes = document.schemes()
    for name, secret in auth.items():
        if name not in schemes:
            known = ", ".join(repr(scheme) for scheme in schemes) or "none"
            raise UsageError(
                f"unknown security scheme '{name}' in auth: the document defines "
                f"{known}. Where a document says nothing of a secret, pass headers="
                "{'Authorization': 'Bearer …'}"
            )
        if not callable(secret):
            _check(name, secret)
    unsent = document.unsent(list(auth))
    # If there are several, some of them may be unused.
    if auth and len(unsent) == len(auth):
        raise UsageError(
            f"auth['{unsent[0]}'] would never be sent: no operation that is offered names that "
            "scheme in its security. Leave it out, or pass headers={'Authorization': 'Bearer …'}"
        )
    return dict(auth)


def check_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers for each request; none for `None`.

    Raises:
        UsageError: They are not a dict of texts, or cannot be sent.
    """
    if headers is None:
        return {}
    check_dict_of_texts("headers", headers)
    for name, value in headers.items():
        if not value:
            raise UsageError(f"expected headers[{name!r}] to be text: got an empty one")
        if any(character in name + value for character in "\r\n\0"):
            raise UsageError(
                f"expected headers[{name!r}] to be one line: pass it without line breaks"
            )
    return dict(headers)


_SECRET_HEADER = re.compile(
    r"auth|cookie|key|token|secret|passw|session|signature|credential", re.IGNORECASE
)


def texts_in_headers(headers: Iterable[tuple[str, str]], *, every: bool) -> Iterator[str]:
    """Return the secret texts of headers, with and without the scheme before them.

    Args:
        headers: Names and values.
        every: Whether all values are secret; else only those with a name like `Authorization`.
    """
    for name, value in headers:
        if not every and not _SECRET_HEADER.search(name):
            continue
        yield value
        scheme, _, rest = value.partition(" ")
        if rest:
            yield rest
            if scheme.lower() == "basic":
                with suppress(ValueError):
                    pair = base64.b64decode(rest, validate=True).decode()
                    yield pair
                    yield pair.partition(":")[2]
        if "=" in value:
            yield from (part.partition("=")[2].strip() for part in value.split(";"))


def secrets_of_client(client: Any) -> Iterator[str]:
    """Return the secrets that a client of the program sends by itself."""
    headers = getattr(client, "headers", None)
    if isinstance(headers, Mapping):
        pairs = ((str(name), str(value)) for name, value in headers.items())
        yield from texts_in_headers(pairs, every=False)
    # httpx and requests keep these so.
    own = getattr(client, "auth", None)
    if isinstance(own, tuple) and len(own) == 2:
        yield str(own[1])
    if isinstance(header := getattr(own, "_auth_header", None), str):
        yield from texts_in_headers([("authorization", header)], every=True)
    for kept in (getattr(client, "cookies", None), getattr(client, "params", None)):
        if isinstance(kept, Mapping):
            with suppress(Exception):
                every = kept is not getattr(client, "params", None)
                named = [(str(name), str(value)) for name, value in kept.items()]
                yield from texts_in_headers(named, every=every)


def client_has_secrets(client: Any) -> bool:
    """Whether a client of the program sends secrets to any host."""
    if getattr(client, "auth", None) is not None:
        return True
    for name in ("headers", "params"):
        kept = getattr(client, name, None)
        if isinstance(kept, Mapping) and any(_SECRET_HEADER.search(str(key)) for key in kept):
            return True
    # A cookie of a server is sent to its host alone.
    jar = getattr(getattr(client, "cookies", None), "jar", None) or ()
    return any(not getattr(cookie, "domain", "x") for cookie in jar)


async def resolve_secrets(
    auth: Mapping[str, Auth], names: Iterable[str]
) -> list[tuple[str, Secret]]:
    """Return the secrets of these schemes. Functions are called each time."""
    secrets: list[tuple[str, Secret]] = []
    for name in names:
        secret: Any = auth[name]
        if callable(secret):
            try:
                # In a thread, because it may block.
                secret = secret() if is_async(secret) else await in_thread(secret)
                if hasattr(secret, "__await__"):
                    secret = await secret
            except Exception as error:
                # The message is redacted, and so contains no paths and no likely secrets.
                raise AuthError(
                    f"the function auth['{name}'] failed: {describe_failure(error)}"
                ) from error
        secrets.append((name, _check(name, secret)))
    return secrets


def _check(name: str, secret: Any) -> Secret:
    pair = isinstance(secret, tuple) and len(secret) == 2
    texts = secret if pair else (secret,)
    if not all(isinstance(text, str) and text for text in texts):
        # Not the value: it may be the secret in another form.
        raise UsageError(
            f"expected auth['{name}'] to be text: got {type(secret).__name__}: pass text, (user, "
            "password) or a function that returns one of them"
        )
    if any(character in text for text in texts for character in "\r\n\0"):
        raise UsageError(f"expected auth['{name}'] to be one line: pass it without line breaks")
    return secret  # type: ignore[no-any-return]


def texts_of(secrets: Iterable[Secret]) -> Iterator[str]:
    """Return the texts of secrets."""
    for secret in secrets:
        if isinstance(secret, str):
            yield secret
        else:
            user, password = secret
            yield password
            yield f"{user}:{password}"
