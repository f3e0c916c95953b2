"""One session with an MCP server, which a task of its own opens and closes.

The SDK's context managers must be left in the task that entered them. Each session is therefore
owned by a task on the private loop; code in any other loop, task or thread only asks it to end.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from callslip._base import _lazy
from callslip._base.connections import unreached
from callslip._base.failure import TRANSIENT_STATUSES
from callslip._core import __version__
from callslip.errors import ToolError
from callslip.mcp._clock import Clock
from callslip.mcp._faults import (
    SILENT,
    Refusal,
    ServerFailure,
    SessionLost,
    describe_fault,
    first_cause,
)
from callslip.mcp._incoming import is_lost, is_unreadable
from callslip.mcp._lists import listen_for_tools, read_tools, request_log_level
from callslip.mcp._notices import LogLevel
from callslip.mcp._stderr import mcp_logger
from callslip.mcp._tool_list import ToolList
from callslip.mcp._transports import Delivery, Transport, delivery
from callslip.tools import Fail

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp_types import Tool as ToolOffer

__all__ = ["McpSession", "live_sessions"]

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


class _State:
    """How far a session is.

    Attributes:
        has_begun: Set when it is open, or cannot be opened.
        leaving: Set to end it.
        ended: Set when it has ended.
        under_way: The number of requests that are not answered yet.
        is_retired: Whether it ends as soon as there is none.
    """

    __slots__ = ("ended", "has_begun", "is_retired", "leaving", "under_way")

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.leaving = asyncio.Event()
        self.ended = asyncio.Event()
        self.under_way = 0
        self.is_retired = False


class McpSession:
    """An open session. It is created and used on the private loop only.

    Attributes:
        tool_list: The server's tools.

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
        self._state = _State()
        self.tool_list: ToolList = ToolList(
            transport.name,
            redact=self._redact,
            read=self._read_tools,
            is_leaving=self._state.leaving.is_set,
            earlier=None if earlier is None else earlier.tool_list,
        )
        self._fault: BaseException | None = None
        self._unreadable = 0
        live_sessions.add(self)
        # An empty context: the variables of the first caller are not the session's.
        self._owner = asyncio.create_task(self._serve(), context=contextvars.Context())

    @property
    def is_usable(self) -> bool:
        """Whether calls are possible, now or as soon as the session is open."""
        return not (self._state.leaving.is_set() or self._state.is_retired)

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
        return await self.tool_list.current()

    @property
    def is_open(self) -> bool:
        """Whether the session is open, and its tools have been read."""
        return self._client is not None and self.is_usable

    async def _read_tools(self) -> Sequence[ToolOffer]:
        return await self.request(read_tools, seconds=self._connect_timeout)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, _lazy.mcp_types.ToolListChangedNotification):
            self.tool_list.on_changed()

    async def _open(self) -> Client:
        await self._state.has_begun.wait()
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
        self.tool_list.on_request()
        self._state.under_way += 1
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
            name, fault = self._transport.name, describe_fault(error)
            failure = Fail(self._redact(f"the MCP server '{name}' broke the protocol: {fault}"))
        finally:
            delivery.reset(token)
            self._state.under_way -= 1
            if self._state.is_retired and not self._state.under_way:
                self._state.leaving.set()
        raise failure

    def retire(self) -> None:
        """End the session as soon as no call is in progress."""
        self._state.is_retired = True
        if not self._state.under_way:
            self._state.leaving.set()

    def abandon(self) -> None:
        """Ask the session to end, from any thread and at any time."""
        self._owner.get_loop().call_soon_threadsafe(self._state.leaving.set)

    async def end(self) -> None:
        """End the session now. Calls in progress fail."""
        self._state.leaving.set()
        if not self._state.has_begun.is_set():
            self._owner.cancel()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._state.ended.wait()
        except TimeoutError:
            # An HTTP server may never answer the goodbye. A process is killed long before.
            self._owner.cancel()
            await self._state.ended.wait()

    def on_unreadable(self) -> None:
        """Count a message that could not be read, and log the first one."""
        self._unreadable += 1
        if self._unreadable == 1:
            mcp_logger().warning(
                "%s: sent something that is not an MCP message", self._transport.name
            )

    def on_tool_page(self, page: dict[str, Any]) -> None:
        """Remove invalid tools from a page of the server's tools, with a warning for each."""
        self.tool_list.on_page(page)

    def on_end(self) -> None:
        """End the session: the server will send nothing more."""
        self._state.leaving.set()

    async def _serve(self) -> None:
        too_late = asyncio.get_running_loop().call_later(self._connect_timeout, self._time_out)
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._make_client())
                self.tool_list.version = client.protocol_version
                await request_log_level(client, self._log_level)
                self.tool_list.replace(await read_tools(client))
                if not self._state.has_begun.is_set():
                    listening = asyncio.create_task(
                        listen_for_tools(client, self.tool_list.on_subscribed)
                    )
                    stack.push_async_callback(_cancel, listening)
                    self._client = client
                    self._state.has_begun.set()
                    too_late.cancel()
                    await self._state.leaving.wait()
        except BaseException as error:  # noqa: BLE001  # raised for everyone who waits for the session
            self._fault = self._fault or first_cause(error)
        finally:
            too_late.cancel()
            self._state.leaving.set()
            self._state.ended.set()
            self._state.has_begun.set()
            live_sessions.discard(self)

    def _time_out(self) -> None:
        """Stop opening the session. Ending a server that does not answer takes longer."""
        self._fault = TimeoutError(f"it did not answer within {self._connect_timeout:g} seconds")
        self._state.leaving.set()
        self._state.has_begun.set()
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
        refusal: Refusal | None = None
        if sent.refusal and error.message == _REFUSED:
            words = f"the MCP server '{name}' refused the call: {sent.refusal}"
            refusal = Refusal(words, sent.headers)
        elif not (is_unreadable(error) or is_lost(error)):
            refusal = ServerFailure(self._redact(error.message) or SILENT, sent.headers)
        if refusal is not None:
            refusal.is_transient = sent.status in TRANSIENT_STATUSES
            return refusal
        if is_unreadable(error):
            return Fail(f"the MCP server '{name}' broke the protocol: {_UNREADABLE}")
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
        told = (
            f"the MCP server '{self._transport.name}' can't be {verb}{again}{await self._reason()}"
        )
        # A model reads of later failures.
        first = self._fault if isinstance(self._fault, Exception) and not again else None
        if isinstance(first, FileNotFoundError):
            return f"{told}; pass an installed program, and its arguments as a list beside it"
        where = None if first is None else unreached(first)
        return told if where is None else f"{told} ({where})"

    async def _reason(self) -> str:
        """Return why the session ended, as far as that is known a moment later."""
        try:
            async with asyncio.timeout(_MOMENT):
                await self._state.ended.wait()
        except TimeoutError:
            pass
        reasons = []
        fault = self._fault
        if isinstance(fault, _lazy.mcp.MCPError) and is_unreadable(fault):
            reasons.append(f"it broke the protocol: {_UNREADABLE}")
        elif isinstance(fault, _lazy.mcp.MCPError | TimeoutError | ToolError) and str(fault):
            reasons.append(f"{str(fault)[:1].lower()}{str(fault)[1:]}")
        elif isinstance(fault, _lazy.pydantic.ValidationError):
            reasons.append(f"it broke the protocol: {describe_fault(fault)}")
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


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
