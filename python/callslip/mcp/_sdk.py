"""Whether the official SDK is there: it is heavy, and imported where it is first used."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from callslip.errors import ToolError

__all__ = ["check_sdk", "is_loaded", "load_sdk"]

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
