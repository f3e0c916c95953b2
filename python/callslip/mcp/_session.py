"""One session with an MCP server, which a task of its own opens and closes.

The SDK's context managers must be left in the task that entered them. Each session is therefore
owned by a task on the private loop; code in any other loop, task or thread only asks it to end.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from callslip import _lazy
from callslip._core import __version__
from callslip.errors import ToolError
from callslip.mcp._clock import Clock
from callslip.mcp._lists import listen_for_tools, read_tools, request_log_level
from callslip.mcp._notices import LogLevel
from callslip.mcp._stderr import mcp_logger
from callslip.mcp._transports import Delivery, Transport, delivery, is_unreadable
from callslip.tools import Fail

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp_types import Tool as ToolOffer
    from pydantic import ValidationError

__all__ = ["McpSession", "ServerFailure", "SessionLost", "live_sessions"]

T = TypeVar("T")

_NOT_A_MESSAGE = "it sent something that is not an MCP message"
_UNREADABLE = "its answer can't be read"
_REFUSED = "Server returned an error response"
"""The SDK's message for any HTTP status that it does not know."""

_UNREACHED = {"ConnectError", "ConnectTimeout"}
"""Errors of the HTTP client which mean that nothing was sent: there was no connection."""

_PATIENCE = 10.0
"""Seconds for a server to end its session."""

_MOMENT = 0.25
"""Seconds to wait for the reason of a lost session."""

live_sessions: set[McpSession] = set()
"""All sessions that have not ended. The event loop itself holds their tasks weakly."""


class ServerFailure(Fail):
    """A failed call, with the server's own message."""


class SessionLost(Exception):  # noqa: N818  # the model reads it as a failure
    """The session ended before a call was answered.

    Attributes:
        is_safe: Whether the call cannot have reached the server.
    """

    def __init__(self, message: str, *, is_safe: bool) -> None:
        super().__init__(message)
        self.is_safe = is_safe


