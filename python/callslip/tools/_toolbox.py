"""The tools of an agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from callslip._core import Document, ToolSet
from callslip.errors import ToolError, UsageError
from callslip.tools import Tool, ToolLike, Tools, ToolSource

if TYPE_CHECKING:
    from callslip._core import Protocol as CoreProtocol

__all__ = ["Toolbox", "as_tool"]


_RENAME = "use tool(name=…)"

_RUNTIME = frozenset(
    {"spawn_agent", "wait_for_agents", "search_tools", "describe_tool", "read_result"}
)
"""Names of the runtime's own tools."""


class Toolbox(ToolSource):
    """The tools of the program by name, and the same tools in the core.

    Args:
        tools: The tools of the program, or another toolbox, which is copied.

    Attributes:
        tool_set: The tools in the core, including the runtime's own tools that are offered.
        given: The tools as the program has passed them.

    Raises:
        ToolError: A tool cannot be offered, or two tools share a name.
        UsageError: `tools` is not a list of tools.
    """

    tool_set: ToolSet
    given: Tools

    def __init__(self, tools: Tools = ()) -> None:
        self._routes = False
        self._tools: dict[str, Tool[..., Any]]
        self._advice: dict[str, str]
        if isinstance(tools, Toolbox):
            self._advice, self.given = tools._advice, tools.given
            self._tools, self.tool_set = {one.name: one for one in tools}, tools.tool_set
            return
        if isinstance(tools, ToolSource):
            tools = [tools]
        self.given = tools
        items = _checked_items(tools)
        documents: list[Document] = []
        operations: list[Tool[..., Any]] = []
        made: list[Tool[..., Any]] = []
        advice: dict[str, str] = {}
        self._advice = advice
        for one in items:
            if isinstance(one, ToolSource):
                given, what = one.as_tools(), one.on_same_name
            else:
                given, what = [as_tool(one)], ""
            for tool in given:
                if tool.name in _RUNTIME:
                    raise ToolError(
                        f"expected another name for a tool: '{tool.name}' is one of the "
                        f"runtime's own: {what or _RENAME}"
                    )
                # If there is no advice, the core raises the error.
                if tool.name in advice and (known := what or advice[tool.name]):
                    raise ToolError(f"two tools are named '{tool.name}': {known}")
                advice[tool.name] = what
            if isinstance(one, ToolSource) and one.document is not None:
                documents.append(one.document)
                operations.extend(given)
            else:
                made.extend(given)
        self.tool_set = ToolSet([one._spec() for one in made], documents)
        self._tools = {one.name: one for one in (*operations, *made)}

    def with_tool(self, tool: Tool[..., Any]) -> Toolbox:
        """Return a toolbox with one more tool of the runtime.

        Raises:
            ToolError: A tool of the program has this name.
        """
        if tool.name in self._tools:
            raise ToolError(
                f"expected another name for a tool: '{tool.name}' is one of the runtime's own: "
                f"{self.rename_advice(tool.name)}"
            )
        more = Toolbox(self)
        more._tools = {**self._tools, tool.name: tool}  # of this class
        more.tool_set = self.tool_set.changed([], [tool._spec()])
        return more

    def for_protocol(
        self,
        protocol: CoreProtocol,
        built_in: Sequence[str] = (),
        *,
        only: Callable[[Tool[..., Any]], bool] | None = None,
        searched: bool = True,
    ) -> Toolbox:
        """Return the tools that runs with this protocol offer.

        Args:
            protocol: The protocol, which limits the room for tools in the prompt. If they do not
                fit, `search_tools` and `describe_tool` are added.
            built_in: Further tools of the runtime, as specified by the core.
            only: Decides which tools of the program are offered. Default: all.
            searched: Whether the runtime's tools can be added for those that do not fit.

        Raises:
            ToolError: A tool of the program has the name of a tool of the runtime; or the tools do
                not fit, and cannot be searched.
        """
        tools = self._tools
        if only is not None:
            tools = {name: tool for name, tool in tools.items() if only(tool)}
        left_out = [name for name in self._tools if name not in tools]
        tool_set = self.tool_set
        if left_out or built_in:
            tool_set = tool_set.changed(left_out, list(built_in))
        offered = Toolbox.__new__(Toolbox)
        offered._routes, offered.given = protocol.routes, self.given
        offered._tools, offered._advice = tools, self._advice
        offered.tool_set = protocol.offered(tool_set)
        if not searched and len(offered.tool_set) > len(tool_set):
            raise ToolError(
                f"expected tools that fit into the prompt: got {len(tool_set)}, whose arguments do "
                "not; pass fewer tools, or use shorter descriptions"
            )
        return offered

    def rename_advice(self, name: str) -> str:
        """Return how the program can rename one of its tools."""
        return self._advice.get(name) or _RENAME

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the tools of the program, in their order."""
        return list(self._tools.values())

    @property
    def names(self) -> list[str]:
        """The names of the tools of the program, in their order."""
        return list(self._tools)

    def get(self, name: str, found: ToolSet | None = None) -> Tool[..., Any]:
        """Return the tool with exactly this name, also `search_tools` and `describe_tool`.

        Args:
            name: The name of the tool.
            found: The tools that those two find: a resumed run may have had another toolbox.
                Default: these.
        """
        tool = self._tools.get(name)
        if tool is None:
            from callslip.tools._search import look_up_tool

            # Even if it is not offered here.
            tool = look_up_tool(name, found or self.tool_set, routes=self._routes)
        return tool

    def find(self, name: str) -> Tool[..., Any] | None:
        """Return the program's tool with exactly this name; `None` if there is none."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        """Iterate over the tools of the program, in their order."""
        return iter(self._tools.values())


def _checked_items(tools: object) -> Sequence[ToolLike | ToolSource]:
    """Return the items of a list of tools. Each one that is no source is checked by `as_tool`.

    Raises:
        UsageError: It is no list, or has a class or an app in place of a source of tools.
    """
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        hint = "it in a list" if callable(tools) else "a list or a tuple"
        if isinstance(tools, dict):
            hint = "a list of its values"
        raise UsageError(
            "expected tools as a list of functions or an OpenAPI document: got "
            f"{type(tools).__name__}; pass {hint}"
        )
    for one in tools:
        # FastAPI and its like are callable, so each would be taken for a function.
        if callable(one) and callable(getattr(type(one), "openapi", None)):
            raise UsageError(
                f"expected functions and sources of tools: got an app of {type(one).__name__}; "
                "pass OpenAPI.from_app(app)"
            )
        if isinstance(one, type) and issubclass(one, ToolSource):
            raise UsageError(
                f"expected functions and sources of tools: got the class {one.__name__}; pass an "
                f"object of it, such as tools=[{one.__name__}(…)]"
            )
    return tools


def as_tool(function: ToolLike) -> Tool[..., Any]:
    """Return a tool as it is, and any other callable as a tool with default options."""
    if isinstance(function, Tool):
        return function
    method: Any = function
    if inspect.ismethod(method) and isinstance(method.__func__, Tool):
        # `@classmethod` over `@tool`: from Python 3.13 on it binds what it wraps like this.
        return method.__func__.__get__(method.__self__)
    return Tool(function)
