"""Tools with which the model finds the tools that do not fit into its prompt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from callslip.tools import Context, Fail, Tool
from callslip.tools._schema_tool import SchemaTool

if TYPE_CHECKING:
    from callslip._core import ToolSet

__all__ = ["look_up_tool"]


def look_up_tool(name: str, tools: ToolSet, *, routes: bool) -> Tool[..., Any]:
    """Return the tool `search_tools` or `describe_tool`.

    Args:
        name: The name of the tool.
        tools: The tools that it finds.
        routes: Whether tools are called by their routes (ticket protocol).

    Raises:
        KeyError: There is no such tool.
    """

    def search(arguments: dict[str, Any], _context: Context | None) -> Any:
        return json.loads(tools.search(arguments["query"], routes))

    def describe(arguments: dict[str, Any], _context: Context | None) -> Any:
        try:
            return json.loads(tools.describe(arguments["name"], routes))
        except ValueError as error:
            raise Fail(str(error)) from None

    perform = {"search_tools": search, "describe_tool": describe}[name]
    # The core has their descriptions and schemas, and checks their arguments.
    return SchemaTool(
        perform, name=name, description="", parameters={}, readonly=True, effect="pure"
    )
