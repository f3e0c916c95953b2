"""A guard before an application of ASGI: no other site reaches it through a browser."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from callslip._base.option_names import knows_names_of_class
from callslip.errors import UsageError
from callslip.web._options import LOOPBACK, checked_hosts, checked_paths, checked_token
from callslip.web._requests import is_own_origin, is_secure, place_of

__all__ = ["Guard"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@knows_names_of_class()
class Guard:
    """Refuses requests for other names, requests of other sites, and those without the token.

    A request for a name that is not in `hosts` gets 421, so that no other site can point its name
    here. One that may change something, and comes from a page of another origin, gets 403; a
    program that is no browser says no origin, and is let through. With a token, a request without
    it gets 401: pass it as `Authorization: Bearer …`, or open the page once with `?token=…`, which
    sets a cookie for this session of the browser.

    Args:
        app: The application. Its lifespan is passed on.
        hosts: The names under which it is served; ports in them do not count. Default: those of
            this machine.
        token: What a caller presents, of 32 characters or more. Default: none is needed.
        public: Paths that need neither the token nor an origin, such as a webhook that checks a
            signature of its own. They need a name of `hosts` too.

    Raises:
        UsageError: An option has a wrong value.
    """

    def __init__(
        self,
        app: Any,
        *,
        hosts: Collection[str] = LOOPBACK,
        token: str | None = None,
        public: Collection[str] = (),
    ) -> None:
        if not callable(app):
            raise UsageError(
                f"expected an application of ASGI: got {type(app).__name__}; pass its object, such "
                "as FastAPI()"
            )
        self._app = app
        self._hosts = frozenset(checked_hosts(hosts))
        self._public = frozenset(checked_paths("public", public))
        self._token = None if token is None else checked_token(token)
        key = (token or "").encode()
        self._cookie = f"callslip_web_{hashlib.sha256(key).hexdigest()[:12]}"
        self._value = hmac.digest(key, b"callslip web", "sha256").hex()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        refused = self._refusal(scope, headers)
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif (place := self._signed_in(scope)) is not None and refused[0] == 401:
            await _answer(send, 303, {"location": place, "set-cookie": self._set(scope, headers)})
        else:
            status, message = refused
            body = json.dumps({"error": message}).encode()
            await _answer(send, status, {"content-type": "application/json"}, body)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        scheme: str = scope["scheme"]
        scheme = {"ws": "http", "wss": "https"}.get(scheme, scheme)
        place = place_of(host, scheme)
        if place is None or place[0] not in self._hosts:
            return 421, f"this application is not served under the name {host!r}: pass it in hosts="
        if scope["path"] in self._public:
            return None
        is_bearer = self._token is not None and _is_same(
            headers.get("authorization", ""), f"Bearer {self._token}"
        )
        if not is_bearer and not self._is_own(scope, headers, scheme):
            return 403, "this is only taken from a page of this application"
        if self._token is None or is_bearer or _is_same(self._given(headers), self._value):
            return None
        return 401, "the token is missing: open the page with ?token=…, or pass it as Bearer"

    @staticmethod
    def _is_own(scope: Scope, headers: dict[str, str], scheme: str) -> bool:
        """Whether no page of another origin makes a request that may change something."""
        if scope["type"] == "http" and scope["method"] in _SAFE:
            return True
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site not in {None, "same-origin", "none"}:
            return False
        return origin is None or is_own_origin(origin, headers.get("host", ""), scheme)

    def _given(self, headers: dict[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _signed_in(self, scope: Scope) -> str | None:
        """Return the address without the token, if it has the right one."""
        if self._token is None or scope["method"] != "GET":
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and _is_same(text, self._token) for name, text in pairs):
            return None
        query = urlencode([pair for pair in pairs if pair[0] != "token"])
        # One slash: two would begin the name of another host.
        path = "/" + quote(scope["path"]).lstrip("/")
        return f"{path}?{query}" if query else path

    def _set(self, scope: Scope, headers: dict[str, str]) -> str:
        secure = is_secure(scope["scheme"], headers.get("x-forwarded-proto", ""))
        return (
            f"{self._cookie}={self._value}; HttpOnly; Path=/; SameSite=Strict"
            f"{'; Secure' if secure else ''}"
        )


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers; of one that stands twice, nothing that would be taken for it."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found and key != "cookie" else text
    return found


def _is_same(given: str, due: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), due.encode())


async def _answer(send: Send, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    always = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
    pairs = [(name.encode(), text.encode("latin-1")) for name, text in (always | headers).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
