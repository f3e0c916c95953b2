"""Servers of the Model Context Protocol as tools, and agents as such servers. Extra `mcp`.

    files = MCPServer.stdio("python", ["server.py"], prefix="files_")
    web = MCPServer.http("http://127.0.0.1:8000/mcp", headers={"Authorization": f"Bearer {token}"})
    agent = Agent(model, tools=[calculator, files, web])

A server is connected when the first agent is made with it, or before, by `async with files:`,
`with files:` or `connect`. Its session lives on a private event loop and belongs to nobody's task:
any loop, thread and task may use and close it, and it outlives `asyncio.run`.
"""

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
from callslip._failure import log_failure, redacted, words_of
from callslip._threads import pool
from callslip.errors import ToolError
from callslip.mcp._asks import Elicitation, answering, sampling
from callslip.mcp._results import error_of, result_of
from callslip.mcp._sdk import check_sdk, is_loaded, load_sdk
from callslip.mcp._serve import agent_server, serve
from callslip.mcp._session import Lost, Session, Told, alive
from callslip.mcp._transports import HttpTransport, StdioTransport, Transport
from callslip.mcp._words import hidden_in, hidden_in_schema
from callslip.tools import Context, Effect, Fail, Outcome, Tool, ToolSource
from callslip.tools._schema_tool import SchemaTool

if TYPE_CHECKING:
    from types import TracebackType

    import httpx2
    from mcp_types import Tool as ToolOffer

__all__ = ["Elicitation", "MCPServer", "ServerOptions", "agent_server", "serve"]

T = TypeVar("T")

_AT_EXIT = 6.0
"""Seconds that a program waits at its end for servers that don't end by themselves."""


class ServerOptions(TypedDict, total=False):
    """Options of a server, however it is reached.

    Attributes:
        prefix: Put before the names of the server's tools.
        include: Names of the tools that are offered, without prefix; `read_*` for all that begin
            so. Default all.
        exclude: Names of tools that are not offered.
        needs_approval: Whether calls wait until a person approves them; or the names of the tools
            of which it is so.
        repeatable: Whether the same call may be made any number of times, as to poll; or the
            names of the tools of which it is so.
        timeout: Seconds for a call (60); `None` for no bound. While a question of the server is
            answered, by a model or a person, time stands still.
        connect_timeout: Seconds for connecting (30).
        sampling: A model that the server may ask for replies, as an agent takes it. Default: it
            may not.
        elicitation: Called with an `Elicitation` where the server wants to ask a person, in a
            thread or, if it is async, on the private event loop. Returns the answer as a mapping
            that fits the schema, `True` for an address that was opened, `None` to decline;
            anything else is an error and no consent. Default: it may not ask.
    """

    prefix: str
    include: Sequence[str] | None
    exclude: Sequence[str]
    needs_approval: bool | Collection[str]
    repeatable: bool | Collection[str]
    timeout: float | None
    connect_timeout: float
    sampling: object
    elicitation: Callable[[Elicitation], Any] | None


