"""Where a request comes from, as its headers say."""

from __future__ import annotations

import re

__all__ = ["is_own_origin", "is_secure", "place_of"]

_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")


def place_of(host: str, scheme: str) -> tuple[str, str] | None:
    """Return the name and the port of the header `Host`; `None` if it is no name.

    Args:
        host: The header.
        scheme: `"http"` or `"https"`, for the port that it has by default.
    """
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return None
    return found[1].strip("[]"), found[2] or ("443" if scheme == "https" else "80")


def is_own_origin(origin: str, host: str, scheme: str) -> bool:
    """Whether a page of this very place makes a request.

    Args:
        origin: The header `Origin`.
        host: The header `Host`.
        scheme: The scheme of the request. A proxy that ends TLS may not tell that it does, so
            `https` in the origin is right too.
    """
    said, _, name = origin.partition("://")
    if said not in {scheme, "https"}:
        return False
    own = place_of(host, said)
    return own is not None and place_of(name, said) == own


def is_secure(scheme: str, forwarded: str) -> bool:
    """Whether the browser speaks TLS, with this server or with the proxy before it.

    Args:
        scheme: The scheme of the request.
        forwarded: The header `X-Forwarded-Proto`. Whoever forges it harms only themselves: the
            cookie is then sent over TLS alone.
    """
    return scheme == "https" or forwarded.partition(",")[0].strip().lower() == "https"
