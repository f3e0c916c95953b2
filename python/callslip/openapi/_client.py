"""Requests sent, and responses as outcomes of calls."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Mapping
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from typing import Any

from callslip import _lazy
from callslip._core import Document
from callslip._failure import Passing, in_one_line, is_transient, log_failure, words_of
from callslip._json import to_json
from callslip._redaction import Secrets
from callslip._threads.pool import in_thread
from callslip.errors import ToolError
from callslip.openapi._app import App
from callslip.openapi._auth import (
    Auth,
    AuthError,
    resolved,
    secrets_of_client,
    texts_in_headers,
    texts_of,
)
from callslip.openapi._response import TRANSIENT, Content, again, content_of, status_line
from callslip.openapi._server import Servers
from callslip.tools import Fail, Outcome
from callslip.tools._callable import is_async

__all__ = ["Client"]


class Client:
    """Carries the operations of a document out by requests.

    Args:
        document: Plans them.
        client: Sends them; `None` for a client of its own.
        secrets: By scheme.
        headers: Sent with each request; secrets too.
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
        headers: Mapping[str, str],
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
        # All that are known yet: a server may tell in one call what it was told in another.
        self._hiding = Secrets(
            [
                *texts_of(secret for secret in secrets.values() if not callable(secret)),
                *texts_in_headers(headers.items(), every=True),
            ]
        )
        self._headers = dict(headers)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._validates = validates

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Carry an operation out. Returns the outcome of the call, which holds no secret.

        Raises:
            Fail: It can't be carried out; in words that hold no secret either.
        """
        try:
            trusted = self.servers.is_trusted(self.servers.base(name))
            schemes = self._document.credentials(name, list(self._secrets)) if trusted else []
            secrets = await resolved(self._secrets, schemes)
            self._hiding.add(texts_of(secret for _, secret in secrets))
            self._hiding.add(secrets_of_client(self._client))
            with self._hiding.in_use():
                return await self._call(name, arguments, secrets)
        except Exception as error:  # noqa: BLE001  # whatever a client raises fails the call
            # What it came from is logged, and may quote the request.
            failure: Fail = Fail(self._hiding.hidden(_told(error)))
            failure.is_transient = is_transient(error)
            raise failure from self._cause(error)

    async def _call(self, name: str, arguments: Mapping[str, Any], secrets: Any) -> Outcome:
        planned = self._document.request(name, to_json(arguments), self.servers.base(name), secrets)
        status, reason, headers, body = await self._send(name, *planned)
        succeeded = 200 <= status < 300
        if succeeded and self._validates and body:
            media, text = headers.get("content-type", ""), body.decode("utf-8", "replace")
            problems = self._document.check_response(name, status, media, text)
            if problems:
                raise Fail(f"the response is not as the document says: {'; '.join(problems)}")
        content = content_of(status, headers, body)
        if succeeded and (link := headers.get("link")):
            # The next page is told nowhere else.
            content = Content(f'{{"body":{content.json},"link":{to_json(link)}}}')
        # In the values: a mark in the middle of a number would make it no JSON.
        found = self._hiding.hidden_json(content.json)
        if succeeded:
            return "ok", found
        said = status_line(status, reason, headers)
        told = f"{said}: {content.text or found}" if body else said
        # Half a surrogate pair has no place in UTF-8, and so none in a log.
        plain = self._hiding.hidden(told.rstrip(".")).encode(errors="replace").decode()
        told = f"Error calling tool '{name}': {plain}."
        if status in TRANSIENT:
            # Who was too busy has done nothing.
            advice = again("GET" if status in (425, 429, 503) else name)
            told = Passing(f"{told} {advice}")
        return "error", told

    async def _send(
        self, operation: str, method: str, url: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, str, Mapping[str, str], bytes]:
        client = self._ready()
        # Not as text, of which clients take ASCII only.
        own = {name.lower() for name in self._headers}
        sent = headers
        if self.servers.is_trusted(self.servers.base(operation)):
            sent = [pair for pair in headers if pair[0].lower() not in own]
            sent += self._headers.items()
        encoded = [(name.encode(), value.encode()) for name, value in sent]
        request: dict[str, Any] = {"headers": encoded, "content": body or None}
        if isinstance(client, App):
            # What an app in this process answers is whole before it can be looked at.
            request["max_bytes"] = self._max_bytes
            response, failure = await client.request(method, url, **request)
            answer = self._whole(response, bytes(response.content))
            if failure is not None:
                self._log(operation, failure)
            return answer
        if callable(getattr(client, "stream", None)):
            opened = client.stream(method, url, **request)
            if not hasattr(opened, "__aenter__"):
                return await in_thread(self._read, opened)
            async with opened as response:
                read = bytearray()
                async for part in response.aiter_bytes():
                    read += part
                    self._check_size(read)
                return self._whole(response, bytes(read))
        if is_async(client.request):
            response = await client.request(method, url, **request)
        else:
            response = await in_thread(partial(client.request, method, url, **request))
            if hasattr(response, "__await__"):
                response = await response
        return self._whole(response, bytes(response.content))

    def _read(self, opened: Any) -> tuple[int, str, Mapping[str, str], bytes]:
        ends = monotonic() + self._timeout
        with opened as response:
            read = bytearray()
            for part in response.iter_bytes():
                read += part
                self._check_size(read)
                if monotonic() > ends:
                    # Nobody waits any more: the thread and its connection are not to stay.
                    raise TimeoutError(
                        f"the response did not finish within {self._timeout:g} seconds"
                    )
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
                httpx = _lazy.httpx
            except ImportError:
                raise ToolError(
                    "no client to send with: pip install 'callslip[openapi]', or pass client=…"
                ) from None
            # What a server says in one run is not to be said in another.
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
            self._client = httpx.Client(timeout=self._timeout, cookies=no_cookies)
            # Whoever forgets to close it leaves no connection behind.
            weakref.finalize(self, self._client.close)
        return self._client

    async def aclose(self) -> None:
        """Close the client of its own, or end the app in this process."""
        if isinstance(self._client, App):
            await self._client.end()
        elif self._own:
            self.close()

    def close(self) -> None:
        """Do the same from sync code."""
        if isinstance(self._client, App):
            self._client.end_sync()
        elif self._own and self._client is not None:
            self._client.close()
            self._client = None

    def _cause(self, error: Exception) -> Exception | None:
        """Return what may be logged as the cause: the error, where none of it quotes a secret."""
        text = "".join(traceback.format_exception(error))
        return error if self._hiding.hidden(text) == text else None

    def _log(self, name: str, error: Exception) -> None:
        """Write down what an app raised that has answered all the same."""
        told = f"{type(error).__name__}: {words_of(error)}"
        log_failure(name, self._cause(error) or Fail(self._hiding.hidden(told)))


def _told(error: Exception) -> str:
    if isinstance(error, Fail | AuthError):
        return words_of(error)
    text = in_one_line(error)
    if isinstance(error, ValueError | ToolError) and words_of(error):
        return text.partition(": ")[2]
    return text
