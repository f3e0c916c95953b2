"""An MCP server whose tools an agent may call."""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack

from callslip._core import ToolSet
from callslip._redaction import redact_likely_secrets
from callslip._threads import pool
from callslip.errors import ToolError, UsageError
from callslip.mcp._callbacks import Elicitation, elicitation_callback, sampling_callback
from callslip.mcp._results import error_of, result_of
from callslip.mcp._sdk import check_sdk, is_loaded, load_sdk
from callslip.mcp._server_tool import ServerTool
from callslip.mcp._session import McpSession, ServerFailure, SessionLost, live_sessions
from callslip.mcp._transports import HttpTransport, StdioTransport, Transport
from callslip.tools import Context, Fail, NeedsApproval, Tool, ToolSource
from callslip.tools._approval import check_needs_approval
from callslip.tools._retries import check_retries

if TYPE_CHECKING:
    from types import TracebackType

    import httpx2
    from mcp_types import Tool as ToolOffer

__all__ = ["MCPServer", "ServerOptions"]

T = TypeVar("T")

_AT_EXIT = 6.0
"""Seconds that a program waits at its end for servers to end."""


class ServerOptions(TypedDict, total=False):
    """Options of a server with any transport.

    Attributes:
        prefix: A text before the names of the server's tools. Default: none.
        include: Names of the tools to offer, without prefix; `read_*` matches all that begin so.
            Default: all tools.
        exclude: Names of tools not to offer, as in `include`. Default: none.
        needs_approval: Whether calls wait until a person approves them; or the names of the tools
            whose calls wait, or a function that decides for each call, as for `tool`. Default:
            `False`.
        repeatable: Whether the same call may be made any number of times, as for polling; or the
            names of the tools whose calls may be repeated: their failed calls are tried again, and
            they are repeated after a crash. Default: `False`.
        retries: How many further attempts the runtime makes at a call that may be repeated, by the
            hints of the tool or by `repeatable`, if the failure may pass by itself. Default: 2.
        timeout: Seconds until a call fails; `None` for no limit. Default: 60. The clock stops while
            a model or a person answers a request of the server.
        connect_timeout: Seconds for connecting. Default: 30.
        sampling: A model that the server may ask for replies: any model that an agent accepts.
            Default: the server cannot ask.
        elicitation: A function of an `Elicitation`, called when the server asks a person: in a
            thread, or on the private event loop if it is async. It returns the answer as a mapping
            that fits the schema, `True` once the person has opened the address, or `None` to
            decline. Anything else is an error and does not count as consent. Default: the server
            cannot ask.
    """

    prefix: str
    include: Sequence[str] | None
    exclude: Sequence[str]
    needs_approval: NeedsApproval | Collection[str]
    repeatable: bool | Collection[str]
    retries: int
    timeout: float | None
    connect_timeout: float
    sampling: object
    elicitation: Callable[[Elicitation], Any] | None


