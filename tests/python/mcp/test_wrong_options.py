"""Options of MCP servers, and of agents as such, that have a wrong type."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from callslip import Agent, ScriptedModel, UsageError
from callslip.mcp import MCPServer, agent_server, serve

SECONDS = "to be a number of seconds above 0, or None for no limit: got 'x'"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"env": 3}, "expected env as a dict of texts: got int"),
        ({"env": {"A": 3}}, "expected env['A'] to be text: got int"),
        ({"cwd": 3}, "expected cwd=a path or None: got 3"),
        ({"name": 3}, "expected name=a text or None: got 3"),
        ({"args": 3}, "expected args as a list of texts: got int"),
        ({"args": "a.py"}, "expected args as a list of texts: got a text: pass [args]"),
        ({"timeout": "x"}, f"expected timeout {SECONDS}"),
        ({"connect_timeout": "x"}, f"expected connect_timeout {SECONDS}"),
        ({"prefix": 3}, "expected prefix to be text: got 3"),
        ({"prefix": None}, "expected prefix to be text: got None"),
        ({"include": 3}, "expected include as a list of names: got 3"),
        ({"include": "add"}, "expected include as a list of names: got 'add': pass ['add']"),
        ({"exclude": 3}, "expected exclude as a list of names: got 3"),
        ({"exclude": [3]}, "expected exclude as a list of names: got [3]"),
        ({"needs_approval": 3}, "expected needs_approval as a list of names: got 3"),
        ({"repeatable": None}, "expected repeatable as a list of names: got None"),
        ({"retries": "x"}, "expected retries to be a whole number from 0: got 'x'"),
        ({"resources": 1}, "expected resources=True or False: got 1"),
        ({"sampling": 3}, "expected a callable from messages to text as the model: got int"),
        ({"elicitation": 3}, "expected elicitation to be a function: got 3"),
        (
            {"elicitation": lambda: None},
            "expected elicitation to take the question: got a function that can't",
        ),
        ({"roots": 3}, "expected roots as a list of paths: got 3"),
        ({"log_level": ["info"]}, "expected log_level as one of debug"),
    ],
)
def test_of_a_process(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        MCPServer.stdio("python", **options)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        (3, {}, "expected url to be text: got 3"),
        ("http://x/mcp", {"headers": 3}, "expected headers as a dict of texts: got int"),
        ("http://x/mcp", {"headers": {"A": 3}}, "expected headers['A'] to be text: got int"),
        ("http://x/mcp", {"name": 3}, "expected name=a text or None: got 3"),
        ("http://x/mcp", {"client": 3}, "expected the client to be an httpx2.AsyncClient: got int"),
        ("http://x/mcp", {"auth": 3}, "expected auth to be an httpx2.Auth: got int"),
    ],
)
def test_of_an_address(url: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        MCPServer.http(url, **options)


AGENT = Agent(ScriptedModel([]))
SERVER = MCPServer.stdio("python")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: MCPServer.stdio(3), "expected command=a program, such as 'python': got 3"),
        (lambda: MCPServer(3), "expected a transport: got 3: use MCPServer.http(url) or"),
        (lambda: agent_server(3), "expected an Agent: got 3"),
        (lambda: serve(3), "expected an Agent: got 3"),
        (lambda: serve(AGENT, transport=3), "expected transport='stdio' or 'streamable-http': got"),
        (lambda: agent_server(AGENT, name=3), "expected the name of a tool, without blanks: got 3"),
        (lambda: agent_server(AGENT, description=3), "expected description to be text: got 3"),
        (lambda: SERVER.read_resource_sync(3), "expected uri to be text: got 3"),
        (lambda: asyncio.run(SERVER.read_resource(3)), "expected uri to be text: got 3"),
        (lambda: SERVER.get_prompt_sync(3), "expected name to be text: got 3"),
        (lambda: SERVER.get_prompt_sync("a", 3), "expected arguments as a dict of texts: got int"),
        (lambda: asyncio.run(SERVER.get_prompt("a", {"b": 3})), "expected arguments['b'] to be"),
    ],
)
def test_of_a_call(call: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        call()


def test_names_may_be_a_set() -> None:
    MCPServer.stdio("python", needs_approval={"add"}, repeatable=frozenset({"add"}))
