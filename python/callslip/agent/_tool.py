"""Agents as tools of other agents."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from callslip._base.json import to_json
from callslip._core import ToolSet
from callslip.errors import ToolError
from callslip.tools import NeedsApproval, Tool
from callslip.tools._approval import approval_traits

if TYPE_CHECKING:
    from callslip.agent._agent import Agent

__all__ = ["AgentTool"]


class AgentTool(Tool[[str], Any]):
    """A tool that starts a child run of an agent for each call. Made by `Agent.as_tool`.

    Calling it directly runs a task and returns the value of the run.

    Attributes:
        agent: The agent.
    """

    takes_level: ClassVar[bool] = True

    agent: Agent

    def __init__(
        self,
        agent: Agent,
        *,
        name: str | None,
        description: str | None,
        needs_approval: NeedsApproval,
        concurrency: int | None,
    ) -> None:
        if name is None:
            name = agent.name
            if not re.fullmatch(r"\w+", name):
                raise ToolError(f"invalid tool name '{name}': pass another with as_tool(name=…)")
        if description is None:
            description = f"Give a task to the agent '{agent.name}' and get its answer."

        async def work(task: str) -> Any:
            return (await agent.run(task)).value

        super().__init__(
            work,
            name=name,
            description=description,
            effect="idempotent",
            # Its model has its own attempts.
            retries=0,
            needs_approval=needs_approval,
            concurrency=concurrency,
        )
        self.agent = agent
        self._own_options: dict[str, Any] = {
            "name": name,
            "description": description,
            "needs_approval": needs_approval,
            "concurrency": concurrency,
        }

    def __deepcopy__(self, memo: Any) -> AgentTool:
        return type(self)(deepcopy(self.agent, memo), **self._own_options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _agent_tool, (self.agent, self._own_options)

    def _spec(self) -> str:
        """Return the specification of the tool for the core, as JSON text."""
        # The arguments are those of delegation, because the runtime starts a child run for both.
        own = {
            "name": self.name,
            "description": self.description,
            "kind": "agent",
            "effect": self.effect,
            **approval_traits(self.needs_approval),
        }
        return to_json({**json.loads(ToolSet.delegate()), **own})


def _agent_tool(agent: Agent, options: dict[str, Any]) -> AgentTool:
    """Make a pickled tool."""
    return AgentTool(agent, **options)
