"""Calls of operations as HTTP requests, and responses as outcomes."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from typing import Any

from callslip._base import _lazy
from callslip._base.backoff import retry_after
from callslip._base.connections import unreached
from callslip._base.failure import (
    BUSY_STATUSES,
    TRANSIENT_STATUSES,
    describe_failure,
    is_transient,
    log_failure,
    message_of,
)
from callslip._base.json import to_json
from callslip._base.options import check_flag, check_seconds, check_whole
from callslip._base.redaction import Secrets
from callslip._core import Document
from callslip._threads.pool import in_thread
from callslip.errors import ToolError
from callslip.openapi._app import App
from callslip.openapi._auth import (
    Auth,
    AuthError,
    client_has_secrets,
    resolve_secrets,
    secrets_of_client,
    texts_in_headers,
    texts_of,
)
from callslip.openapi._redirects import Redirects, Sent
from callslip.openapi._response import content_of, retry_hint, status_line, with_headers
from callslip.openapi._server import Servers
from callslip.tools import Fail, Outcome
from callslip.tools._callable import is_async

__all__ = ["Client", "ResponseOptions"]


@dataclass(frozen=True, slots=True)
class ResponseOptions:
    """Options for the responses to requests.

    Attributes:
        timeout: Seconds until a request fails.
        max_bytes: The largest body, in bytes.
        validates: Whether JSON responses are checked against the document.

    Raises:
        UsageError: An option has a wrong value.
    """

    timeout: float
    max_bytes: int
    validates: bool

    def __post_init__(self) -> None:
        check_seconds("timeout", self.timeout, zero=False)
        check_whole("max_response_bytes", self.max_bytes, 1)
        check_flag("validate_responses", self.validates)


class Client:
    """Performs the operations of a document by requests.

    Args:
        document: Turns calls into requests.
        client: Sends the requests. `None`: an `httpx.Client` is created at the first request.
        secrets: Secrets by the name of their security scheme.
        headers: Headers of each request. Their values are secrets too.
        servers: The base URL of each operation.
        responses: Options for the responses.
        closed: Operations that a redirect must not lead to.
    """

    def __init__(
        self,
        document: Document,
        client: Any,
        *,
        secrets: Mapping[str, Auth],
        headers: Mapping[str, str],
        servers: Servers,
        responses: ResponseOptions,
        closed: Iterable[str] = (),
    ) -> None:
        self.servers = servers
        self._document = document
        self._client = client
        self._own = client is None
        self._secrets = secrets
        # All secrets so far: a server may return in one call what it received in another.
        self._known_secrets = Secrets(
            [
                *texts_of(secret for secret in secrets.values() if not callable(secret)),
                *texts_in_headers(headers.items(), every=True),
            ]
        )
        self._headers = dict(headers)
        self.responses = responses
        self._redirects = Redirects(closed)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Perform an operation. The outcome contains no secret.

        Raises:
            Fail: The operation failed. The message contains no secret.
        """
        try:
            trusted = self._is_trusted(name)
            schemes = self._document.credentials(name, list(self._secrets)) if trusted else []
            secrets = await resolve_secrets(self._secrets, schemes)
            self._known_secrets.add(texts_of(secret for _, secret in secrets))
            self._known_secrets.add(secrets_of_client(self._client))
            with self._known_secrets.redacting_logs():
                return await self._call(name, arguments, secrets)
        except Exception as error:  # noqa: BLE001  # whatever a client raises fails the call
            # The cause is logged, and may quote the request.
            failure: Fail = Fail(self._known_secrets.redact(_failure_message(error)))
            failure.is_transient = is_transient(error)
            raise failure from self._cause(error)

    def _is_trusted(self, name: str) -> bool:
        """Whether the server of an operation may receive secrets.

        Raises:
            Fail: It may not, and the client of the program would send its own; or nothing may be
                sent there.
        """
        base = self.servers.base(name)
        if self.servers.is_out_of_bounds(base):
            raise Fail(
                f"not sent: only the document names {self.servers.host(name)}, an address within "
                "this network (trusted_hosts)"
            )
        if self.servers.is_trusted(base):
            return True
        if client_has_secrets(self._client):
            raise Fail(
                "not sent: the client of this document sends secrets, which "
                f"{self.servers.host(name)} may not receive (trusted_hosts)"
            )
        return False

    async def _call(self, name: str, arguments: Mapping[str, Any], secrets: Any) -> Outcome:
        planned = self._document.request(name, to_json(arguments), self.servers.base(name), secrets)
        request = Sent(planned.method, planned.url, planned.headers, planned.body)
        for _ in range(self._redirects.most + 1):
            status, reason, headers, body = await self._send(name, request)
            following = self._redirects.next(request, status, headers)
            if following is None:
                break
            request = following
        succeeded = 200 <= status < 300
        if succeeded and self.responses.validates and body:
            media, text = headers.get("content-type", ""), body.decode("utf-8", "replace")
            problems = self._document.check_response(name, status, media, text)
            if problems:
                raise Fail(f"the response is not as the document says: {'; '.join(problems)}")
        # It is the name of a file, which is kept as it is.
        named = self._known_secrets.redact(headers.get("content-disposition", ""))
        content = content_of(status, {**headers, "content-disposition": named}, body)
        if succeeded:
            content = with_headers(content, status, headers, body, etag=self._has_preconditions)
        # Value by value: a mark inside a number would not be JSON.
        found = self._known_secrets.redact_json(content.json)
        if succeeded:
            return Outcome.Ok(found, list(content.parts))
        said = status_line(status, reason, headers)
        told = f"{said}: {content.text or found}" if body else said
        # The log is UTF-8, which cannot contain half of a surrogate pair.
        plain = self._known_secrets.redact(told.rstrip(".")).encode(errors="replace").decode()
        told = f"Error calling tool '{name}': {plain}."
        if status in TRANSIENT_STATUSES:
            advice = retry_hint("GET" if status in BUSY_STATUSES else name)
            return Outcome.Error(f"{told} {advice}", transient=True, wait=retry_after(headers))
        return Outcome.Error(told)

    @cached_property
    def _has_preconditions(self) -> bool:
        """Whether an operation takes the version of what it changes, which `ETag` tells."""
        return '"if-match"' in self._document.to_json().lower()

    async def _send(
        self, operation: str, planned: Sent
    ) -> tuple[int, str, Mapping[str, str], bytes]:
        method, url, headers, body = planned
        client = self._ready_client()
        # As bytes, because clients accept only ASCII text.
        own = {name.lower() for name in self._headers}
        sent = headers
        if self.servers.is_trusted(self.servers.base(operation)):
            sent = [pair for pair in headers if pair[0].lower() not in own]
            sent += self._headers.items()
        encoded = [(name.encode(), value.encode()) for name, value in sent]
        request: dict[str, Any] = {"headers": encoded, "content": body or None}
        if hasattr(client, "follow_redirects"):
            # A client would follow them with the secrets to other hosts.
            request["follow_redirects"] = False
        if isinstance(client, App):
            # A response of an app in this process cannot be streamed.
            request["max_bytes"] = self.responses.max_bytes
            response, failure = await client.request(method, url, **request)
            answer = self._checked_response(response, bytes(response.content))
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
                return self._checked_response(response, bytes(read))
        if is_async(client.request):
            response = await client.request(method, url, **request)
        else:
            response = await in_thread(partial(client.request, method, url, **request))
            if hasattr(response, "__await__"):
                response = await response
        return self._checked_response(response, bytes(response.content))

    def _read(self, opened: Any) -> tuple[int, str, Mapping[str, str], bytes]:
        ends = monotonic() + self.responses.timeout
        with opened as response:
            read = bytearray()
            for part in response.iter_bytes():
                read += part
                self._check_size(read)
                if monotonic() > ends:
                    # The caller has stopped waiting: free the thread and its connection.
                    raise TimeoutError(
                        f"the response did not finish within {self.responses.timeout:g} seconds"
                    )
            return self._checked_response(response, bytes(read))

    def _checked_response(
        self, response: Any, body: bytes
    ) -> tuple[int, str, Mapping[str, str], bytes]:
        self._check_size(body)
        headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
        reason = str(getattr(response, "reason_phrase", "") or "")
        return int(response.status_code), reason, headers, body

    def _check_size(self, body: bytes | bytearray) -> None:
        if len(body) > self.responses.max_bytes:
            raise Fail(
                f"the response has more than {self.responses.max_bytes:,} bytes: ask for less of it"
            )

    def _ready_client(self) -> Any:
        if self._client is None:
            try:
                httpx = _lazy.httpx
            except ImportError:
                raise ToolError(
                    "no client to send with: pip install 'callslip[openapi]', or pass client=…"
                ) from None
            # Cookies of one run must not be sent in another.
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
            self._client = httpx.Client(timeout=self.responses.timeout, cookies=no_cookies)
            # Closes the connections of a client that the program forgot to close.
            weakref.finalize(self, self._client.close)
        return self._client

    async def aclose(self) -> None:
        """Close the client if it was created here, or end the app in this process."""
        if isinstance(self._client, App):
            await self._client.end()
        elif self._own:
            self.close()

    def close(self) -> None:
        """Like `aclose`, from sync code."""
        if isinstance(self._client, App):
            self._client.end_sync()
        elif self._own and self._client is not None:
            self._client.close()
            self._client = None

    def _cause(self, error: Exception) -> Exception | None:
        """Return the error as the cause for the log, unless it quotes a secret."""
        text = "".join(traceback.format_exception(error))
        return error if self._known_secrets.redact(text) == text else None

    def _log(self, name: str, error: Exception) -> None:
        """Log an exception of an app that it raised after its response."""
        told = f"{type(error).__name__}: {message_of(error)}"
        log_failure(name, self._cause(error) or Fail(self._known_secrets.redact(told)))


def _failure_message(error: Exception) -> str:
    if isinstance(error, Fail | AuthError):
        return message_of(error)
    text = describe_failure(error)
    if (where := unreached(error)) is not None:
        text = f"{text} ({where})"
    if isinstance(error, ValueError | ToolError) and message_of(error):
        return text.partition(": ")[2]
    return text
