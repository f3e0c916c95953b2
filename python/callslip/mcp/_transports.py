"""How an MCP server is reached: as a process of ours, or at an address."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from callslip import _lazy
from callslip._redaction import Secrets
from callslip.errors import ToolError
from callslip.mcp._words import ServerErrors, secrets_of, shown_url

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from contextvars import Context as ContextVariables

    import httpx2
    from mcp import MCPError
    from mcp.shared.message import SessionMessage

__all__ = [
    "Delivery",
    "HttpTransport",
    "Listener",
    "StdioTransport",
    "Streams",
    "Transport",
    "delivery",
    "is_unreadable",
]

Streams: TypeAlias = "tuple[Any, Any]"
"""What the SDK reads messages from, and writes them to."""

_UNREADABLE = "Failed to parse "
"""How the SDK begins its words for an answer that it can't read, over HTTP."""

_POLL = 0.005
_LARGEST_EVENT = 1 << 28
"""Bytes of one message. The SDK's own bound of 1 MB is less than a photograph."""


def is_unreadable(error: MCPError) -> bool:
    """Whether an answer came that can't be read. What the SDK says of it may quote the answer."""
    return error.code == _lazy.mcp_types.PARSE_ERROR and error.message.startswith(_UNREADABLE)


class Delivery:
    """What became of the messages of one call, over HTTP.

    Attributes:
        was_sent: Whether any of them was begun to be sent.
        refusal: The status in words, where the last one was refused.
        is_forgotten: Whether that was because the server does not know the session any more.
    """

    __slots__ = ("is_forgotten", "refusal", "was_sent")

    def __init__(self) -> None:
        self.was_sent = False
        self.refusal = ""
        self.is_forgotten = False

    async def trace(self, event: str, _: object) -> None:
        """Follow what the HTTP client does."""
        if event.endswith("send_request_headers.started"):
            self.was_sent = True


delivery: ContextVar[Delivery | None] = ContextVar("callslip_mcp_delivery", default=None)
"""Of the call that this code runs for. The SDK sends each message in its sender's context."""


class Listener(Protocol):
    """What is told of the messages of a server."""

    def unreadable(self) -> None:
        """Say that what came is no message."""

    def offered(self, page: dict[str, Any]) -> None:
        """Look through a page of the server's tools before the SDK does, which takes all or none.

        Leaves out of it what is no tool.
        """

    def at_end(self) -> None:
        """Say that no more will come."""


class Transport(Protocol):
    """How a server is reached."""

    name: str
    secrets: Secrets

    def open(self, listener: Listener) -> AbstractAsyncContextManager[Streams]:
        """Reach the server for as long as the context is entered. Anew each time."""

    async def last_words(self) -> str:
        """Return what the server said last, beside its messages; nothing where that is nothing."""

    async def aclose(self) -> None:
        """Close what lasts from session to session."""


