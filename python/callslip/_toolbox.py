"""The tools of an agent, gathered from what it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from callslip._core import Document, ToolSet
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
        if isinstance(tools, ToolSource):
            tools = [tools]
        if isinstance(tools, str) or not isinstance(tools, Sequence):
            kind = type(tools).__name__
            raise ToolError(f"tools must be a list of functions or an OpenAPI document: got {kind}")
        documents: list[Document] = []
        made: list[Tool[..., Any]] = []
        self._tools: dict[str, Tool[..., Any]] = {}
        for one in tools:
            if not isinstance(one, ToolSource):
                made.append(as_tool(one))
            elif one.document is None:
                made.extend(one.as_tools())
            else:
                documents.append(one.document)
                self._tools.update((tool.name, tool) for tool in one.as_tools())
        self.tool_set = ToolSet([*(one.spec() for one in made), *built_in], documents)
        self._tools.update((one.name, one) for one in made)

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
    return Tool(function)
