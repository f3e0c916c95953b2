"""One session with an MCP server, from its beginning to its end, in a task of its own.

The SDK's context managers must be left in the task that entered them. So a task on the private loop
owns each session, and everybody else, in whatever loop, task or thread, only asks it to end.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from callslip import _lazy
from callslip._core import __version__
from callslip.errors import ToolError
from callslip.mcp._clock import Clock
from callslip.mcp._transports import Delivery, Transport, delivery, is_unreadable
from callslip.mcp._words import log
from callslip.tools import Fail

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp_types import CallToolResult
    from mcp_types import Tool as ToolOffer
    from pydantic import ValidationError

__all__ = ["Lost", "Session", "Told", "alive"]

_PAGES = 1000
_NONSENSE = "it sent something that is not an MCP message"
_UNREADABLE = "its answer can't be read"
_REFUSED = "Server returned an error response"
"""What the SDK says of any HTTP status that it has no other words for."""

_UNREACHED = {"ConnectError", "ConnectTimeout"}
"""What the HTTP client raises where there is no connection to send anything over."""

_PATIENCE = 10.0
"""Seconds for a server to take its leave."""

_MOMENT = 0.25
"""Seconds in which a session that is lost says why."""

alive: set[Session] = set()
"""All that have not ended. The event loop itself holds their tasks weakly."""


class Told(Fail):
    """A failure of a call, in the server's own words."""


class Lost(Exception):  # noqa: N818  # told to the model as a failure
    """The session ended before the answer to a call came.

    Attributes:
        is_safe: Whether the call can't have reached the server.
    """

    def __init__(self, message: str, *, is_safe: bool) -> None:
        super().__init__(message)
        self.is_safe = is_safe


