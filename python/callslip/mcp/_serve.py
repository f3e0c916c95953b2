"""An agent as a tool of an MCP server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, Literal

from callslip import _lazy
from callslip._failure import in_one_line, log_failure
from callslip._json import to_json
from callslip.errors import UsageError
from callslip.events import Event, Progress
from callslip.mcp._sdk import check_sdk

if TYPE_CHECKING:
    from mcp.server import MCPServer as SDKServer
    from mcp.server.mcpserver import Context as ServerContext
    from mcp_types import CallToolResult

    from callslip.agent import Agent

__all__ = ["agent_server", "serve"]


def agent_server(
    agent: Agent, *, name: str | None = None, description: str | None = None
) -> SDKServer[Any]:
    """Return the SDK's server object with the agent as its one tool, which takes a `task`.

    Each call is a run of its own. Its value is the call's result, in JSON too where it is no text;
    a run that fails is a failed call. Turns and tickets are told as progress. A call that the
    client cancels cancels its run.

    Args:
        agent: Of any protocol.
        name: Of the tool and the server; default the agent's.
        description: For the model that calls it; say what the agent is good for.

    Raises:
        ToolError: The SDK is not installed.
        UsageError: A tool of the agent needs approval, and nobody could give it; or the name is
            none that a tool may have.
    """
    return _made_server(agent, name=name, description=description)


def serve(
    agent: Agent,
    *,
    transport: Literal["stdio", "streamable-http"] = "stdio",
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> None:
    """Serve an agent as an MCP tool until the client leaves, or the process is ended.

    Over stdio the process's standard output is the protocol's: what is printed goes to its standard
    error.

    Args:
        agent: Of any protocol.
        transport: `"stdio"`, or `"streamable-http"` for a server of its own.
        name: As for `agent_server`.
        description: As for `agent_server`.
        **options: Of the SDK's server, for `"streamable-http"`: `host`, `port`, …

    Raises:
        ToolError: The SDK is not installed.
        UsageError: A tool of the agent needs approval, or there is no such transport.
    """
    if transport not in {"stdio", "streamable-http"}:
        raise UsageError(f"transport must be 'stdio' or 'streamable-http': got {transport!r}")
    lifespan = _printing_to_stderr if transport == "stdio" else None
    server = _made_server(agent, name=name, description=description, lifespan=lifespan)
    server.run(transport, **options)


@asynccontextmanager
async def _printing_to_stderr(_: object) -> AsyncIterator[None]:
    """Have what is printed go to standard error.

    The SDK moves the file descriptor alone, and only while it serves: what is in the buffer then
    would be written into the protocol's stream afterwards.
    """
    printed = sys.stdout
    printed.flush()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        # Whoever kept the stream itself, as a handler of logs does.
        printed.flush()


def _made_server(
    agent: Agent,
    *,
    name: str | None,
    description: str | None,
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
) -> SDKServer[Any]:
    """Return what `agent_server` does, with a context that is open while it serves."""
    check_sdk()
    agent._check_approvals()
    own_name = name or agent.name
    if not isinstance(own_name, str) or not own_name or len(own_name.split()) != 1:
        raise UsageError(
            f"expected the name of a tool, without blanks: got {own_name!r}: give one with name="
        )
    server: _lazy.mcp_server.MCPServer[Any] = _lazy.mcp_server.MCPServer(
        own_name, lifespan=lifespan
    )

    async def work(task: str, context: Any) -> _lazy.mcp_types.CallToolResult:
        if not task.strip():
            return _failed("expected a task: got an empty text")
        running = asyncio.create_task(_watched(agent, task, context))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _ended(running)
            raise

    # The SDK reads the hints, which stand here as types: the modules are imported above only.
    work.__annotations__ = {
        "task": str,
        "context": _lazy.mcp_mcpserver.Context,
        "return": _lazy.mcp_types.CallToolResult,
    }
    work.__name__ = own_name
    server.add_tool(
        work,
        name=own_name,
        description=description or "Gives a task to an agent that works on it by itself.",
        structured_output=False,
    )
    return server


async def _ended(running: asyncio.Task[Any]) -> None:
    """Cancel a run and wait for its end, whatever the SDK's scopes cancel meanwhile."""
    running.cancel()
    with _lazy.anyio.CancelScope(shield=True):
        await asyncio.wait([running])
    if not running.cancelled():
        running.exception()


async def _watched(agent: Agent, task: str, context: ServerContext[Any, Any]) -> CallToolResult:
    told = 0
    try:
        async with agent.stream(task) as run:
            async for event in run:
                if (words := _words(event)) is not None:
                    told += 1
                    await context.report_progress(told, message=words)
            result = run.result
    except Exception as error:  # noqa: BLE001  # the client is told, whatever it was
        # A model's client may say in its error what it was given: none of the caller's business.
        log_failure(agent.name, error)
        return _failed(in_one_line(error))
    value = result.value
    if isinstance(value, str):
        return _lazy.mcp_types.CallToolResult(
            content=[_lazy.mcp_types.TextContent(type="text", text=value)]
        )

    text = _lazy.mcp_types.TextContent(type="text", text=to_json(value))
    # Before 2026 it had to be an object, and clients of both kinds know that form.
    structured = value if isinstance(value, dict) else {"result": value}
    return _lazy.mcp_types.CallToolResult(content=[text], structured_content=structured)


def _failed(words: str) -> CallToolResult:
    return _lazy.mcp_types.CallToolResult(
        content=[_lazy.mcp_types.TextContent(type="text", text=words)], is_error=True
    )


def _words(event: object) -> str | None:
    """Say what goes on, for whoever waits; nothing where that is of no interest."""
    if isinstance(event, Progress):
        # As floats: not every kind of number knows the format.
        share = "/".join(f"{float(n):g}" for n in (event.done, event.total) if n is not None)
        words = f"{event.tool}: {share}{'' if event.message is None else ' ' + event.message}"
        # Half a surrogate pair, as in a file's name, can't be sent.
        return words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not isinstance(event, Event):
        return None
    if event.kind == "model_asked":
        return "thinking"
    if event.kind == "ticket_opened":
        return f"working: {event.data.get('description') or event.data.get('tool') or 'a call'}"
    return None
