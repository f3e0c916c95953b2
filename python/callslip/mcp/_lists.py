"""Lists of an MCP server, in pages, and the notices that they have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip.errors import ToolError
from callslip.mcp._notices import LogLevel
from callslip.mcp._stderr import mcp_logger

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool as ToolOffer

__all__ = ["listen_for_tools", "read_pages", "read_tools", "request_log_level"]

_PAGES = 1000
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 300.0
"""Seconds before a lost subscription is renewed."""


async def read_pages(read: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """Read all pages of a list. It ends, with a warning, where a cursor comes again.

    Args:
        read: Reads the page at a `cursor`.
        what: The listed things, for the error.

    Raises:
        ToolError: The list has no end.
    """
    pages: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await read(cursor=cursor)
        cursor = page.next_cursor
        if cursor in seen:
            mcp_logger().warning(
                "a server sent a cursor of the list of its %s again: the list ends there", what
            )
            # A server that ignores cursors sends one page again and again.
            return pages if page in pages else [*pages, page]
        pages.append(page)
        if cursor is None:
            return pages
        seen.add(cursor)
    raise ToolError(f"the list of its {what} has no end: read {_PAGES} pages of it")


async def read_tools(client: Client) -> list[ToolOffer]:
    """Read all pages of the server's tools."""
    if client.server_capabilities.tools is None:
        return []
    return [tool for page in await read_pages(client.list_tools, "tools") for tool in page.tools]


async def listen_for_tools(client: Client, on_subscribed: Callable[[], None]) -> None:
    """Subscribe to changes of the tools while the session is open, if the server has to be asked.

    The notices themselves arrive like those of older servers, which send them unasked.

    Args:
        client: The SDK's client.
        on_subscribed: Called at the begin of each subscription. Changes before it are missed.
    """
    tools = client.server_capabilities.tools
    if tools is None or not tools.list_changed or not _is_modern(client):
        return
    pause = _FIRST_PAUSE
    had_one = False
    while True:
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                if not subscription.honored.tools_list_changed:
                    return
                had_one = True
                on_subscribed()
                async for _ in subscription:
                    pass
        except _lazy.mcp.MCPError:
            if not had_one:
                return
        except RuntimeError:
            # The subscription was lost: proxies end connections that are silent.
            pass
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


async def request_log_level(client: Client, level: LogLevel | None) -> None:
    """Ask an older server for its log messages. Newer ones are asked with each request."""
    if level is None or client.server_capabilities.logging is None or _is_modern(client):
        return
    request = _lazy.mcp_types.SetLevelRequest(
        params=_lazy.mcp_types.SetLevelRequestParams(level=level)
    )
    try:
        await client.session.send_request(request, _lazy.mcp_types.EmptyResult)
    except _lazy.mcp.MCPError:
        mcp_logger().warning("the server refused the log level '%s'", level)


def _is_modern(client: Client) -> bool:
    return client.protocol_version in _lazy.mcp_version.MODERN_PROTOCOL_VERSIONS
