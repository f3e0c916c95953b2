"""Who may read the pages of a console, and who may decide."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections import deque
from collections.abc import Collection, Sequence
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["LOOPBACK", "Access", "Denied", "base_of"]

_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_TRIES = 5
_MINUTE = 60.0
_MOST_ADDRESSES = 1_000

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine for itself."""


class Denied(Exception):  # noqa: N818  # it is an answer
    """A request that is not carried out.

    Attributes:
        status: The status of the answer.
        message: What the person reads.
        problems: What is wrong with arguments, each with its place.
    """

    def __init__(self, status: int, message: str, problems: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.problems = problems


class Access:
    """Checks requests: their host, their cookie, and the page that they come from.

    Args:
        token: What a person presents once to sign in.
        hosts: The names under which the pages are served, in lower case, without ports.
    """

    def __init__(self, token: str, hosts: Collection[str]) -> None:
        self._token = token.encode()
        self._hosts = frozenset(hosts)
        # Cookies do not tell ports apart: two consoles of one machine have two names.
        self._name = f"callslip_{hashlib.sha256(self._token).hexdigest()[:12]}"
        self._value = hmac.digest(self._token, b"callslip console", "sha256").hex()
        self._failed: dict[str, deque[float]] = {}

    def check_host(self, request: Request) -> None:
        """Check the name that was asked for, so that no name of another site leads here.

        Raises:
            Denied: It is none of the hosts.
        """
        given = request.headers.get("host", "")
        place = _place_of(given, "http")
        if place is None or place[0] not in self._hosts:
            raise Denied(
                421, f"this console is not served under the name {given!r}: pass it in hosts="
            )

    def check_signed_in(self, request: Request) -> None:
        """Check the cookie.

        Raises:
            Denied: There is none, or a wrong one.
        """
        given = request.cookies.get(self._name, "")
        if not hmac.compare_digest(given.encode(), self._value.encode()):
            raise Denied(401, "Sign in with the token of this console.")

    def check_own_page(self, request: Request) -> None:
        """Check that a page of this console makes a request that changes something.

        Raises:
            Denied: It comes from elsewhere, or nothing says where from.
        """
        site = request.headers.get("sec-fetch-site", "same-origin")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not self._is_own_origin(request) or site != "same-origin" or kind != "application/json":
            raise Denied(403, "a decision is only taken from a page of this console")

    @staticmethod
    def _is_own_origin(request: Request) -> bool:
        scheme, _, origin = request.headers.get("origin", "").partition("://")
        # A proxy that ends TLS may not tell that it does.
        if scheme not in {request.url.scheme, "https"}:
            return False
        own = _place_of(request.headers.get("host", ""), scheme)
        return own is not None and _place_of(origin, scheme) == own

    def sign_in(self, request: Request, token: str, answer: Response) -> Response:
        """Return the answer with the cookie, if the token is right.

        Raises:
            Denied: It is wrong, or too many were tried from this address.
        """
        if request.headers.get("sec-fetch-dest", "document") != "document":
            # An image of any other site would take the tries of its reader.
            raise Denied(403, "sign in on a page of its own")
        address = request.client.host if request.client is not None else ""
        failed = self._failed.setdefault(address, deque())
        now = time.monotonic()
        while failed and failed[0] < now - _MINUTE:
            failed.popleft()
        if len(failed) >= _TRIES:
            raise Denied(429, "Too many wrong tokens: try again in a minute.")
        if not hmac.compare_digest(token.encode(errors="replace"), self._token):
            failed.append(now)
            while len(self._failed) > _MOST_ADDRESSES:
                del self._failed[next(iter(self._failed))]
            raise Denied(401, "This is not the token of this console.")
        del self._failed[address]
        answer.set_cookie(
            self._name,
            self._value,
            path=base_of(request) or "/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer


def base_of(request: Request) -> str:
    """Return the beginning of all addresses: the path that the console is mounted at."""
    return quote(str(request.scope.get("root_path", "")).rstrip("/"))


def _place_of(host: str, scheme: str) -> tuple[str, str] | None:
    """Return the name and the port of a header."""
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return None
    return found[1].strip("[]"), found[2] or ("443" if scheme == "https" else "80")