class McpSession:
    """An open session. It is created and used on the private loop only.

    Attributes:
        offers: The server's tools. A new list takes its place when they change.
        skipped_tools: Names of the server's tools that are invalid and therefore not offered.

    Args:
        transport: The connection to the server.
        callbacks: Callbacks for the server's requests, under the SDK's names for them.
        log_level: The least level of the server's log messages; `None` to request none.
        connect_timeout: Seconds for opening the session.
        earlier: The session with this server that was lost; `None` for the first one.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        callbacks: Mapping[str, Callable[..., Awaitable[Any]]],
        log_level: LogLevel | None,
        connect_timeout: float,
        earlier: McpSession | None,
    ) -> None:
        # A copy, because the server's last output belongs to this session alone.
        self._transport = copy.copy(transport)
        self._clock = Clock()
        self._callbacks: dict[str, Any] = {
            question: answer if question == "logging_callback" else self._without_clock(answer)
            for question, answer in callbacks.items()
        }
        self._log_level = log_level
        self._connect_timeout = connect_timeout
        self._is_reconnect = earlier is not None
        self._client: Client | None = None
        self._version = ""
        self.skipped_tools: set[str] = set()
        self.offers: Sequence[ToolOffer] = () if earlier is None else earlier.offers
        self._had_offers: bool = earlier is not None and earlier._had_offers
        self._changes = 0
        self._may_have_missed_change = False
        self._relisting: asyncio.Task[None] | None = None
        self._fault: BaseException | None = None
        self._unreadable = 0
        self._under_way = 0
        self._is_retired = False
        self._loop = asyncio.get_running_loop()
        self._has_begun = asyncio.Event()
        self._leaving = asyncio.Event()
        self._ended = asyncio.Event()
        live_sessions.add(self)
        # An empty context: the variables of the first caller are not the session's.
        self._owner = asyncio.create_task(self._serve(), context=contextvars.Context())

    @property
    def is_usable(self) -> bool:
        """Whether calls are possible, now or as soon as the session is open."""
        return not (self._leaving.is_set() or self._is_retired)

    @property
    def has_resources(self) -> bool:
        """Whether the server has resources."""
        client = self._client
        return client is not None and client.server_capabilities.resources is not None

    async def tools(self) -> Sequence[ToolOffer]:
        """Wait until the session is open, then return the server's tools.

        Raises:
            ToolError: The session could not be opened.
        """
        await self._open()
        if self._relisting is not None:
            await asyncio.wait([self._relisting])
        return self.offers

    @property
    def is_open(self) -> bool:
        """Whether the session is open, and its tools have been read."""
        return self._client is not None and self.is_usable

    def has_tool(self, name: str) -> bool:
        """Whether the server has a tool of this name now, as far as is known."""
        return name in self.skipped_tools or any(tool.name == name for tool in self.offers)

    @property
    def is_relisting(self) -> bool:
        """Whether the tools have changed, and the new list has not been read yet."""
        return self._relisting is not None

    def replace_tools(self, tools: Sequence[ToolOffer]) -> None:
        """Take a list of the server's tools, and log the difference from the one before."""
        if not self._had_offers:
            self._had_offers, self.offers = True, tools
            return
        before = {tool.name: tool for tool in self.offers}
        after = {tool.name: tool for tool in tools}
        changes = {
            "added": [name for name in after if name not in before],
            "removed": [name for name in before if name not in after],
            "changed": [name for name in after if before.get(name, after[name]) != after[name]],
        }
        if list(before) == list(after) and not changes["changed"]:
            return
        self.offers = tools
        words = "; ".join(f"{verb} {', '.join(names)}" for verb, names in changes.items() if names)
        mcp_logger().warning(
            "%s: its tools have changed (%s): agents made from now on have the new ones",
            self._transport.name,
            self._redact(words) or "their order",
        )

    async def _relist(self) -> None:
        read = -1
        try:
            while read != self._changes:
                read = self._changes
                self.replace_tools(await self.request(read_tools, seconds=self._connect_timeout))
        except (Fail, SessionLost, ToolError) as error:
            if self._leaving.is_set():
                return
            mcp_logger().warning(
                "%s: its tools have changed, but cannot be read: %s",
                self._transport.name,
                self._redact(str(error)),
            )
        finally:
            self._relisting = None

    def _relist_soon(self) -> None:
        self._changes += 1
        if self._relisting is None:
            self._relisting = asyncio.create_task(self._relist())

    def _on_subscribed(self) -> None:
        if self._may_have_missed_change:
            self._relist_soon()
        self._may_have_missed_change = True

    async def _on_message(self, message: object) -> None:
        if isinstance(message, _lazy.mcp_types.ToolListChangedNotification):
            self._relist_soon()

    async def _open(self) -> Client:
        await self._has_begun.wait()
        if self._client is None:
            raise ToolError(await self._connect_failure())
        return self._client

    async def request(self, send: Callable[[Client], Awaitable[T]], *, seconds: float | None) -> T:
        """Send a request to the server, once the session is open.

        Args:
            send: Sends it with the SDK's client, and returns the answer.
            seconds: The time for the answer; `None` for no limit.

        Raises:
            ToolError: The session could not be opened.
            SessionLost: The session has ended.
            ServerFailure: The server refused the request.
            Fail: No answer came in time, or it could not be read.
        """
        client = await self._open()
        if not self.is_usable:
            raise SessionLost(f"the MCP server '{self._transport.name}' is not there", is_safe=True)

        unreadable = self._unreadable
        self._may_have_missed_change = True
        self._under_way += 1
        sent = Delivery()
        token = delivery.set(sent)
        failure: Exception
        try:
            async with self._clock.bound(seconds):
                return await send(client)
        except TimeoutError:
            waited = f"within {seconds:g} seconds" if seconds is not None else "in time"
            # The unreadable message may have been the answer.
            meanwhile = f", but {_NOT_A_MESSAGE}" if self._unreadable > unreadable else ""
            name = self._transport.name
            failure = Fail(f"the MCP server '{name}' gave no result {waited}{meanwhile}")
            failure.is_transient = True
        except _lazy.mcp.MCPError as error:
            failure = await self._call_failure(error, sent)
        except (RuntimeError, _lazy.pydantic.ValidationError) as error:
            name, fault = self._transport.name, _describe_fault(error)
            failure = Fail(self._redact(f"the MCP server '{name}' broke the protocol: {fault}"))
        finally:
            delivery.reset(token)
            self._under_way -= 1
            if self._is_retired and not self._under_way:
                self._leaving.set()
        raise failure

    def retire(self) -> None:
        """End the session as soon as no call is in progress."""
        self._is_retired = True
        if not self._under_way:
            self._leaving.set()

    def abandon(self) -> None:
        """Ask the session to end, from any thread and at any time."""
        self._loop.call_soon_threadsafe(self._leaving.set)

    async def end(self) -> None:
        """End the session now. Calls in progress fail."""
        self._leaving.set()
        if not self._has_begun.is_set():
            self._owner.cancel()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._ended.wait()
        except TimeoutError:
            # An HTTP server may never answer the goodbye. A process is killed long before.
            self._owner.cancel()
            await self._ended.wait()

    def on_unreadable(self) -> None:
        """Count a message that could not be read, and log the first one."""
        self._unreadable += 1
        if self._unreadable == 1:
            mcp_logger().warning(
                "%s: sent something that is not an MCP message", self._transport.name
            )

    def on_tool_page(self, page: dict[str, Any]) -> None:
        """Remove invalid tools from a page of the server's tools, with a warning for each."""
        tools, page["tools"] = page["tools"], []
        if _find_fault(page, self._version) is None:
            for number, tool in enumerate(tools, 1):
                fault = _find_fault({**page, "tools": [tool]}, self._version)
                if fault is None:
                    page["tools"].append(tool)
                else:
                    self._skip_tool(tool, number, fault)
        else:
            page["tools"] = tools

    def _skip_tool(self, tool: object, number: int, fault: ValidationError) -> None:
        name = tool.get("name") if isinstance(tool, dict) else None
        name = name if isinstance(name, str) else f"no. {number}"
        if name not in self.skipped_tools:
            self.skipped_tools.add(name)
            mcp_logger().warning(
                "%s: left out the tool '%s', which is faulty at '%s'",
                self._transport.name,
                self._redact(name),
                self._redact(_location(fault).removeprefix("tools.0").lstrip(".")),
            )

    def on_end(self) -> None:
        """End the session: the server will send nothing more."""
        self._leaving.set()

    async def _serve(self) -> None:
        too_late = self._loop.call_later(self._connect_timeout, self._time_out)
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._make_client())
                self._version = client.protocol_version
                await request_log_level(client, self._log_level)
                self.replace_tools(await read_tools(client))
                if not self._has_begun.is_set():
                    listening = asyncio.create_task(listen_for_tools(client, self._on_subscribed))
                    stack.push_async_callback(_cancel, listening)
                    self._client = client
                    self._has_begun.set()
                    too_late.cancel()
                    await self._leaving.wait()
        except BaseException as error:  # noqa: BLE001  # raised for everyone who waits for the session
            self._fault = self._fault or _first_cause(error)
        finally:
            too_late.cancel()
            self._leaving.set()
            self._ended.set()
            self._has_begun.set()
            live_sessions.discard(self)

    def _time_out(self) -> None:
        """Stop opening the session. Ending a server that does not answer takes longer."""
        self._fault = TimeoutError(f"it did not answer within {self._connect_timeout:g} seconds")
        self._leaving.set()
        self._has_begun.set()
        self._owner.cancel()

    def _without_clock(
        self, answer: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        """Return the callback with the time limits of calls stopped while it runs."""

        async def call(*arguments: object) -> Any:
            with self._clock.stopped():
                return await answer(*arguments)

        return call

    def _make_client(self) -> Client:
        return _lazy.mcp.Client(
            self._transport.open(self),
            client_info=_lazy.mcp.Implementation(name="callslip", version=__version__),
            cache=None,
            log_level=self._log_level,
            message_handler=self._on_message,
            **self._callbacks,
        )

    async def _call_failure(self, error: MCPError, sent: Delivery) -> Exception:
        name = self._transport.name
        if sent.is_forgotten:
            # The server has not executed anything.
            self.retire()
            return SessionLost(f"the MCP server '{name}' does not know the session", is_safe=True)
        if sent.refusal and error.message == _REFUSED:
            return Fail(f"the MCP server '{name}' refused the call: {sent.refusal}")
        if is_unreadable(error):
            return Fail(f"the MCP server '{name}' broke the protocol: {_UNREADABLE}")
        if error.code != _lazy.mcp_types.CONNECTION_CLOSED:
            return ServerFailure(self._redact(error.message))
        self.retire()
        why = await self._reason()
        return SessionLost(
            f"the MCP server '{name}' was lost during the call, which may have taken effect{why}",
            is_safe=not sent.was_sent and type(self._fault).__name__ in _UNREACHED,
        )

    async def _connect_failure(self) -> str:
        started = isinstance(self._fault, OSError) and not isinstance(self._fault, TimeoutError)
        verb = "started" if started else "connected"
        again = " again" if self._is_reconnect else ""
        return (
            f"the MCP server '{self._transport.name}' can't be {verb}{again}{await self._reason()}"
        )

    async def _reason(self) -> str:
        """Return why the session ended, as far as that is known a moment later."""
        try:
            async with asyncio.timeout(_MOMENT):
                await self._ended.wait()
        except TimeoutError:
            pass
        reasons = []
        fault = self._fault
        if isinstance(fault, _lazy.mcp.MCPError) and is_unreadable(fault):
            reasons.append(f"it broke the protocol: {_UNREADABLE}")
        elif isinstance(fault, _lazy.mcp.MCPError | TimeoutError | ToolError) and str(fault):
            reasons.append(f"{str(fault)[:1].lower()}{str(fault)[1:]}")
        elif isinstance(fault, _lazy.pydantic.ValidationError):
            reasons.append(f"it broke the protocol: {_describe_fault(fault)}")
        elif isinstance(fault, Exception):
            reasons.append(
                f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
            )
        if self._unreadable:
            reasons.append(f"{_NOT_A_MESSAGE}: standard output is for the protocol alone")
        if words := await self._transport.last_output():
            reasons.append(words)
        return self._redact(f": {'; '.join(reasons)}") if reasons else ""

    def _redact(self, text: str) -> str:
        return " ".join(self._transport.secrets.redact(text).split())


def _first_cause(error: BaseException) -> BaseException:
    """Return the first error of a group, at any depth."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _describe_fault(error: RuntimeError | ValidationError) -> str:
    """Say what is wrong with a message, without the message.

    The SDK's words, and those of what it checks with, quote it cut or wrapped: a secret in it would
    not be found.
    """
    if isinstance(error, _lazy.pydantic.ValidationError):
        place = _location(error)
        return f"its answer has a fault at '{place}'" if place else "its answer has a fault"
    if (path := getattr(error.__cause__, "absolute_path", None)) is not None:
        place = "".join(f"/{step}" for step in path)
        return f"its structured result does not fit its output schema at '{place}'"
    if str(error).startswith("Invalid schema"):
        return "its output schema is invalid"
    return str(error)


def _location(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(str(step) for step in first["loc"])


def _find_fault(page: dict[str, Any], version: str) -> ValidationError | None:
    """Return the error that the SDK would raise for this page of tools; `None` for a valid page."""
    try:
        with suppress(KeyError):
            _lazy.mcp_methods.validate_server_result("tools/list", version, page)
        _lazy.mcp_types.ListToolsResult.model_validate(page, by_name=False)
    except _lazy.pydantic.ValidationError as error:
        return error
    return None


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
