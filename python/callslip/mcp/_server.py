"""An MCP server whose tools an agent may call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_dict_of_texts, check_text
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import ToolError, UsageError
from callslip.mcp._callbacks import Elicitation, elicitation_callback, sampling_callback
from callslip.mcp._faults import ServerFailure
from callslip.mcp._link import ServerLink, on_private_loop, wait_on_private_loop
from callslip.mcp._lists import read_tools
from callslip.mcp._notices import LogLevel, log_callback, root_uris, roots_callback
from callslip.mcp._offers import offered_tools
from callslip.mcp._options import ServerOptions, check_options
from callslip.mcp._prompts import Prompt, messages_of, read_prompts
from callslip.mcp._resources import (
    Resource,
    ResourceContent,
    ResourceTemplate,
    contents_for_model,
    listing_for_model,
    read_contents,
    read_resources,
    read_templates,
)
from callslip.mcp._results import error_of, redacted, result_of
from callslip.mcp._sdk import check_sdk, is_loaded, load_sdk
from callslip.mcp._session import McpSession
from callslip.mcp._transports import HttpTransport, StdioTransport, Transport
from callslip.tools import Context, Fail, NeedsApproval, Tool, ToolSource

if TYPE_CHECKING:
    from types import TracebackType

    import httpx2
    from mcp import Client
    from mcp_types import CallToolResult, GetPromptResult
    from mcp_types import Tool as ToolOffer

__all__ = ["MCPServer"]

T = TypeVar("T")


@knows_names_of_class(
    {
        "args": "MCPServer.stdio(command)",
        "command": "MCPServer.stdio(command)",
        "url": "MCPServer.http(url)",
    }
)
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
        untrusted: bool | Collection[str] = True,
        retries: int = 2,
        resources: bool = False,
        timeout: float | None = 60.0,
        connect_timeout: float = 30.0,
        sampling: object = None,
        elicitation: Callable[[Elicitation], Any] | None = None,
        roots: Sequence[str | os.PathLike[str]] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        if not callable(getattr(transport, "open", None)):
            raise UsageError(
                f"expected a transport: got {transport!r}: use MCPServer.http(url) or "
                "MCPServer.stdio(command)"
            )
        self._options: ServerOptions = {
            "prefix": prefix,
            "include": include,
            "exclude": exclude,
            "needs_approval": needs_approval,
            "repeatable": repeatable,
            "untrusted": untrusted,
            "retries": retries,
            "resources": resources,
            "timeout": timeout,
            "connect_timeout": connect_timeout,
            "sampling": sampling,
            "elicitation": elicitation,
            "roots": roots,
            "log_level": log_level,
        }
        check_options(self._options)
        self._transport = transport
        callbacks = _callbacks(self._options, transport)
        self._link = ServerLink(transport, self._options, callbacks)
        self._tools: list[Tool[..., Any]] | None = None
        self._made_from: Sequence[ToolOffer] | None = None

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
            UsageError: An option has a wrong value.
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
        auth: httpx2.Auth | None = None,
        client: httpx2.AsyncClient | None = None,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> MCPServer:
        """Return a server that is reached over HTTP (the streamable transport).

        Args:
            url: The address of the server, usually ending in `/mcp`.
            headers: Headers of each request.
            auth: Authenticates each request, for example the SDK's `OAuthClientProvider`. It is
                used on the private event loop. Credentials that it sends are redacted like
                headers.
            client: A client that sends the requests, with its own headers, authentication and
                proxies. It is used on the private event loop and closed with the server: do not
                use it for anything else.
            name: The name in logs and errors. Default: the host of the address.
            **options: See `ServerOptions`.

        Raises:
            UsageError: An option has a wrong value.
            ToolError: The SDK is not installed.
        """
        check_sdk()
        return cls(
            HttpTransport(url, headers=headers, auth=auth, client=client, name=name), **options
        )

    @property
    def name(self) -> str:
        """The name of the server in logs and errors."""
        return self._transport.name

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the server's present tools. Connects the server if necessary.

        Raises:
            ToolError: The server cannot be connected, or one of its tools cannot be offered.
            UsageError: An option names a tool that the server does not have.
        """
        session = self._link.session
        if self._tools is None or (self._link.is_closed and not pool.is_on_loop()):
            self.connect_sync()
        elif session is not None and session.is_open:
            if session.tool_list.is_out_of_date and not pool.is_on_loop():
                self.connect_sync()
            else:
                self._take_tools(session)
        return self._tools or []

    async def connect(self) -> Self:
        """Connect the server if necessary, and read its tools.

        Raises:
            ToolError: The server cannot be connected, or one of its tools cannot be offered.
            UsageError: An option names a tool that the server does not have.
        """
        await _load()
        await on_private_loop(self._connect())
        return self

    def connect_sync(self) -> Self:
        """Connect the server in this thread, like `connect`."""
        if pool.is_on_loop():
            raise ToolError(
                f"the MCP server '{self.name}' is not connected yet, and can't be while a call is "
                "made on the private event loop: connect it before the run"
            )
        self._wait(self._connect)
        return self

    async def refresh(self) -> Self:
        """Read the server's tools again, for a server that does not tell that they have changed.

        Agents made from now on have the new tools.

        Raises:
            ToolError: As for `connect`.
            UsageError: As for `connect`.
        """
        await _load()
        await on_private_loop(self._refresh())
        return self

    def refresh_sync(self) -> Self:
        """Read the server's tools again in this thread, like `refresh`."""
        self._wait(self._refresh)
        return self

    async def resources(self) -> list[Resource]:
        """Return the server's resources; none if it has no such capability.

        Raises:
            ToolError: The server cannot be connected, or the request failed.
        """
        await _load()
        return await on_private_loop(self._ask(read_resources))

    def resources_sync(self) -> list[Resource]:
        """Return the server's resources in this thread, like `resources`."""
        return self._wait(partial(self._ask, read_resources))

    async def resource_templates(self) -> list[ResourceTemplate]:
        """Return the templates for addresses of resources that are not listed.

        Raises:
            ToolError: As for `resources`.
        """
        await _load()
        return await on_private_loop(self._ask(read_templates))

    def resource_templates_sync(self) -> list[ResourceTemplate]:
        """Return the templates in this thread, like `resource_templates`."""
        return self._wait(partial(self._ask, read_templates))

    async def read_resource(self, uri: str) -> list[ResourceContent]:
        """Read a resource. Most have one content.

        Args:
            uri: The address of a resource, or a template's with its fields filled in.

        Raises:
            ToolError: As for `resources`; or there is no such resource.
            UsageError: `uri` is not text.
        """
        check_text("uri", uri)
        await _load()
        return await on_private_loop(self._ask(partial(read_contents, uri=uri)))

    def read_resource_sync(self, uri: str) -> list[ResourceContent]:
        """Read a resource in this thread, like `read_resource`."""
        check_text("uri", uri)
        return self._wait(partial(self._ask, partial(read_contents, uri=uri)))

    async def prompts(self) -> list[Prompt]:
        """Return the server's prompts; none if it has no such capability.

        Raises:
            ToolError: The server cannot be connected, or the request failed.
        """
        await _load()
        return await on_private_loop(self._ask(read_prompts))

    def prompts_sync(self) -> list[Prompt]:
        """Return the server's prompts in this thread, like `prompts`."""
        return self._wait(partial(self._ask, read_prompts))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the messages of a prompt, in the form of `Agent.run(messages=…)`.

        The content is text, or a list of texts, images and files. Messages of one role that follow
        each other become one. The last message is often the task.

        Args:
            name: The name of the prompt.
            arguments: Texts for its arguments. Default: none.

        Raises:
            ToolError: As for `prompts`; or the server refused the arguments.
            UsageError: `name` is not text, or `arguments` are no dict of texts.
        """
        _check_prompt(name, arguments)
        await _load()
        return await on_private_loop(self._prompt(name, arguments))

    def get_prompt_sync(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the messages of a prompt in this thread, like `get_prompt`."""
        _check_prompt(name, arguments)
        return self._wait(partial(self._prompt, name, arguments))

    async def aclose(self) -> None:
        """End the session, and the process if there is one. The server can be connected again."""
        await on_private_loop(self._link.close())

    def close(self) -> None:
        """End the session in this thread, like `aclose`."""
        wait_on_private_loop(self._link.close())

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
        return await on_private_loop(self._call(name, arguments, context))

    def _wait(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait in this thread for a coroutine on the private loop."""
        if pool.is_on_loop():
            raise ToolError(
                f"the MCP server '{self.name}' can't be waited for while a call is made on the "
                "private event loop: use the async method"
            )
        load_sdk()
        return wait_on_private_loop(make())

    async def _connect(self) -> None:
        self._link.is_closed = False
        is_new = self._link.session is None or not self._link.session.is_usable
        session = self._link.open_session()
        await session.tools()
        try:
            self._take_tools(session)
        except (ToolError, UsageError):
            if is_new:
                await session.end()
            raise

    def _take_tools(self, session: McpSession) -> None:
        """Make the tools for agents from the server's present ones, if these have changed."""
        offers = session.tool_list.offers
        if self._tools is None or offers is not self._made_from:
            self._tools = offered_tools(
                self,
                self._options,
                offers,
                skipped=session.tool_list.skipped,
                has_resources=session.has_resources,
            )
            self._made_from = offers

    async def _refresh(self) -> None:
        await self._connect()
        tools = await self._ask(read_tools)
        session = self._link.open_session()
        session.tool_list.replace(tools)
        self._take_tools(session)

    async def _call(self, name: str, arguments: dict[str, Any], context: Context | None) -> Any:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            self._progress(context, progress, total, message)

        async def send(client: Client) -> CallToolResult:
            session = self._link.session
            if session is not None and not session.tool_list.has(name):
                raise Fail(f"the MCP server '{self.name}' no longer has the tool '{name}'")
            return await client.call_tool(name, arguments, progress_callback=report)

        result = await self._link.request(send)
        if result.is_error:
            raise ServerFailure(self._transport.secrets.redact(error_of(result)), {})
        return redacted(result_of(result), self._transport.secrets)

    async def _ask(self, send: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request for the program, which connects the server if necessary.

        Raises:
            ToolError: It failed.
        """
        await self._connect()
        try:
            return await self._link.request(send)
        except Fail as failure:
            raise ToolError(f"{self.name}: {failure}") from None

    async def _prompt(self, name: str, arguments: Mapping[str, str] | None) -> list[dict[str, Any]]:
        async def get(client: Client) -> GetPromptResult:
            return await client.get_prompt(name, None if arguments is None else dict(arguments))

        messages = messages_of(await self._ask(get))
        secrets = self._transport.secrets
        return [{**one, "content": redacted(one["content"], secrets)} for one in messages]

    async def _list_for_model(self) -> Any:
        async def read(client: Client) -> Any:
            return listing_for_model(await read_resources(client), await read_templates(client))

        return self._transport.secrets.redact_value(await on_private_loop(self._link.request(read)))

    async def _read_for_model(self, uri: str) -> Any:
        contents = await on_private_loop(self._link.request(partial(read_contents, uri=uri)))
        return redacted(contents_for_model(contents), self._transport.secrets)

    def _progress(
        self, context: Context | None, done: float, total: float | None, message: str | None
    ) -> None:
        if context is None:
            return
        words = None if message is None else self._transport.secrets.redact(message)
        # The numbers of a server may be NaN.
        with suppress(ValueError):
            context.progress(done, total, words)


def _check_prompt(name: object, arguments: object) -> None:
    check_text("name", name)
    if arguments is not None:
        check_dict_of_texts("arguments", arguments)


async def _load() -> None:
    check_loop("asyncio.run, main()")
    if not is_loaded():
        await asyncio.to_thread(load_sdk)


def _callbacks(options: ServerOptions, transport: Transport) -> dict[str, Any]:
    """Return the SDK's callbacks. The SDK advertises no other capabilities to the server."""
    name = transport.name
    model, ask, roots = options["sampling"], options["elicitation"], options["roots"]
    callbacks: dict[str, Any] = {"logging_callback": log_callback(name, transport.secrets)}
    if model is not None:
        callbacks["sampling_callback"] = sampling_callback(model, server=name)
    if ask is not None:
        callbacks["elicitation_callback"] = elicitation_callback(ask, server=name)
    if roots is not None:
        callbacks["list_roots_callback"] = roots_callback(root_uris(roots))
    return callbacks
