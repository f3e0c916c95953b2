"""Servers of the Model Context Protocol as tools, and agents as such servers. Extra `mcp`.

    files = MCPServer.stdio("python", ["server.py"], prefix="files_")
    web = MCPServer.http("http://127.0.0.1:8000/mcp", headers={"Authorization": f"Bearer {token}"})
    agent = Agent(model, tools=[calculator, files, web])

A server is connected when the first agent is created with it, or before, by `async with files:`,
`with files:` or `connect`. Its session lives on a private event loop and belongs to no task of the
program: any loop, thread and task may use and close it, and it outlives `asyncio.run`.
"""

from __future__ import annotations

from callslip.mcp._callbacks import Elicitation
from callslip.mcp._notices import LogLevel
from callslip.mcp._options import ServerOptions
from callslip.mcp._prompts import Prompt, PromptArgument
from callslip.mcp._resources import Resource, ResourceContent, ResourceTemplate
from callslip.mcp._serve import agent_server, serve
from callslip.mcp._server import MCPServer

__all__ = [
    "Elicitation",
    "LogLevel",
    "MCPServer",
    "Prompt",
    "PromptArgument",
    "Resource",
    "ResourceContent",
    "ResourceTemplate",
    "ServerOptions",
    "agent_server",
    "serve",
]
