"""The tools that an MCP server offers to an agent, as its options select them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from callslip._core import ToolSet
from callslip.errors import ToolError, UsageError
from callslip.mcp._server_tool import ResourceTool, ServerTool
from callslip.mcp._stderr import mcp_logger
from callslip.tools import NeedsApproval

if TYPE_CHECKING:
    from mcp_types import Tool as ToolOffer

    from callslip.mcp._options import ServerOptions
    from callslip.mcp._server import MCPServer
    from callslip.tools import Tool

__all__ = ["offered_tools"]


def offered_tools(
    server: MCPServer,
    options: ServerOptions,
    tools: Sequence[ToolOffer],
    *,
    skipped: set[str],
    has_resources: bool,
) -> list[Tool[..., Any]]:
    """Return the tools that an agent is offered.

    Args:
        server: The server.
        options: Its options.
        tools: The server's tools.
        skipped: Names of further tools, which are invalid.
        has_resources: Whether the server has resources.

    Raises:
        ToolError: Two tools have one name, or one that `include` names cannot be offered.
        UsageError: An option names a tool that the server does not have.
    """
    names = [tool.name for tool in tools]
    known, prefix = [*names, *sorted(skipped)], options["prefix"]
    for_resources = list(ResourceTool.NAMES) if has_resources and options["resources"] else []
    callable_names = [*known, *for_resources]
    wanted = options["include"]
    include = None if wanted is None else _matching(server, "include", wanted, names)
    exclude = _matching(server, "exclude", options["exclude"], known)
    asks = _approvals(server, options["needs_approval"], callable_names)
    repeats = _selected(server, "repeatable", options["repeatable"], callable_names)
    untrusted = _selected(server, "untrusted", options["untrusted"], callable_names)
    offered: list[ServerTool | ResourceTool] = [
        ServerTool(
            server,
            tool,
            prefix=prefix,
            needs_approval=asks.get(tool.name, False),
            repeatable=tool.name in repeats,
            untrusted=tool.name in untrusted,
            retries=options["retries"],
        )
        for tool in tools
        if (include is None or tool.name in include) and tool.name not in exclude
    ]
    offered += [
        ResourceTool(
            server,
            name,
            prefix=prefix,
            needs_approval=asks.get(name, False),
            repeatable=name in repeats,
            untrusted=name in untrusted,
            retries=options["retries"],
        )
        for name in for_resources
    ]
    return _sound(server, offered, wanted or ())


def _sound(
    server: MCPServer, offered: Sequence[ServerTool | ResourceTool], wanted: Collection[str]
) -> list[Tool[..., Any]]:
    """Return the tools that an agent can have.

    Raises:
        ToolError: Two of them have one name, or one that is wanted by its name cannot be had.
    """
    sound = [tool for tool in offered if _is_sound(server, tool, wanted)]
    _check_names(server, sound)
    return list(sound)


def _is_sound(server: MCPServer, tool: ServerTool | ResourceTool, wanted: Collection[str]) -> bool:
    """Whether an agent can have a tool; the log says which it cannot have.

    Raises:
        ToolError: It cannot, and is included by its whole name.
    """
    try:
        ToolSet([tool._spec()])
    except ToolError as error:
        name = tool.own_name
        if name in wanted:
            raise ToolError(
                f"a tool of the MCP server '{server.name}' can't be offered: {error}: leave "
                f"{name!r} out of include"
            ) from None
        redact = server._transport.secrets.redact
        mcp_logger().warning(
            "%s: left out the tool '%s': %s", server.name, redact(name), redact(str(error))
        )
        return False
    return True


def _check_names(server: MCPServer, offered: Sequence[ServerTool | ResourceTool]) -> None:
    seen: set[str] = set()
    for tool in offered:
        name = tool.own_name
        if name in seen and isinstance(tool, ResourceTool):
            raise ToolError(
                f"the MCP server '{server.name}' has a tool '{name}' of its own: leave it out with "
                f"exclude=[{name!r}], or pass resources=False"
            )
        if name in seen:
            raise ToolError(
                f"the MCP server '{server.name}' has more than one tool '{name}': leave them out "
                f"with exclude=[{name!r}]"
            )
        seen.add(name)


def _approvals(
    server: MCPServer,
    value: NeedsApproval | Collection[str],
    names: list[str],
) -> dict[str, NeedsApproval]:
    """Return the option of each tool whose calls may need approval."""
    if callable(value):
        return dict.fromkeys(names, value)
    return dict.fromkeys(_selected(server, "needs_approval", value, names), True)


def _selected(
    server: MCPServer,
    option: str,
    value: bool | Collection[str],  # noqa: FBT001
    names: list[str],
) -> set[str]:
    if isinstance(value, bool):
        return set(names) if value else set()
    return _matching(server, option, value, names)


def _matching(
    server: MCPServer, option: str, patterns: Collection[str], names: list[str]
) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        meant = {name for name in names if fnmatchcase(name, pattern)}
        if not meant:
            raise UsageError(
                f"the MCP server '{server.name}' has no tool '{pattern}' ({option}=): it has "
                f"{', '.join(names) or 'none'}; pass its own names, without prefix, or patterns"
            )
        found |= meant
    return found
