"""The deps that the functions of an agent need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from callslip.agent._roles import agents_of_tree
from callslip.tools import Context
from callslip.tools._hints import taken_with_deps

if TYPE_CHECKING:
    from callslip.agent._agent import Agent

__all__ = ["needed_deps"]


def needed_deps(agent: Agent[Any]) -> str | None:
    """Return which function needs deps, and how it says so: of an agent, or agents it can start.

    Returns:
        Such as `the tool 'who', which takes Context[Deps]`; `None` if no function needs them.
    """
    for one in agents_of_tree(agent):
        for tool in one._setup.toolbox:
            # Calls of a queue have the deps of the workers that make them.
            if tool._needs_deps is not None and tool.queue is None:
                return f"the tool '{tool.name}', which takes {tool._needs_deps}"
        for what, function in _functions_of(one):
            taken = taken_with_deps(function, Context)
            if taken is not None:
                return f"{what}, which takes {taken}"
    return None


def _functions_of(agent: Agent[Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the functions of an agent that are called with a context, and how they are named."""
    options = ("instructions", agent._instructions.function), ("check_task", agent._check_task)
    for what, function in (*options, ("check_answer", agent._answers.own_check)):
        if function is not None:
            yield what, function
    for tool in agent._setup.toolbox:
        for option in ("needs_approval", "reconcile"):
            function = getattr(tool, option)
            if callable(function):
                yield f"{option} of the tool '{tool.name}'", function
