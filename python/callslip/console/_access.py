"""Who may read the pages of a console, and who may decide."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from callslip.web._requests import is_own_origin, is_secure, place_of

__all__ = ["Access", "Denied", "Role", "base_of"]

Role: TypeAlias = Literal["decide", "read"]
"""What a person may do: read and decide, or only read."""


_TRIES = 5
_MINUTE = 60.0
_MOST_ADDRESSES = 1_000

_SESSION = 12 * 3600
"""Seconds until a person has to sign in again."""


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
        token: What a person presents to sign in.
        hosts: The names under which the pages are served, in lower case, without ports.
        reader_token: What a person presents who may only read; `None` if there are no such people.
    """

    def __init__(self, token: str, hosts: Collection[str], reader_token: str | None = None) -> None:
        self._token = token.encode()
        self._roles: dict[Role, bytes] = {"decide": self._token}
        if reader_token is not None:
            self._roles["read"] = reader_token.encode()
        self._hosts = frozenset(hosts)
        # Cookies do not tell ports apart: two consoles of one machine have two names.
        self._name = f"callslip_{hashlib.sha256(self._token).hexdigest()[:12]}"
        self._failed: dict[str, deque[float]] = {}
        # Sessions that a person has ended, with the time at which they would have.
        self._ended: dict[str, int] = {}

    def check_host(self, request: Request) -> None:
        """Check the name that was asked for, so that no name of another site leads here.

        Raises:
            Denied: It is none of the hosts.
        """
        given = request.headers.get("host", "")
        place = place_of(given, "http")
        if place is None or place[0] not in self._hosts:
            raise Denied(
                421, f"this console is not served under the name {given!r}: pass it in hosts="
            )

    def role(self, request: Request) -> Role:
        """Return what the person of a request may do.

        Raises:
            Denied: Nobody is signed in, or not any more.
        """
        given = request.cookies.get(self._name, "")
        role, _, rest = given.partition(".")
        until = rest.partition(".")[0]
        for known in self._roles:
            if role == known and until.isascii() and until.isdecimal() and len(until) < 12:
                due = self._session(known, int(until), rest.split(".")[1] if "." in rest else "")
                is_right = hmac.compare_digest(given.encode(errors="replace"), due.encode())
                if is_right and int(until) > time.time() and given not in self._ended:
                    return known
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
        origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
        return is_own_origin(origin, host, request.url.scheme)

    def sign_in(self, request: Request, token: str, answer: Response) -> Response:
        """Return the answer with the cookie, if the token is right.

        Wrong tokens keep nobody out who has the right one: behind a proxy, all share one address.

        Raises:
            Denied: It is wrong.
        """
        if request.headers.get("sec-fetch-dest", "document") != "document":
            # An image of any other site would take the tries of its reader.
            raise Denied(403, "sign in on a page of its own")
        given = token.encode(errors="replace")
        # All of them are compared, so that the time tells nothing.
        found = [role for role, due in self._roles.items() if hmac.compare_digest(given, due)]
        if not found:
            self._count_wrong(request)
            raise Denied(401, "This is not the token of this console.")
        until = int(time.time()) + _SESSION
        self._set(request, answer, self._session(found[0], until, secrets.token_hex(8)), _SESSION)
        return answer

    def sign_out(self, request: Request, answer: Response) -> Response:
        """Return the answer without the cookie. The session has ended, wherever it was kept."""
        given = request.cookies.get(self._name, "")
        now = int(time.time())
        self._ended = {one: until for one, until in self._ended.items() if until > now}
        self._ended[given] = now + _SESSION
        self._set(request, answer, "", 0)
        return answer

    def _session(self, role: Role, until: int, key: str) -> str:
        """Return the value of a cookie. It needs no memory, and stays right after a restart."""
        said = f"{role}.{until}.{key}"
        return f"{said}.{hmac.digest(self._roles[role], said.encode(), 'sha256').hex()}"

    def _set(self, request: Request, answer: Response, value: str, seconds: int) -> None:
        answer.set_cookie(
            self._name,
            value,
            max_age=seconds,
            path=base_of(request) or "/",
            secure=is_secure(request.url.scheme, request.headers.get("x-forwarded-proto", "")),
            httponly=True,
            samesite="strict",
        )

    def _count_wrong(self, request: Request) -> None:
        address = request.client.host if request.client is not None else ""
        failed = self._failed.setdefault(address, deque())
        now = time.monotonic()
        while failed and failed[0] < now - _MINUTE:
            failed.popleft()
        if len(failed) >= _TRIES:
            raise Denied(429, "Too many wrong tokens: try again in a minute.")
        failed.append(now)
        while len(self._failed) > _MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]


def base_of(request: Request) -> str:
    """Return the beginning of all addresses: the path that the console is mounted at."""
    return quote(str(request.scope.get("root_path", "")).rstrip("/"))
