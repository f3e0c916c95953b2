"""Redirects that are followed: within one host, and to nothing that is not offered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

__all__ = ["Redirects", "Sent", "is_same_host", "port_of"]

_STATUSES = frozenset({301, 302, 303, 307, 308})
_SAFE = frozenset({"GET", "HEAD", "QUERY"})
_ABOUT_BODY = ("content-type", "content-length", "content-encoding")


class Sent(NamedTuple):
    """A request as it is sent.

    Attributes:
        method: The method, in capitals.
        url: The URL.
        headers: Names and values.
        body: The body; empty for a request without one.
    """

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes


class Redirects:
    """Finds the request that follows a redirect.

    Only requests that change nothing are repeated elsewhere, and any method may be answered with
    303, whose target is read. A target that may be an operation which is not offered, or which
    needs approval, is not asked for: a server that redirects to what an argument says would else
    lead there.

    Args:
        closed: Operations that a redirect must not lead to, as `METHOD /path`.
    """

    most = 5
    """Redirects that are followed for one call."""

    def __init__(self, closed: Iterable[str] = ()) -> None:
        paths = (name.partition(" ") for name in closed)
        self._closed = [_segments(path) for method, _, path in paths if method in _SAFE]

    def next(self, sent: Sent, status: int, headers: Mapping[str, str]) -> Sent | None:
        """Return the next request; `None` if the response is not a redirect to be followed."""
        location = headers.get("location", "")
        if status not in _STATUSES or not location or "\\" in location:
            return None
        reads = sent.method in _SAFE
        if not reads and status != 303:
            return None
        try:
            url = urljoin(sent.url, location)
            target, origin = urlsplit(url), urlsplit(sent.url)
            if "@" in target.netloc or not is_same_host(origin, target):
                return None
        except ValueError:
            return None
        if not url.isascii() or any(one <= " " for one in url) or self._is_closed(target.path):
            return None
        if status == 303 and sent.method != "HEAD":
            kept = [pair for pair in sent.headers if pair[0].lower() not in _ABOUT_BODY]
            return Sent("GET", url, kept, b"")
        return sent._replace(url=url)

    def _is_closed(self, path: str) -> bool:
        """Whether the end of a path may be that of a closed operation, read loosely."""
        written = _segments(path)
        for closed in self._closed:
            end = written[len(written) - len(closed) :] if len(closed) <= len(written) else None
            if end is not None and all(
                "{" in own or own == said for own, said in zip(closed, end, strict=True)
            ):
                return True
        return False


def is_same_host(origin: SplitResult, target: SplitResult) -> bool:
    """Whether two URLs have one scheme, host and port; or the second has the safer scheme.

    Raises:
        ValueError: A port is not a number.
    """
    if origin.hostname is None or origin.hostname != target.hostname:
        return False
    if origin.scheme == target.scheme:
        return port_of(origin) == port_of(target)
    is_upgrade = (origin.scheme, target.scheme) == ("http", "https")
    return is_upgrade and (port_of(origin), port_of(target)) == (80, 443)


def port_of(url: SplitResult) -> int | None:
    """Return the port of a URL, or the one that its scheme has by default.

    Raises:
        ValueError: It is not a number.
    """
    return url.port or {"http": 80, "https": 443}.get(url.scheme)


def _segments(path: str) -> list[str]:
    text = path.partition("?")[0]
    for _ in range(3):
        text = unquote(text)
    return [part for part in text.replace("\\", "/").lower().split("/") if part not in ("", ".")]