class MCPServer(ToolSource):
    """A server whose tools an agent may call. Create one by `MCPServer.stdio` or `MCPServer.http`.

    The hints of a tool decide its effect: `readOnlyHint` makes it `readonly` and `pure`,
    `idempotentHint` makes it `idempotent`, and so does `repeatable`. The effect of any other tool
    is `once`.

    If the connection to the server is lost, all calls in progress fail at once. Those that may be
    repeated are tried again up to twice, all others never. The next call reconnects once, and fails
    if that fails.
    """

    on_same_name = "use a prefix for the MCP server: MCPServer.…(…, prefix='files_')"

    def __init__(
        self,
        transport: Transport,
        *,
        prefix: str = "",
        include: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        needs_approval: NeedsApproval | Collection[str] = False,
        repeatable: bool | Collection[str] = False,
        retries: int = 2,
        timeout: float | None = 60.0,
        connect_timeout: float = 30.0,
        sampling: object = None,
        elicitation: Callable[[Elicitation], Any] | None = None,
    ) -> None:
        for option, seconds in (("timeout", timeout), ("connect_timeout", connect_timeout)):
            if seconds is not None and not seconds > 0:
                raise UsageError(f"{option} must be more than 0 seconds: got {seconds!r}")
        for option, names in (
            ("include", include),
            ("exclude", exclude),
            ("needs_approval", needs_approval),
            ("repeatable", repeatable),
        ):
            if isinstance(names, str):
                raise UsageError(f"expected {option} as a list of names: got {names!r}")
        if callable(needs_approval):
            check_needs_approval(needs_approval)
        if isinstance(transport, str):
            raise UsageError(
                f"expected a transport: got {transport!r}: use MCPServer.http(url) or "
                "MCPServer.stdio(command)"
            )
        self._transport = transport
        self._prefix = prefix
        self._include = include
        self._exclude = exclude
        self._needs_approval = needs_approval
        self._repeatable = repeatable
        check_retries(retries)
        self._retries = retries
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._callbacks = _callbacks(sampling, elicitation, transport.name)
        self._session: McpSession | None = None
        self._tools: list[Tool[..., Any]] | None = None
        self._is_closed = False
        # Ends the server when this object is garbage collected.
        self._finalizer: weakref.finalize[..., Any] | None = None
        _servers.add(self)

    @classmethod
    def stdio(
        cls,
        command: str | os.PathLike[str],
        args: Sequence[str | os.PathLike[str]] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> MCPServer:
        """Return a server that runs as a process, started when it is connected.

        Each line of its standard error becomes a record of the logger `callslip.mcp`.

        Args:
            command: The program.
            args: The arguments of the program.
            env: Environment variables. Of this program's own variables, the server also gets
                `PATH`, `HOME` and the like, and no others.
            cwd: The working directory. Default: this program's.
            name: The name in logs and errors. Default: that of the script, else of the command.
            **options: See `ServerOptions`.

        Raises:
            UsageError: An option is out of range.
            ToolError: The SDK is not installed.
        """
        check_sdk()
        return cls(StdioTransport(command, args, env=env, cwd=cwd, name=name), **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        client: httpx2.AsyncClient | None = None,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> MCPServer:
        """Return a server that is reached over HTTP (the streamable transport).

        Args:
            url: The address of the server, usually ending in `/mcp`.
            headers: Headers of each request.
            client: A client that sends the requests, with its own headers, authentication and
                proxies. It is used on the private event loop and closed with the server: do not
                use it for anything else.
            name: The name in logs and errors. Default: the host of the address.
            **options: See `ServerOptions`.

        Raises:
            UsageError: An option is out of range.
            ToolError: The SDK is not installed.
        """
        check_sdk()
        return cls(HttpTransport(url, headers=headers, client=client, name=name), **options)

    @property
    def name(self) -> str:
        """The name of the server in logs and errors."""
        return self._transport.name

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the server's tools as of when it was connected. Connects the server if necessary.

        Raises:
            ToolError: The server cannot be connected, or one of its tools cannot be offered.
            UsageError: An option names a tool that the server does not have.
        """
        tools = self._tools
        if tools is None or (self._is_closed and not pool.is_on_loop()):
            self.connect_sync()
            tools = self._tools
        return tools or []

    async def connect(self) -> Self:
        """Connect the server if necessary, and read its tools.

        Raises:
            ToolError: The server cannot be connected, or one of its tools cannot be offered.
            UsageError: An option names a tool that the server does not have.
        """
        if not is_loaded():
            await asyncio.to_thread(load_sdk)
        await _on_private_loop(self._connect())
        return self

    def connect_sync(self) -> Self:
        """Connect the server in this thread, like `connect`."""
        if pool.is_on_loop():
            raise ToolError(
                f"the MCP server '{self.name}' is not connected yet, and can't be while a call is "
                "made on the private event loop: connect it before the run"
            )
        load_sdk()
        _wait_on_private_loop(self._connect())
        return self

    async def aclose(self) -> None:
        """End the session, and the process if there is one. The server can be connected again."""
        await _on_private_loop(self._close())

    def close(self) -> None:
        """End the session in this thread, like `aclose`."""
        _wait_on_private_loop(self._close())

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self.connect_sync()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MCPServer {self.name!r}>"

    async def call(self, name: str, arguments: dict[str, Any], context: Context | None) -> Any:
        """Call a tool by the server's own name for it, from any event loop.

        Raises:
            Fail: The call failed. Other exceptions mean the same.
        """
        return await _on_private_loop(self._call(name, arguments, context))

    def _open_session(self) -> McpSession:
        """Return the current session, or open one. On the private loop only."""
        if self._session is None or not self._session.is_usable:
            self._session = McpSession(
                self._transport,
                callbacks=self._callbacks,
                connect_timeout=self._connect_timeout,
                is_reconnect=self._session is not None,
            )
            if self._finalizer is not None:
                self._finalizer.detach()
            self._finalizer = weakref.finalize(self, self._session.abandon)
            self._finalizer.atexit = False
        return self._session

    async def _connect(self) -> None:
        self._is_closed = False
        session = self._open_session()
        offers = await session.tools()
        try:
            self._tools = self._make_tools(offers, session.skipped_tools)
        except (ToolError, UsageError):
            await session.end()
            raise

    async def _close(self) -> None:
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.end()
        await self._transport.aclose()

    async def _call(self, name: str, arguments: dict[str, Any], context: Context | None) -> Any:
        again = True
        while True:
            if self._is_closed:
                raise Fail(f"the MCP server '{self.name}' is closed")
            try:
                result = await self._open_session().call(
                    name,
                    arguments,
                    seconds=self._timeout,
                    on_progress=partial(self._progress, context),
                )
            except SessionLost as lost:
                if self._is_closed and not lost.is_safe:
                    raise Fail(
                        f"the MCP server '{self.name}' was closed during the call, which may have "
                        "taken effect"
                    ) from None
                # A call is sent again only if it has not reached the server, and only once.
                if not (lost.is_safe and again):
                    raise _transient_failure(redact_likely_secrets(str(lost))) from None
                again = False
            except ToolError as error:
                raise _transient_failure(redact_likely_secrets(str(error))) from None
            else:
                break
        if result.is_error:
            raise ServerFailure(self._transport.secrets.redact(error_of(result)))
        return self._transport.secrets.redact_value(result_of(result))

    def _progress(
        self, context: Context | None, done: float, total: float | None, message: str | None
    ) -> None:
        if context is None:
            return
        words = None if message is None else self._transport.secrets.redact(message)
        # The numbers of a server may be NaN.
        with suppress(ValueError):
            context.progress(done, total, words)

    def _make_tools(self, tools: Sequence[ToolOffer], skipped: set[str]) -> list[Tool[..., Any]]:
        names = [tool.name for tool in tools]
        known = [*names, *sorted(skipped)]
        include = None if self._include is None else self._matching("include", self._include, names)
        exclude = self._matching("exclude", self._exclude, known)
        check = self._needs_approval
        asks: dict[str, NeedsApproval]
        if callable(check):
            asks = dict.fromkeys(names, check)
        else:
            asks = dict.fromkeys(self._selected("needs_approval", check, known), True)
        repeats = self._selected("repeatable", self._repeatable, known)
        offered = [
            ServerTool(
                self,
                tool,
                prefix=self._prefix,
                needs_approval=asks.get(tool.name, False),
                repeatable=tool.name in repeats,
                retries=self._retries,
            )
            for tool in tools
            if (include is None or tool.name in include) and tool.name not in exclude
        ]
        seen: set[str] = set()
        for tool in offered:
            self._check_tool(tool)
            if tool.own_name in seen:
                raise ToolError(
                    f"the MCP server '{self.name}' has more than one tool '{tool.own_name}': leave "
                    f"them out with exclude=[{tool.own_name!r}]"
                )
            seen.add(tool.own_name)
        return list(offered)

    def _check_tool(self, tool: ServerTool) -> None:
        try:
            ToolSet([tool._spec()])
        except ToolError as error:
            raise ToolError(
                f"a tool of the MCP server '{self.name}' can't be offered: {error}: leave it out "
                f"with exclude=[{tool.own_name!r}]"
            ) from None

    def _selected(self, option: str, value: bool | Collection[str], names: list[str]) -> set[str]:  # noqa: FBT001
        if isinstance(value, bool):
            return set(names) if value else set()
        return self._matching(option, value, names)

    def _matching(self, option: str, patterns: Collection[str], names: list[str]) -> set[str]:
        found: set[str] = set()
        for pattern in patterns:
            meant = {name for name in names if fnmatchcase(name, pattern)}
            if not meant:
                raise UsageError(
                    f"the MCP server '{self.name}' has no tool '{pattern}' ({option}=): it has "
                    f"{', '.join(names) or 'none'}"
                )
            found |= meant
        return found


def _transient_failure(words: str) -> Fail:
    """Return a failure that may pass by itself: the server cannot be reached."""
    failure = Fail(words)
    failure.is_transient = True
    return failure


def _callbacks(
    model: object, elicitation: Callable[[Elicitation], Any] | None, name: str
) -> dict[str, Any]:
    """Return the SDK's callbacks. The SDK advertises no other capabilities to the server."""
    callbacks: dict[str, Any] = {}
    if model is not None:
        callbacks["sampling_callback"] = sampling_callback(model, server=name)
    if elicitation is not None:
        callbacks["elicitation_callback"] = elicitation_callback(elicitation, server=name)
    return callbacks


async def _on_private_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await on the private loop. Cancelling the caller cancels it there."""
    return (await asyncio.wrap_future(pool.on_loop(coroutine))).get()


def _wait_on_private_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    future = pool.on_loop(coroutine)
    try:
        return future.result().get()
    except BaseException:
        future.cancel()
        raise


async def _end_all() -> None:
    await asyncio.gather(
        *(session.end() for session in list(live_sessions)), return_exceptions=True
    )


def _at_exit() -> None:
    if not live_sessions:
        return
    future = pool.on_loop(_end_all())
    try:
        future.result(_AT_EXIT).get()
    except Exception:  # noqa: BLE001  # the program is ending, and nothing could handle it
        return


def _forget_in_child() -> None:
    """Drop the sessions in a forked child: they belong to the parent."""
    _forgotten.extend(live_sessions)
    live_sessions.clear()
    for server in list(_servers):
        server._session = None


_servers: weakref.WeakSet[MCPServer] = weakref.WeakSet()
# Referenced, so that garbage collection in the child does not close them.
_forgotten: list[McpSession] = []
atexit.register(_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)