class Session:
    """A session under way. Made and used on the private loop only.

    Attributes:
        left_out: Names of the tools that are left out, as they are faulty.

    Args:
        transport: How the server is reached.
        answers: What answers the server's questions, as the SDK's `Client` names them.
        connect_timeout: Seconds for beginning it.
        follows: Whether there was one before it.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        answers: Mapping[str, Callable[..., Awaitable[Any]]],
        connect_timeout: float,
        follows: bool,
    ) -> None:
        # What the server said last is of this session, and not of one that follows it.
        self._transport = copy.copy(transport)
        self._clock = Clock()
        self._answers: dict[str, Any] = {
            question: self._outside(answer) for question, answer in answers.items()
        }
        self._connect_timeout = connect_timeout
        self._follows = follows
        self._client: Client | None = None
        self._version = ""
        self.left_out: set[str] = set()
        self._tools: list[ToolOffer] = []
        self._fault: BaseException | None = None
        self._unreadable = 0
        self._under_way = 0
        self._is_retired = False
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()
        self._leave = asyncio.Event()
        self._ended = asyncio.Event()
        alive.add(self)
        # Whoever happens to call first has variables of its own, which are not the session's.
        self._owner = asyncio.create_task(self._own(), context=contextvars.Context())

    @property
    def is_usable(self) -> bool:
        """Whether a call may be made, now or as soon as it has begun."""
        return not (self._leave.is_set() or self._is_retired)

    async def tools(self) -> list[ToolOffer]:
        """Wait until it has begun. Returns what the server offers.

        Raises:
            ToolError: It can't begin.
        """
        await self._settled.wait()
        if self._client is None:
            raise ToolError(await self._refusal())
        return self._tools

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        seconds: float | None,
        on_progress: Callable[[float, float | None, str | None], None],
    ) -> CallToolResult:
        """Have the server call one of its tools.

        Raises:
            ToolError: The session can't begin.
            Lost: It has ended.
            Told: The server refuses the call.
            Fail: There was no answer in time, or none that can be read.
        """
        await self.tools()
        if self._client is None or not self.is_usable:
            raise Lost(f"the MCP server '{self._transport.name}' is not there", is_safe=True)

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message)

        unreadable = self._unreadable
        self._under_way += 1
        sent = Delivery()
        noting = delivery.set(sent)
        failure: Exception
        try:
            async with self._clock.bound(seconds):
                return await self._client.call_tool(name, arguments, progress_callback=tell)
        except TimeoutError:
            waited = f"within {seconds:g} seconds" if seconds is not None else "in time"
            # It may have been the answer.
            meanwhile = f", but {_NONSENSE}" if self._unreadable > unreadable else ""
            name = self._transport.name
            failure = Fail(f"the MCP server '{name}' gave no result {waited}{meanwhile}")
            failure.is_transient = True
        except _lazy.mcp.MCPError as error:
            failure = await self._failure(error, sent)
        except (RuntimeError, _lazy.pydantic.ValidationError) as error:
            words = (
                f"the MCP server '{self._transport.name}' broke the protocol: {_fault_of(error)}"
            )
            failure = Fail(self._hidden(words))
        finally:
            delivery.reset(noting)
            self._under_way -= 1
            if self._is_retired and not self._under_way:
                self._leave.set()
        raise failure

    def retire(self) -> None:
        """Have it end as soon as no call is under way."""
        self._is_retired = True
        if not self._under_way:
            self._leave.set()

    def abandon(self) -> None:
        """Have it end, from any thread and in the middle of anything."""
        self._loop.call_soon_threadsafe(self._leave.set)

    async def end(self) -> None:
        """End it now. Calls under way fail."""
        self._leave.set()
        if not self._settled.is_set():
            self._owner.cancel()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._ended.wait()
        except TimeoutError:
            # A server over HTTP is told, and may not answer. A process is killed long before.
            self._owner.cancel()
            await self._ended.wait()

    def unreadable(self) -> None:
        """Say that what came from the server is no message."""
        self._unreadable += 1
        if self._unreadable == 1:
            log().warning("%s: sent something that is not an MCP message", self._transport.name)

    def offered(self, page: dict[str, Any]) -> None:
        """Leave faulty tools out of a page of the server's tools, with a warning each."""
        tools, page["tools"] = page["tools"], []
        if _fault_in(page, self._version) is None:
            for number, tool in enumerate(tools, 1):
                fault = _fault_in({**page, "tools": [tool]}, self._version)
                if fault is None:
                    page["tools"].append(tool)
                else:
                    self._leave_out(tool, number, fault)
        else:
            page["tools"] = tools

    def _leave_out(self, tool: object, number: int, fault: ValidationError) -> None:
        name = tool.get("name") if isinstance(tool, dict) else None
        name = name if isinstance(name, str) else f"no. {number}"
        if name not in self.left_out:
            self.left_out.add(name)
            log().warning(
                "%s: left out the tool '%s', which is faulty at '%s'",
                self._transport.name,
                self._hidden(name),
                self._hidden(_place_of(fault).removeprefix("tools.0").lstrip(".")),
            )

    def at_end(self) -> None:
        """Say that no more will come from the server."""
        self._leave.set()

    async def _own(self) -> None:
        too_late = self._loop.call_later(self._connect_timeout, self._give_up)
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._make_client())
                self._version = client.protocol_version
                self._tools = await _listed(client)
                if not self._settled.is_set():
                    self._client = client
                    self._settled.set()
                    too_late.cancel()
                    await self._leave.wait()
        except BaseException as error:  # noqa: BLE001  # told to whoever waits for the session
            self._fault = self._fault or _first(error)
        finally:
            too_late.cancel()
            self._leave.set()
            self._ended.set()
            self._settled.set()
            alive.discard(self)

    def _give_up(self) -> None:
        """Give up beginning it. To end a server that does not answer takes a while longer."""
        self._fault = TimeoutError(f"it did not answer within {self._connect_timeout:g} seconds")
        self._leave.set()
        self._settled.set()
        self._owner.cancel()

    def _outside(self, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Answer a question outside of the time that calls have."""

        async def answered(context: object, question: object) -> Any:
            with self._clock.stopped():
                return await answer(context, question)

        return answered

    def _make_client(self) -> Client:
        return _lazy.mcp.Client(
            self._transport.open(self),
            client_info=_lazy.mcp.Implementation(name="callslip", version=__version__),
            cache=None,
            **self._answers,
        )

    async def _failure(self, error: MCPError, sent: Delivery) -> Exception:
        name = self._transport.name
        if sent.is_forgotten:
            # It has done nothing.
            self.retire()
            return Lost(f"the MCP server '{name}' does not know the session", is_safe=True)
        if sent.refusal and error.message == _REFUSED:
            return Fail(f"the MCP server '{name}' refused the call: {sent.refusal}")
        if is_unreadable(error):
            return Fail(f"the MCP server '{name}' broke the protocol: {_UNREADABLE}")
        if error.code != _lazy.mcp_types.CONNECTION_CLOSED:
            return Told(self._hidden(error.message))
        self.retire()
        why = await self._why()
        return Lost(
            f"the MCP server '{name}' was lost during the call, which may have taken effect{why}",
            is_safe=not sent.was_sent and type(self._fault).__name__ in _UNREACHED,
        )

    async def _refusal(self) -> str:
        started = isinstance(self._fault, OSError) and not isinstance(self._fault, TimeoutError)
        verb = "started" if started else "connected"
        again = " again" if self._follows else ""
        return f"the MCP server '{self._transport.name}' can't be {verb}{again}{await self._why()}"

    async def _why(self) -> str:
        """Say why it has ended, as far as that is known a moment later."""
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
            reasons.append(f"it broke the protocol: {_fault_of(fault)}")
        elif isinstance(fault, Exception):
            reasons.append(
                f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
            )
        if self._unreadable:
            reasons.append(f"{_NONSENSE}: standard output is for the protocol alone")
        if words := await self._transport.last_words():
            reasons.append(words)
        return self._hidden(f": {'; '.join(reasons)}") if reasons else ""

    def _hidden(self, text: str) -> str:
        return " ".join(self._transport.secrets.hidden(text).split())


def _first(error: BaseException) -> BaseException:
    """Find what it was, among all that ended with it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _fault_of(error: RuntimeError | ValidationError) -> str:
    """Say what is wrong with a message, without the message.

    The SDK's words, and those of what it checks with, quote it cut or wrapped: a secret in it would
    not be found.
    """
    if isinstance(error, _lazy.pydantic.ValidationError):
        place = _place_of(error)
        return f"its answer has a fault at '{place}'" if place else "its answer has a fault"
    if (path := getattr(error.__cause__, "absolute_path", None)) is not None:
        place = "".join(f"/{step}" for step in path)
        return f"its structured result does not fit its output schema at '{place}'"
    if str(error).startswith("Invalid schema"):
        return "its output schema is invalid"
    return str(error)


def _place_of(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(str(step) for step in first["loc"])


def _fault_in(page: dict[str, Any], version: str) -> ValidationError | None:
    """Return what is wrong with a page of tools, as the SDK will say it of the whole list."""
    try:
        with suppress(KeyError):
            _lazy.mcp_methods.validate_server_result("tools/list", version, page)
        _lazy.mcp_types.ListToolsResult.model_validate(page, by_name=False)
    except _lazy.pydantic.ValidationError as error:
        return error
    return None


async def _listed(client: Client) -> list[ToolOffer]:
    """Read all pages of the server's tools."""
    if client.server_capabilities.tools is None:
        return []
    tools: list[ToolOffer] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools
    raise ToolError(f"the list of its tools has no end: read {_PAGES} pages of it")