class StdioTransport:
    """A server that is started, and spoken to over its standard input and output.

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
        if isinstance(args, str) or not all(isinstance(one, str | os.PathLike) for one in args):
            kinds = {type(one).__name__ for one in args} - {"str"}
            got = "a string" if isinstance(args, str) else f"a list with {', '.join(sorted(kinds))}"
            raise ToolError(f"expected args as a list of strings: got {got}")
        for variable, value in (env or {}).items():
            if not isinstance(value, str):
                kind = type(value).__name__
                raise ToolError(f"expected a string for '{variable}' of env: got {kind}")
        self._command = os.fspath(command)
        self._args = [os.fspath(one) for one in args]
        self._env = None if env is None else dict(env)
        self._cwd = cwd
        self.name = name or _program(self._command, self._args)
        self.secrets = secrets_of(env=env)
        self._errors: ServerErrors | None = None

    @asynccontextmanager
    async def open(self, listener: Listener) -> AsyncIterator[Streams]:
        """Start the server."""
        cwd = None if self._cwd is None else os.fspath(self._cwd)
        parameters = _lazy.mcp.StdioServerParameters(
            command=self._command, args=self._args, env=self._env, cwd=cwd
        )
        errors = self._errors = ServerErrors(self.name, self.secrets)
        async with AsyncExitStack() as stack:
            try:
                process = _lazy.mcp.stdio_client(parameters, errlog=errors.pipe)
                reading, writing = await stack.enter_async_context(process)
            finally:
                errors.begin()
            yield _Heard(reading, listener), writing

    async def last_words(self) -> str:
        """Return the last lines of its standard error, once all of them are read."""
        if self._errors is None:
            return ""
        # The process and its pipe end at once; a child of it may keep the pipe.
        for _ in range(20):
            if self._errors.is_over:
                break
            await asyncio.sleep(_POLL)
        quoted = self._errors.quoted()
        return f"its last words: {quoted}" if quoted else ""

    async def aclose(self) -> None:
        """Nothing lasts."""


def _program(command: str, args: Sequence[str]) -> str:
    """Name what is started, without anything else that an argument may say."""
    scripts = [one for one in args if one.endswith((".py", ".js", ".mjs", ".ts"))]
    return PurePath(scripts[0] if scripts and not scripts[0].startswith("-") else command).name


class HttpTransport:
    """A server that is spoken to over HTTP.

    Args:
        url: Its address.
        headers: Sent with each request.
        client: Sends the requests, in place of one that is made for each session.
        name: Default: the address's host.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None,
        client: httpx2.AsyncClient | None,
        name: str | None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ToolError(f"expected an address that begins with http:// or https://: got {url}")
        for header, value in (headers or {}).items():
            if not isinstance(value, str):
                kind = type(value).__name__
                raise ToolError(f"expected a string for the header '{header}': got {kind}")
        if client is not None and not hasattr(client, "event_hooks"):
            kind = type(client).__name__
            raise ToolError(f"expected the client to be an httpx2.AsyncClient: got {kind}")
        if client is not None and headers:
            raise ToolError(
                "expected headers or a client, not both: give the headers to the client"
            )
        self._url = url
        self._headers = dict(headers or {})
        self._client = client
        self.name = name or shown_url(url).split("/")[2]
        secret = dict(headers or {}) if client is None else dict(client.headers)
        self.secrets = secrets_of(headers=secret, url=url)
        self._refused = ""

    @asynccontextmanager
    async def open(self, listener: Listener) -> AsyncIterator[Streams]:
        """Open the streams; nothing is sent yet."""
        self._refused = ""
        # What sends is a task of this one's.
        self.secrets.begin()
        async with AsyncExitStack() as stack:
            client = self._client
            if client is None:
                # A call has its own time limit, and an answer may be long in coming.
                timeout = _lazy.httpx2.Timeout(30, read=None)
                own = _lazy.httpx2.AsyncClient(headers=self._headers, timeout=timeout)
                client = await stack.enter_async_context(own)
            elif client.is_closed:
                raise ToolError("its client was closed with it: make the server anew")
            for event, hook in (("request", self._follow), ("response", self._note)):
                hooks = client.event_hooks[event]
                hooks.append(hook)
                stack.callback(hooks.remove, hook)
            streams = _lazy.mcp_streamable_http.streamable_http_client(
                self._url, http_client=client, max_sse_event_size=_LARGEST_EVENT
            )
            reading, writing = await stack.enter_async_context(streams)
            yield _Heard(reading, listener), writing

    async def _follow(self, request: httpx2.Request) -> None:
        sending = delivery.get()
        if sending is not None and request.method == "POST":
            # A trace of the program's own is left alone: then nothing is known to be unsent.
            is_ours = request.extensions.setdefault("trace", sending.trace) == sending.trace
            sending.was_sent = sending.was_sent or not is_ours

    async def _note(self, response: httpx2.Response) -> None:
        # The SDK does not say with which status a message was refused.
        if response.request.method != "POST":
            return
        is_refused = response.status_code >= 400
        status = f"HTTP status {response.status_code} {response.reason_phrase}"
        self._refused = status if is_refused else ""
        if is_refused and (sent := delivery.get()) is not None:
            sent.refusal = status
            # So says the specification that the session is unknown, whatever the body says.
            has_session = "mcp-session-id" in response.request.headers
            sent.is_forgotten = response.status_code == 404 and has_session

    async def last_words(self) -> str:
        """Return the status of the last answer, if that was a refusal."""
        return self._refused

    async def aclose(self) -> None:
        """Close the client, whose connections belong to the private loop."""
        if self._client is not None:
            await self._client.aclose()


def _failed_answer(fault: ValueError) -> SessionMessage | None:
    """Return what fails the request that an unreadable answer is to, if it still says which.

    Over stdio the SDK drops such an answer, and the call would wait for its whole time.
    """
    if not isinstance(fault, _lazy.pydantic.ValidationError):
        return None
    for part in fault.errors(include_url=False, include_context=False):
        message = part["input"]
        if part["type"] == "json_invalid":
            # Python reads some of what pydantic does not, as half a surrogate pair.
            try:
                message = json.loads(message)
            except (ValueError, RecursionError):
                return None
        if isinstance(message, dict) and ("result" in message or "error" in message):
            number = message.get("id")
            if isinstance(number, int | str) and not isinstance(number, bool):
                error = _lazy.mcp_types.ErrorData(
                    code=_lazy.mcp_types.PARSE_ERROR, message=f"{_UNREADABLE}an answer"
                )
                return _lazy.mcp_message.SessionMessage(
                    _lazy.mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
                )
    return None


class _Heard:
    """Messages as they come, with somebody told of their end.

    The SDK fails what waits for an answer then, and tells nobody else.
    """

    def __init__(self, stream: Any, listener: Listener) -> None:
        self._stream = stream
        self._listener = listener

    @property
    def last_context(self) -> ContextVariables | None:
        """The context of whoever sent the last message, where the stream knows it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _Heard:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except BaseException:
            self._listener.at_end()
            raise
        if isinstance(item, ValueError):
            self._listener.unreadable()
            return _failed_answer(item) or item
        page = getattr(getattr(item, "message", None), "result", None)
        if isinstance(page, dict) and isinstance(page.get("tools"), list):
            self._listener.offered(page)
        return item

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)
