"""An agent as a tool of an MCP server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, Literal

from callslip._base import _lazy
from callslip._base.failure import describe_failure, log_failure
from callslip._base.json import to_json
from callslip._base.options import check_one_of, check_text
from callslip.agent import Agent
from callslip.agent._roles import check_waiting
from callslip.errors import UsageError
from callslip.events import ModelAsked, Progress, TicketOpened
from callslip.mcp._blocks import blocks_of, shown_parts
from callslip.mcp._sdk import check_sdk

if TYPE_CHECKING:
    from mcp.server import MCPServer as SDKServer
    from mcp.server.mcpserver import Context as ServerContext
    from mcp_types import CallToolResult

__all__ = ["agent_server", "serve"]


def agent_server(
    agent: Agent, *, name: str | None = None, description: str | None = None
) -> SDKServer[Any]:
    """Return a server object of the SDK, with the agent as its one tool. The tool takes a `task`.

    Each call is a run of its own. The value of the run is the result of the call, as JSON too if it
    is not a text, with the images and files of the run whose lines it has; a failed run is a failed
    call. Turns and tickets are reported as progress. If the
    client cancels the call, the run is cancelled.

    Args:
        agent: An agent with any protocol.
        name: The name of the tool and the server. Default: the agent's.
        description: The description for the calling model: what is the agent good for?

    Raises:
        ToolError: The SDK is not installed.
        UsageError: A tool of the agent needs approval, which is not possible here; or the name is
            not valid for a tool, or an argument has a wrong type.
    """
    return _make_server(agent, name=name, description=description)


def serve(
    agent: Agent,
    *,
    transport: Literal["stdio", "streamable-http"] = "stdio",
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> None:
    """Serve an agent as an MCP tool until the client disconnects or the process ends.

    Over stdio, the standard output of the process belongs to the protocol. Anything that is printed
    goes to its standard error.

    Args:
        agent: An agent with any protocol.
        transport: `"stdio"` (default), or `"streamable-http"` for an HTTP server.
        name: As for `agent_server`.
        description: As for `agent_server`.
        **options: Options of the SDK's server, for `"streamable-http"`: `host`, `port`, …

    Raises:
        ToolError: The SDK is not installed.
        UsageError: As for `agent_server`, or there is no such transport.
    """
    check_one_of("transport", transport, ("stdio", "streamable-http"))
    lifespan = _printing_to_stderr if transport == "stdio" else None
    server = _make_server(agent, name=name, description=description, lifespan=lifespan)
    server.run(transport, **options)


@asynccontextmanager
async def _printing_to_stderr(_: object) -> AsyncIterator[None]:
    """Redirect printed text to standard error.

    The SDK redirects only the file descriptor, and only while it serves. Text in the buffer would
    be written into the protocol's stream afterwards.
    """
    printed = sys.stdout
    printed.flush()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        # Handlers of logs may have kept the stream itself.
        printed.flush()


def _make_server(
    agent: Agent,
    *,
    name: str | None,
    description: str | None,
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
) -> SDKServer[Any]:
    """Return a server as `agent_server` does, with a context that is open while it serves."""
    if not isinstance(agent, Agent):
        raise UsageError(f"expected an Agent: got {agent!r}")
    if description is not None:
        check_text("description", description)
    check_sdk()
    check_waiting(agent)
    own_name = name or agent.name
    if not isinstance(own_name, str) or not own_name or len(own_name.split()) != 1:
        raise UsageError(
            f"expected the name of a tool, without blanks: got {own_name!r}: pass another "
            "with name="
        )
    server: _lazy.mcp_server.MCPServer[Any] = _lazy.mcp_server.MCPServer(
        own_name, lifespan=lifespan
    )

    async def work(task: str, context: Any) -> _lazy.mcp_types.CallToolResult:
        if not task.strip():
            return _error_result("expected the task: got blank text; pass what to do")
        running = asyncio.create_task(_run_with_progress(agent, task, context))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _cancel_and_wait(running)
            raise

    # The SDK reads the hints. They are set as types, because their modules are imported lazily.
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


async def _cancel_and_wait(running: asyncio.Task[Any]) -> None:
    """Cancel a run and wait for its end, shielded from the cancel scopes of the SDK."""
    running.cancel()
    with _lazy.anyio.CancelScope(shield=True):
        await asyncio.wait([running])
    if not running.cancelled():
        running.exception()


async def _run_with_progress(
    agent: Agent, task: str, context: ServerContext[Any, Any]
) -> CallToolResult:
    told = 0
    try:
        async with agent.stream(task) as run:
            async for event in run:
                if (words := _progress_text(event)) is not None:
                    told += 1
                    await context.report_progress(told, message=words)
            result = run.result
        value, files = shown_parts(result._json, result.run)
        blocks = blocks_of(files, result.run.id)
    except Exception as error:  # noqa: BLE001  # every failure is returned to the client
        # Redacted, because the error of a model's client may quote the request.
        log_failure(agent.name, error)
        return _error_result(describe_failure(error))
    if isinstance(value, str):
        return _lazy.mcp_types.CallToolResult(
            content=[_lazy.mcp_types.TextContent(type="text", text=value), *blocks]
        )

    text = _lazy.mcp_types.TextContent(type="text", text=to_json(value))
    # Before 2026 this had to be an object. Newer clients accept that form too.
    structured = value if isinstance(value, dict) else {"result": value}
    return _lazy.mcp_types.CallToolResult(content=[text, *blocks], structured_content=structured)


def _error_result(words: str) -> CallToolResult:
    return _lazy.mcp_types.CallToolResult(
        content=[_lazy.mcp_types.TextContent(type="text", text=words)], is_error=True
    )


def _progress_text(event: object) -> str | None:
    """Return the progress message for an event; `None` for other events."""
    if isinstance(event, Progress):
        # As floats, because not every number supports the format.
        share = "/".join(f"{float(n):g}" for n in (event.done, event.total) if n is not None)
        words = f"{event.tool}: {share}{'' if event.message is None else ' ' + event.message}"
        # Half of a surrogate pair, as in a file's name, cannot be sent.
        return words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(event, ModelAsked):
        return "thinking"
    if isinstance(event, TicketOpened):
        return f"working: {event.description or event.tool}"
    return None
