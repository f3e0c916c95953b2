"""Whether the official SDK is there: it is heavy, and imported where it is first used."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from callslip.errors import ToolError

if TYPE_CHECKING:
    import anyio
    import httpx2
    import mcp
    import mcp_types
    import pydantic
    from mcp import server
    from mcp.client import streamable_http
    from mcp.server import mcpserver
    from mcp.shared import message
    from mcp_types import methods

__all__ = [
    "anyio",
    "check_sdk",
    "httpx2",
    "is_loaded",
    "load_sdk",
    "mcp",
    "mcp_types",
    "mcpserver",
    "message",
    "methods",
    "pydantic",
    "server",
    "streamable_http",
]

_MODULES = {
    "anyio": "anyio",
    "httpx2": "httpx2",
    "mcp": "mcp",
    "mcp_types": "mcp_types",
    "mcpserver": "mcp.server.mcpserver",
    "message": "mcp.shared.message",
    "methods": "mcp_types.methods",
    "pydantic": "pydantic",
    "server": "mcp.server",
    "streamable_http": "mcp.client.streamable_http",
}


def __getattr__(name: str) -> Any:
    """Import a module of the SDK, or of what it needs, when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'callslip.mcp._sdk' has no attribute {name!r}")
    module = globals()[name] = import_module(_MODULES[name])
    return module


_OLDEST = (2, 3)


def check_sdk() -> None:
    """Find the SDK without importing it.

    Raises:
        ToolError: It is not installed, or too old.
    """
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise ToolError(
            "MCP needs the official SDK, which is not installed: pip install 'callslip[mcp]'"
        ) from None
    if tuple(int(number) for number in re.findall(r"\d+", found)[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ToolError(
            f"expected version {oldest} of the MCP SDK or newer: got {found}: pip install "
            "'callslip[mcp]'"
        )


def is_loaded() -> bool:
    """Whether it was imported before."""
    return "mcp" in sys.modules


def load_sdk() -> None:
    """Import it, which takes most of a second: not on an event loop that others wait for."""
    import_module("mcp.client.streamable_http")
