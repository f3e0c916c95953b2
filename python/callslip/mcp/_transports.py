"""Transports to an MCP server: a process, or HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import PurePath
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from callslip._base import _lazy
from callslip._base.options import check_dict_of_texts, check_text, check_type
from callslip._base.redaction import Secrets
from callslip.errors import ToolError, UsageError
from callslip.mcp._incoming import MessageListener, ObservedStream, repaired_body
from callslip.mcp._secrets import public_url, server_secrets
from callslip.mcp._stderr import ServerStderr

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import httpx2

__all__ = [
    "Delivery",
    "HttpTransport",
    "StdioTransport",
    "Streams",
    "Transport",
    "delivery",
]

Streams: TypeAlias = "tuple[Any, Any]"
"""The streams for the SDK: one to read messages from, and one to write them to."""

_SDK_ERRORS = ("SSE stream ", "Failed to parse JSON response: ", "Failed to parse SSE message: ")
"""Beginnings of the messages of errors that the SDK makes of answers over HTTP."""

_POLL = 0.005
_LARGEST_EVENT = 1 << 28
"""Bytes of one message. The SDK's own bound of 1 MB is less than a photograph."""


class Delivery:
    """The delivery of the messages of one call, over HTTP.

    Attributes:
        was_sent: Whether sending of any message has begun.
        refusal: The status of a message as text, if one was refused.
        status: The status of the last message; 0 before there is one.
        headers: The headers of its response, with names in small letters.
        is_forgotten: Whether it was refused because the server no longer knows the session.
    """

    __slots__ = ("headers", "is_forgotten", "refusal", "status", "was_sent")

    def __init__(self) -> None:
        self.was_sent = False
        self.refusal = ""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_forgotten = False

    async def trace(self, event: str, _: object) -> None:
        """Record the events of the HTTP client."""
        if event.endswith("send_request_headers.started"):
            self.was_sent = True


delivery: ContextVar[Delivery | None] = ContextVar("callslip_mcp_delivery", default=None)
"""The delivery of the current call. The SDK sends each message in its sender's context."""


class Transport(Protocol):
    """A connection to a server."""

    name: str
    secrets: Secrets

    def open(self, listener: MessageListener) -> AbstractAsyncContextManager[Streams]:
        """Connect for as long as the context is entered. Each call makes a new connection."""

    async def last_output(self) -> str:
        """Return the last output of the server beside its messages; an empty text for none."""

    async def aclose(self) -> None:
        """Close everything that sessions share."""


class StdioTransport:
    """A server that runs as a process, with messages on its standard input and output.

    Args:
        command: Of the server.
        args: Its arguments.
        env: Its environment variables beside those few that every program needs.
        cwd: Its working directory; default this program's.
        name: Default: the script's, else the command's.
    """

    def __init__(
        self,
        command: str | os.PathLike[str],
        args: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        name: str | None,
    ) -> None:
        check_type("command", command, (str, os.PathLike), "a program, such as 'python'")
        _check_args(args)
        if env is not None:
            check_dict_of_texts("env", env)
        check_type("cwd", cwd, (str, os.PathLike, NoneType), "a path or None")
        check_type("name", name, (str, NoneType), "a text or None")
        self._command = os.fspath(command)
        self._args = [os.fspath(one) for one in args]
        self._env = None if env is None else dict(env)
        self._cwd = cwd
        self.name = name or _program_name(self._command, self._args)
        self.secrets = server_secrets(env=env)
        self._errors: ServerStderr | None = None

    @asynccontextmanager
    async def open(self, listener: MessageListener) -> AsyncIterator[Streams]:
        """Start the server."""
        cwd = None if self._cwd is None else os.fspath(self._cwd)
        parameters = _lazy.mcp.StdioServerParameters(
            command=self._command,
            args=self._args,
            env=self._env,
            cwd=cwd,
            # After one byte that is no text, the SDK would read nothing more.
            encoding_error_handler="replace",
        )
        errors = self._errors = ServerStderr(self.name, self.secrets)
        async with AsyncExitStack() as stack:
            try:
                process = _lazy.mcp.stdio_client(parameters, errlog=errors.pipe)
                reading, writing = await stack.enter_async_context(process)
            finally:
                errors.start()
            yield ObservedStream(reading, listener), writing

    async def last_output(self) -> str:
        """Return the last lines of its standard error, once all of them are read."""
        if self._errors is None:
            return ""
        # The pipe ends with the process, unless a child process keeps it open.
        for _ in range(20):
            if self._errors.is_over:
                break
            await asyncio.sleep(_POLL)
        quoted = self._errors.quote()
        return f"its last words: {quoted}" if quoted else ""

    async def aclose(self) -> None:
        """Do nothing: sessions share nothing."""


async def _repair_body(response: httpx2.Response) -> None:
    # The SDK reads no answer with half of a character in it.
    if "content-encoding" not in response.headers:
        stream = response.stream
        if isinstance(stream, _lazy.httpx2.AsyncByteStream):
            response.stream = repaired_body(stream)