class MCPServer(ToolSource):
    """A server whose tools an agent may call. Made by `MCPServer.stdio` and `MCPServer.http`.

    What a tool says of itself decides how it is treated: `readOnlyHint` makes it `readonly` and
    `pure`, `idempotentHint` `idempotent`; any other is called `once`.

    A server that is lost fails the calls under way at once. None of them is repeated; the next call
    connects again, once, and fails where that fails.
    """

    on_same_name = "give the MCP server a prefix: MCPServer.…(…, prefix='files_')"

    def __init__(
        self,
        transport: Transport,
        *,
        prefix: str = "",
        include: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        needs_approval: bool | Collection[str] = False,
        repeatable: bool | Collection[str] = False,
        timeout: float | None = 60.0,
        connect_timeout: float = 30.0,
        sampling: object = None,
        elicitation: Callable[[Elicitation], Any] | None = None,
    ) -> None:
        for option, seconds in (("timeout", timeout), ("connect_timeout", connect_timeout)):
            if seconds is not None and not seconds > 0:
                raise ToolError(f"{option} must be more than 0 seconds: got {seconds!r}")
        for option, names in (
            ("include", include),
            ("exclude", exclude),
            ("needs_approval", needs_approval),
            ("repeatable", repeatable),
        ):
            if isinstance(names, str):
                raise ToolError(f"expected {option} as a list of names: got {names!r}")
        self._transport = transport
        self._prefix = prefix
        self._include = include
        self._exclude = exclude
        self._needs_approval = needs_approval
        self._repeatable = repeatable
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._answers = _answers(sampling, elicitation, transport.name)
        self._session: Session | None = None
        self._tools: list[Tool[..., Any]] | None = None
        self._is_closed = False
        # A server that nobody has any more is not left running.
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
        """Return a server that is a process of its own, started when it is connected.

        What it writes to its standard error goes to the logger `callslip.mcp`, a line a record.

        Args:
            command: The program.
            args: Its arguments.
            env: Environment variables. It gets these and `PATH`, `HOME` and the like; nothing else
                of this program's.
            cwd: Its working directory. Default this program's.
            name: For logs and errors. Default the script, else the command.
            **options: See `ServerOptions`.

        Raises:
            ToolError: An option is out of range, or the SDK is not installed.
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
        """Return a server that is spoken to over HTTP (the streamable transport).

        Args:
            url: Its address, usually ending in `/mcp`.
            headers: Sent with each request.
            client: Sends the requests, with headers, authentication, proxies of its own. It is used
                on the private event loop and closed with the server: use it for nothing else.
            name: For logs and errors. Default the address's host.
            **options: See `ServerOptions`.

        Raises:
            ToolError: An option is out of range, or the SDK is not installed.
        """
        check_sdk()
        return cls(HttpTransport(url, headers=headers, client=client, name=name), **options)

    @property
    def name(self) -> str:
        """As logs and errors name it."""
        return self._transport.name

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return its tools as they were when it was connected. Connects it where it is not.

        Raises:
            ToolError: It can't be connected, or a name that was given is none of its tools'.
        """
        tools = self._tools
        if tools is None or (self._is_closed and not pool.is_on_loop()):
            self.connect_sync()
            tools = self._tools
        return tools or []

    async def connect(self) -> Self:
        """Connect it, where it is not, and read what tools it has.

        Raises:
            ToolError: It can't be connected, or a name that was given is none of its tools'.
        """
        if not is_loaded():
            await asyncio.to_thread(load_sdk)
        await _elsewhere(self._connect())
        return self

    def connect_sync(self) -> Self:
        """Connect it in this thread. As `connect`."""
        if pool.is_on_loop():
            raise ToolError(
                f"the MCP server '{self.name}' is not connected yet, and can't be while a call is "
                "made on the private event loop: connect it before the run"
            )
        load_sdk()
        _waited(self._connect())
        return self

    async def aclose(self) -> None:
        """End the session, and the process if it is one. It can be connected again."""
        await _elsewhere(self._close())

    def close(self) -> None:
        """End the session in this thread. As `aclose`."""
        _waited(self._close())

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
        """Call one of its tools, by the name that the server gives it, from any event loop.

        Raises:
            Fail: The call failed. Other exceptions mean the same.
        """
        return await _elsewhere(self._call(name, arguments, context))

    def _opened(self) -> Session:
        """Return the session there is, else one that begins. On the private loop only."""
        if self._session is None or not self._session.is_usable:
            self._session = Session(
                self._transport,
                answers=self._answers,
                connect_timeout=self._connect_timeout,
                follows=self._session is not None,
            )
            if self._finalizer is not None:
                self._finalizer.detach()
            self._finalizer = weakref.finalize(self, self._session.abandon)
            self._finalizer.atexit = False
        return self._session

    async def _connect(self) -> None:
        self._is_closed = False
        session = self._opened()
        offers = await session.tools()
        try:
            self._tools = self._offered(offers, session.left_out)
        except ToolError:
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
                result = await self._opened().call(
                    name,
                    arguments,
                    seconds=self._timeout,
                    on_progress=partial(self._progress, context),
                )
            except Lost as lost:
                if self._is_closed and not lost.is_safe:
                    raise Fail(
                        f"the MCP server '{self.name}' was closed during the call, which may have "
                        "taken effect"
                    ) from None
                # What has not reached the server may be sent once more; nothing else is.
                if not (lost.is_safe and again):
                    raise _passing(redacted(str(lost))) from None
                again = False
            except ToolError as error:
                raise _passing(redacted(str(error))) from None
            else:
                break
        if result.is_error:
            raise Told(self._transport.secrets.hidden(error_of(result)))
        return hidden_in(result_of(result), self._transport.secrets)

    def _progress(
        self, context: Context | None, done: float, total: float | None, message: str | None
    ) -> None:
        if context is None:
            return
        words = None if message is None else self._transport.secrets.hidden(message)
        # A server's number may be none.
        with suppress(ValueError):
            context.progress(done, total, words)

    def _offered(self, tools: Sequence[ToolOffer], faulty: set[str]) -> list[Tool[..., Any]]:
        names = [tool.name for tool in tools]
        known = [*names, *sorted(faulty)]
        include = None if self._include is None else self._known("include", self._include, names)
        exclude = self._known("exclude", self._exclude, known)
        asks = self._meant("needs_approval", self._needs_approval, known)
        repeats = self._meant("repeatable", self._repeatable, known)
        offered = [
            _ServerTool(
                self,
                tool,
                prefix=self._prefix,
                needs_approval=tool.name in asks,
                repeatable=tool.name in repeats,
            )
            for tool in tools
            if (include is None or tool.name in include) and tool.name not in exclude
        ]
        seen: set[str] = set()
        for tool in offered:
            self._check(tool)
            if tool.own_name in seen:
                raise ToolError(
                    f"the MCP server '{self.name}' has more than one tool '{tool.own_name}': leave "
                    f"them out with exclude=[{tool.own_name!r}]"
                )
            seen.add(tool.own_name)
        return list(offered)

    def _check(self, tool: _ServerTool) -> None:
        try:
            ToolSet([tool._spec()])
        except ToolError as error:
            raise ToolError(
                f"a tool of the MCP server '{self.name}' can't be offered: {error}: leave it out "
                f"with exclude=[{tool.own_name!r}]"
            ) from None

    def _meant(self, option: str, said: bool | Collection[str], names: list[str]) -> set[str]:  # noqa: FBT001
        if isinstance(said, bool):
            return set(names) if said else set()
        return self._known(option, said, names)

    def _known(self, option: str, patterns: Collection[str], names: list[str]) -> set[str]:
        found: set[str] = set()
        for pattern in patterns:
            meant = {name for name in names if fnmatchcase(name, pattern)}
            if not meant:
                raise ToolError(
                    f"the MCP server '{self.name}' has no tool '{pattern}' ({option}=): it has "
                    f"{', '.join(names) or 'none'}"
                )
            found |= meant
        return found


