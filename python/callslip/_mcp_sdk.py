"""Whether the official SDK is there: it is heavy, and imported where it is first used."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from callslip.errors import ToolError

__all__ = ["check_sdk", "is_loaded", "load_sdk"]


def check_sdk() -> None:
    """Find the SDK without importing it.

    Raises:
        ToolError: It is not installed, or of another major version.
    """
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise ToolError(
            "MCP needs the official SDK, which is not installed: pip install 'callslip[mcp]'"
        ) from None
    if int(found.partition(".")[0]) < 2:
        raise ToolError(
            f"expected version 2 of the MCP SDK or newer: got {found}: pip install 'callslip[mcp]'"
        )


def is_loaded() -> bool:
    """Whether it was imported before."""
    return "mcp" in sys.modules


def load_sdk() -> None:
    """Import it, which takes most of a second: not on an event loop that others wait for."""
    import mcp.client.streamable_http  # noqa: F401