def _check_args(args: object) -> None:
    # Not the values: they may be secrets.
    if isinstance(args, str):
        raise UsageError("expected args as a list of texts: got a text: pass [args]")
    if not isinstance(args, Sequence):
        raise UsageError(f"expected args as a list of texts: got {type(args).__name__}")
    kinds = {type(one).__name__ for one in args if not isinstance(one, str | os.PathLike)}
    if kinds:
        raise UsageError(
            f"expected args as a list of texts: got a list with {', '.join(sorted(kinds))}"
        )


def _program_name(command: str, args: Sequence[str]) -> str:
    """Return the name of the program or script, without other arguments."""
    scripts = [one for one in args if one.endswith((".py", ".js", ".mjs", ".ts"))]
    return PurePath(scripts[0] if scripts and not scripts[0].startswith("-") else command).name


class HttpTransport:
    """A server that is reached over HTTP.

    Args:
        url: Its address.
        headers: Sent with each request.
        auth: Authenticates each request.
        client: Sends the requests, in place of one that is made for each session.
        name: Default: the address's host.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None,
        auth: httpx2.Auth | None,
        client: httpx2.AsyncClient | None,
        name: str | None,
    ) -> None:
        check_text("url", url)
        check_type("name", name, (str, NoneType), "a text or None")
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"expected an address that begins with http:// or https://: got {url}; pass it "
                "with one of them"
            )
        if headers is not None:
            check_dict_of_texts("headers", headers)
        if client is not None and not hasattr(client, "event_hooks"):
            kind = type(client).__name__
            raise UsageError(f"expected the client to be an httpx2.AsyncClient: got {kind}")
        if client is not None and headers:
            raise UsageError(
                "expected headers or a client, not both: pass the headers to the client"
            )
        if client is not None and auth is not None:
            raise UsageError("expected auth or a client, not both: pass auth to the client")
        # Not by its class: the import is slow.
        if auth is not None and not hasattr(auth, "async_auth_flow"):
            raise UsageError(f"expected auth to be an httpx2.Auth: got {type(auth).__name__}")
        self._url = url
        self._headers = dict(headers or {})
        self._auth = auth
        self._client = client
        self.name = name or public_url(url).split("/")[2]
        secret = dict(headers or {}) if client is None else dict(client.headers)
        self.secrets = server_secrets(headers=secret, url=url)
        self._refused = ""

    @asynccontextmanager
    async def open(self, listener: MessageListener) -> AsyncIterator[Streams]:
        """Open the streams; nothing is sent yet."""
        self._refused = ""
        # Tasks that send requests inherit this context.
        self.secrets.redact_logs()
        async with AsyncExitStack() as stack:
            client = self._client
            if client is None:
                # No read timeout: calls have their own time limit.
                timeout = _lazy.httpx2.Timeout(30, read=None)
                own = _lazy.httpx2.AsyncClient(
                    headers=self._headers, auth=self._auth, timeout=timeout
                )
                client = await stack.enter_async_context(own)
            elif client.is_closed:
                raise ToolError("its client was closed with it: make the server anew")
            for event, hook in (
                ("request", self._trace_request),
                ("response", self._record_refusal),
                ("response", _repair_body),
            ):
                hooks = client.event_hooks[event]
                hooks.append(hook)
                stack.callback(hooks.remove, hook)
            streams = _lazy.mcp_streamable_http.streamable_http_client(
                self._url, http_client=client, max_sse_event_size=_LARGEST_EVENT
            )
            reading, writing = await stack.enter_async_context(streams)
            yield ObservedStream(reading, listener, _SDK_ERRORS), writing

    async def _trace_request(self, request: httpx2.Request) -> None:
        if (credentials := request.headers.get("authorization")) is not None:
            # The client's authentication has found them only now.
            self.secrets.add([credentials, credentials.rpartition(" ")[2]])
        sending = delivery.get()
        if sending is not None and request.method == "POST":
            # Keep a trace of the program's own. Then every message counts as sent.
            is_ours = request.extensions.setdefault("trace", sending.trace) == sending.trace
            sending.was_sent = sending.was_sent or not is_ours

    async def _record_refusal(self, response: httpx2.Response) -> None:
        # The SDK does not report the status of a refused message.
        if response.request.method != "POST":
            return
        is_refused = response.status_code >= 400
        status = f"HTTP status {response.status_code} {response.reason_phrase}"
        self._refused = status if is_refused else ""
        if (sent := delivery.get()) is None:
            return
        sent.status, sent.headers = response.status_code, dict(response.headers)
        if is_refused:
            sent.refusal = status
            # By the specification, this means an unknown session, whatever the body contains.
            has_session = "mcp-session-id" in response.request.headers
            sent.is_forgotten = response.status_code == 404 and has_session

    async def last_output(self) -> str:
        """Return the status of the last answer, if that was a refusal."""
        return self._refused

    async def aclose(self) -> None:
        """Close the client, whose connections belong to the private loop."""
        if self._client is not None:
            await self._client.aclose()
