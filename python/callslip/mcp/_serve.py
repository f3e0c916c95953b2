"""An agent as a tool of an MCP server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from callslip.errors import CallslipError, UsageError
from callslip.events import Event, Progress
from callslip.mcp._sdk import check_sdk

if TYPE_CHECKING:
    from mcp.server import MCPServer as SDKServer
    from mcp.server.mcpserver import Context as ServerContext

    from callslip.agent import Agent

__all__ = ["agent_server"]


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
        UsageError: A tool of the agent needs approval, and nobody could give it.
    """
    check_sdk()
    from mcp.server import MCPServer as SDKServer
    from mcp.server.mcpserver import Context as ServerContext
    from mcp_types import CallToolResult

    agent._check_approvals()  # noqa: SLF001  # said now, and not to each client
    own_name = name or agent.name
    server: SDKServer[Any] = SDKServer(own_name)

    async def work(task: str, context: Any) -> CallToolResult:
        running = asyncio.create_task(_watched(agent, task, context))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _ended(running)
            raise

    # The SDK reads the hints, which stand here as types: the modules are imported above only.
    work.__annotations__ = {"task": str, "context": ServerContext, "return": CallToolResult}
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
    import anyio

    running.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([running])
    if not running.cancelled():
        running.exception()


async def _watched(agent: Agent, task: str, context: ServerContext[Any, Any]) -> Any:
    from mcp_types import CallToolResult, TextContent

    told = 0
    try:
        async with agent.stream(task) as run:
            async for event in run:
                if (words := _words(event)) is not None:
                    told += 1
                    await context.report_progress(told, message=words)
            result = run.result
    except CallslipError as error:
        if isinstance(error, UsageError):
            raise
        failed = TextContent(type="text", text=f"{type(error).__name__}: {error}")
        return CallToolResult(content=[failed], is_error=True)
    value = result.value
    if isinstance(value, str):
        return CallToolResult(content=[TextContent(type="text", text=value)])
    from callslip._json import to_json

    text = TextContent(type="text", text=to_json(value))
    # Before 2026 it had to be an object, and clients of both kinds know that form.
    structured = value if isinstance(value, dict) else {"result": value}
    return CallToolResult(content=[text], structured_content=structured)


def _words(event: object) -> str | None:
    """Say what goes on, for whoever waits; nothing where that is of no interest."""
    if isinstance(event, Progress):
        share = f"{event.done:g}" if event.total is None else f"{event.done:g}/{event.total:g}"
        return f"{event.tool}: {share}{'' if event.message is None else ' ' + event.message}"
    if not isinstance(event, Event):
        return None
    if event.kind == "model_asked":
        return "thinking"
    if event.kind == "ticket_opened":
        return f"working: {event.data.get('description') or event.data.get('tool') or 'a call'}"
    return None