class _ServerTool(SchemaTool):
    """A tool of a server.

    Attributes:
        own_name: Its name at the server.
    """

    own_name: str

    def __init__(
        self,
        server: MCPServer,
        offer: ToolOffer,
        *,
        prefix: str,
        needs_approval: bool,
        repeatable: bool,
    ) -> None:
        async def perform(arguments: dict[str, Any], context: Context | None) -> Any:
            return await server.call(offer.name, arguments, context)

        self.own_name = offer.name
        secrets = server._transport.secrets
        hints = offer.annotations
        readonly = hints is not None and hints.read_only_hint is True
        idempotent = hints is not None and hints.idempotent_hint is True
        effect: Effect = "pure" if readonly else "idempotent" if idempotent else "once"
        super().__init__(
            perform,
            name=f"{prefix}{offer.name}",
            description=secrets.hidden(offer.description or offer.title or ""),
            parameters=hidden_in_schema(offer.input_schema, secrets),
            readonly=readonly,
            effect=effect,
            needs_approval=needs_approval,
            repeatable=repeatable,
        )

    def _failed(self, error: Exception) -> Outcome:
        """Return the outcome of a call that raised this; all that the server itself says of it."""
        if not isinstance(error, Told):
            return super()._failed(error)
        log_failure(self.name, error)
        return "error", f"Error calling tool '{self.name}': {redacted(words_of(error))}"


def _passing(words: str) -> Fail:
    """Return a failure that may pass by itself: the server is not there."""
    failure = Fail(words)
    failure.is_transient = True
    return failure


def _answers(
    model: object, elicitation: Callable[[Elicitation], Any] | None, name: str
) -> dict[str, Any]:
    """Return what answers the server's questions. The SDK offers no more than there is."""
    answers: dict[str, Any] = {}
    if model is not None:
        answers["sampling_callback"] = sampling(model, server=name)
    if elicitation is not None:
        answers["elicitation_callback"] = answering(elicitation, server=name)
    return answers


async def _elsewhere(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await on the private loop. Who is cancelled here cancels it there."""
    return (await asyncio.wrap_future(pool.on_loop(coroutine))).get()


def _waited(coroutine: Coroutine[Any, Any, T]) -> T:
    future = pool.on_loop(coroutine)
    try:
        return future.result().get()
    except BaseException:
        future.cancel()
        raise


async def _end_all() -> None:
    await asyncio.gather(*(session.end() for session in list(alive)), return_exceptions=True)


def _at_exit() -> None:
    if not alive:
        return
    future = pool.on_loop(_end_all())
    try:
        future.result(_AT_EXIT).get()
    except Exception:  # noqa: BLE001  # the program is over: nobody is left to be told
        return


def _forget() -> None:
    """In a forked child there are no sessions: they are the parent's."""
    _forgotten.extend(alive)
    alive.clear()
    for server in list(_servers):
        server._session = None


_servers: weakref.WeakSet[MCPServer] = weakref.WeakSet()
# Kept, so that nothing of them is closed in the child.
_forgotten: list[Session] = []
atexit.register(_at_exit)
os.register_at_fork(after_in_child=_forget)
