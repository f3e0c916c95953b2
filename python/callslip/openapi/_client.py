"""Requests sent, and responses as outcomes of calls."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from typing import Any

from callslip._core import Document
from callslip._json import to_json
from callslip._secrets import Secrets
from callslip.errors import ToolError
from callslip.openapi._auth import Auth, resolved, texts_of
from callslip.openapi._response import content_of, status_line
from callslip.openapi._server import Servers
from callslip.tools import Fail, Outcome

__all__ = ["Client"]


class Client:
    """Carries the operations of a document out by requests.

    Args:
        document: Plans them.
        client: Sends them; `None` for a client of its own.
        secrets: By scheme.
        servers: What goes before the paths.
        timeout: Seconds after which a call is given up.
        max_bytes: Of a response's body.
        validates: Whether JSON responses are held against the document.

    Raises:
        ToolError: The client can't send, or there is none.
    """

    def __init__(
        self,
        document: Document,
        client: Any,
        *,
        secrets: Mapping[str, Auth],
        servers: Servers,
        timeout: float,
        max_bytes: int,
        validates: bool,
    ) -> None:
        if client is not None and not callable(getattr(client, "request", None)):
            raise ToolError(
                "client must have request(method, url, headers=…, content=…) as httpx clients do: "
                f"got {type(client).__name__}"
            )
        self.servers = servers
        self._document = document
        self._client = client
        self._own = client is None
        self._secrets = secrets
        # The last of each scheme, as far as they are known yet.
        self._known = {name: secret for name, secret in secrets.items() if not callable(secret)}
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._validates = validates

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Carry an operation out. Returns the outcome of the call, which holds no secret.

        Raises:
            Fail: It can't be carried out; in words that hold no secret either.
        """
        schemes = self._document.credentials(name, list(self._secrets))
        secrets = await resolved(self._secrets, schemes)
        self._known.update(secrets)
        # Also those that this call doesn't carry: a server may tell what it was told before.
        hiding = Secrets(texts_of({*secrets, *self._known.items()}))
        try:
            with hiding.in_use():
                return await self._call(name, arguments, secrets, hiding)
        except Exception as error:  # noqa: BLE001  # whatever a client raises fails the call
            # What it came from is logged, and may quote the request.
            raise Fail(hiding.hidden(_told(error))) from _cause(error, hiding)

    async def _call(
        self, name: str, arguments: Mapping[str, Any], secrets: Any, hiding: Secrets
    ) -> Outcome:
        planned = self._document.request(name, to_json(arguments), self.servers.base(name), secrets)
        status, reason, headers, body = await self._send(*planned)
        succeeded = 200 <= status < 300
        if succeeded and self._validates and body:
            media, text = headers.get("content-type", ""), body.decode("utf-8", "replace")
            problems = self._document.check_response(name, status, media, text)
            if problems:
                raise Fail(f"the response is not as the document says: {'; '.join(problems)}")
        content = content_of(status, headers, body)
        # In the values: a mark in the middle of a number would make it no JSON.
        found = hiding.hidden_json(content.json)
        if succeeded:
            return "ok", found
        said = status_line(status, reason, headers)
        told = f"{said}: {content.text or found}" if body else said
        # Half a surrogate pair has no place in UTF-8, and so none in a log.
        plain = hiding.hidden(told.rstrip(".")).encode(errors="replace").decode()
        return "error", f"Error calling tool '{name}': {plain}."

    async def _send(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, str, Mapping[str, str], bytes]:
        client = self._ready()
        # Not as text, of which clients take ASCII only.
        encoded = [(name.encode(), value.encode()) for name, value in headers]
        request: dict[str, Any] = {"headers": encoded, "content": body or None}
        if hasattr(client, "end"):
            # What an app in this process answers is whole before it can be looked at.
            request["max_bytes"] = self._max_bytes
        stream = getattr(client, "stream", None)
        if not callable(stream):
            response = client.request(method, url, **request)
            if hasattr(response, "__await__"):
                response = await response
            return self._whole(response, bytes(response.content))
        if inspect.iscoroutinefunction(client.request):
            async with stream(method, url, **request) as response:
                read = bytearray()
                async for part in response.aiter_bytes():
                    read += part
                    self._check_size(read)
                return self._whole(response, bytes(read))
        from callslip._drive import in_thread

        return await in_thread(self._send_sync, client, method, url, request)

    def _send_sync(
        self, client: Any, method: str, url: str, request: dict[str, Any]
    ) -> tuple[int, str, Mapping[str, str], bytes]:
        ends = monotonic() + self._timeout
        with client.stream(method, url, **request) as response:
            read = bytearray()
            for part in response.iter_bytes():
                read += part
                self._check_size(read)
                if monotonic() > ends:
                    # Nobody waits any more: the thread and its connection are not to stay.
                    raise TimeoutError(f"no end of the response within {self._timeout:g} seconds")
            return self._whole(response, bytes(read))

    def _whole(self, response: Any, body: bytes) -> tuple[int, str, Mapping[str, str], bytes]:
        self._check_size(body)
        headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
        reason = str(getattr(response, "reason_phrase", "") or "")
        return int(response.status_code), reason, headers, body

    def _check_size(self, body: bytes | bytearray) -> None:
        if len(body) > self._max_bytes:
            raise Fail(f"the response has more than {self._max_bytes:,} bytes: ask for less of it")

    def _ready(self) -> Any:
        if self._client is None:
            try:
                import httpx
            except ImportError:
                raise ToolError(
                    "no client to send with: pip install 'callslip[openapi]', or say client=…"
                ) from None
            # What a server says in one run is not to be said in another.
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
            self._client = httpx.Client(timeout=self._timeout, cookies=no_cookies)
            # Whoever forgets to close it leaves no connection behind.
            weakref.finalize(self, self._client.close)
        return self._client

    async def aclose(self) -> None:
        """Close the client of its own, or end the app in this process."""
        if hasattr(self._client, "end"):
            await self._client.end()
        elif self._own:
            self.close()

    def close(self) -> None:
        """Do the same from sync code."""
        if hasattr(self._client, "end_sync"):
            self._client.end_sync()
        elif self._own and self._client is not None:
            self._client.close()
            self._client = None


def _cause(error: Exception, secrets: Secrets) -> Exception | None:
    """Return what may be logged as the cause: the error, where none of it quotes a secret."""
    import traceback

    text = "".join(traceback.format_exception(error))
    return error if secrets.hidden(text) == text else None


def _told(error: Exception) -> str:
    if isinstance(error, Fail):
        return str(error)
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | ToolError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
