"""The tools of an MCP server, as its session knows them: read, checked and read again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip.errors import ToolError
from callslip.mcp._faults import SessionLost, location
from callslip.mcp._stderr import mcp_logger
from callslip.tools import Fail

if TYPE_CHECKING:
    from mcp_types import Tool as ToolOffer
    from pydantic import ValidationError

__all__ = ["ToolList"]


class ToolList:
    """The server's tools.

    Args:
        server: The name of the server, for the log.
        redact: Masks the secrets of the server in a text.
        read: Reads the list from the server. It raises when the session is leaving.
        is_leaving: Whether the session is about to end.
        earlier: The list of the session with this server that was lost; `None` for the first one.

    Attributes:
        offers: The tools. A new list takes its place when they change.
        skipped: Names of the server's tools that are invalid and therefore not offered.
        version: The protocol version of the session; empty before it is known.
    """

    def __init__(
        self,
        server: str,
        *,
        redact: Callable[[str], str],
        read: Callable[[], Awaitable[Sequence[ToolOffer]]],
        is_leaving: Callable[[], bool],
        earlier: ToolList | None,
    ) -> None:
        self.offers: Sequence[ToolOffer] = () if earlier is None else earlier.offers
        self.skipped: set[str] = set()
        self.version = ""
        self._server = server
        self._redact = redact
        self._read = read
        self._is_leaving = is_leaving
        self._is_known: bool = earlier is not None and earlier._is_known
        self._changes = 0
        self._may_have_missed_change = False
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_out_of_date(self) -> bool:
        """Whether the tools have changed, and the new list has not been read yet."""
        return self._reading is not None

    def has(self, name: str) -> bool:
        """Whether the server has a tool of this name now, as far as is known."""
        return name in self.skipped or any(tool.name == name for tool in self.offers)

    async def current(self) -> Sequence[ToolOffer]:
        """Return the tools, after a new list was read if there is one."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
        return self.offers

    def replace(self, tools: Sequence[ToolOffer]) -> None:
        """Take a list of the server's tools, and log the difference from the one before."""
        if not self._is_known:
            self._is_known, self.offers = True, tools
            return
        before = {tool.name: tool for tool in self.offers}
        after = {tool.name: tool for tool in tools}
        changes = {
            "added": [name for name in after if name not in before],
            "removed": [name for name in before if name not in after],
            "changed": [name for name in after if before.get(name, after[name]) != after[name]],
        }
        if list(before) == list(after) and not changes["changed"]:
            return
        self.offers = tools
        words = "; ".join(f"{verb} {', '.join(names)}" for verb, names in changes.items() if names)
        mcp_logger().warning(
            "%s: its tools have changed (%s): agents made from now on have the new ones",
            self._server,
            self._redact(words) or "their order",
        )

    def on_changed(self) -> None:
        """Read the list again: the server says that it has changed."""
        self._changes += 1
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_again())

    def on_subscribed(self) -> None:
        """Read the list again if a change may have been missed before this subscription."""
        if self._may_have_missed_change:
            self.on_changed()
        self._may_have_missed_change = True

    def on_request(self) -> None:
        """Note a request to the server: the next subscription may have missed a change."""
        self._may_have_missed_change = True

    def on_page(self, page: dict[str, Any]) -> None:
        """Remove invalid tools from a page of the server's tools, with a warning for each."""
        tools, page["tools"] = page["tools"], []
        if _find_fault(page, self.version) is None:
            for number, tool in enumerate(tools, 1):
                fault = _find_fault({**page, "tools": [tool]}, self.version)
                if fault is None:
                    page["tools"].append(tool)
                else:
                    self._skip(tool, number, fault)
        else:
            page["tools"] = tools

    async def _read_again(self) -> None:
        read = -1
        try:
            while read != self._changes:
                read = self._changes
                self.replace(await self._read())
        except (Fail, SessionLost, ToolError) as error:
            if self._is_leaving():
                return
            mcp_logger().warning(
                "%s: its tools have changed, but cannot be read: %s",
                self._server,
                self._redact(str(error)),
            )
        finally:
            self._reading = None

    def _skip(self, tool: object, number: int, fault: ValidationError) -> None:
        name = tool.get("name") if isinstance(tool, dict) else None
        name = name if isinstance(name, str) else f"no. {number}"
        if name not in self.skipped:
            self.skipped.add(name)
            mcp_logger().warning(
                "%s: left out the tool '%s', which is faulty at '%s'",
                self._server,
                self._redact(name),
                self._redact(location(fault).removeprefix("tools.0").lstrip(".")),
            )


def _find_fault(page: dict[str, Any], version: str) -> ValidationError | None:
    """Return the error that the SDK would raise for this page of tools; `None` for a valid page."""
    try:
        with suppress(KeyError):
            _lazy.mcp_methods.validate_server_result("tools/list", version, page)
        _lazy.mcp_types.ListToolsResult.model_validate(page, by_name=False)
    except _lazy.pydantic.ValidationError as error:
        return error
    return None
