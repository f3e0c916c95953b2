"""The official SDK, which is imported at first use because it is slow to import."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from callslip.errors import ToolError

__all__ = ["check_sdk", "is_loaded", "load_sdk"]

_OLDEST = (2, 3)


def check_sdk() -> None:
    """Check that the SDK is installed, without importing it.

    Raises:
        ToolError: The SDK is not installed, or too old.
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
    """Whether the SDK has been imported."""
    return "mcp" in sys.modules


def load_sdk() -> None:
    """Import the SDK. This takes up to a second, so do not call it on an event loop."""
    import_module("mcp.client.streamable_http")
