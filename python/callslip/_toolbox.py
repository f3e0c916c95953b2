"""The tools of an agent, gathered from what it is given."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from callslip._core import ToolSet
from callslip.errors import ToolError
from callslip.tools import Tool, ToolLike, Tools, ToolSource

__all__ = ["Toolbox", "as_tool"]


class Toolbox:
    """The tools of an agent, by name, and the core's view of them.

    Args:
        tools: Those of the program.
        built_in: Those of the runtime, as the core specifies them.

    Raises:
        ToolError: A tool can't be offered, or two share a name.
    """

    __slots__ = ("_tools", "tool_set")

    tool_set: ToolSet

    def __init__(self, tools: Tools = (), built_in: Sequence[str] = ()) -> None:
        self._tools: dict[str, Tool[..., Any]]
        if isinstance(tools, ToolSource):
            tools = [tools]
        document: Any = tools[0] if isinstance(tools, Sequence) and len(tools) == 1 else None
        if hasattr(document, "document_json"):
            self.tool_set = ToolSet.from_openapi(document.document_json, list(built_in))
            self._tools = dict(document.tools)
            return
        if isinstance(tools, str) or not isinstance(tools, Sequence):
            kind = type(tools).__name__
            raise ToolError(f"tools must be a list of functions or an OpenAPI document: got {kind}")
        made: list[Tool[..., Any]] = []
        for one in tools:
            made.extend(one.as_tools() if isinstance(one, ToolSource) else [as_tool(one)])
        self.tool_set = ToolSet([*(one.spec() for one in made), *built_in])
        self._tools = {one.name: one for one in made}

    def get(self, name: str) -> Tool[..., Any]:
        """Return the tool of exactly this name."""
        return self._tools[name]

    def find(self, name: str) -> Tool[..., Any] | None:
        """Return the tool of exactly this name, if the program has one."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        """Iterate over the tools of the program, in their order."""
        return iter(self._tools.values())


def as_tool(function: ToolLike) -> Tool[..., Any]:
    """Return a tool as it is, and any other callable as a tool with the defaults."""
    if isinstance(function, Tool):
        return function
    if hasattr(function, "document_json"):
        raise ToolError("an OpenAPI document can't stand beside other tools: pass it as tools=…")
    method: Any = function
    if inspect.ismethod(method) and isinstance(method.__func__, Tool):
        # `@classmethod` over `@tool`: from Python 3.13 on it binds what it wraps like this.
        return method.__func__.__get__(method.__self__)
    return Tool(function)
