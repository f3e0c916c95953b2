"""What the runs of an agent are set up with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip import _core
from callslip.protocols import ChattyProtocol

if TYPE_CHECKING:
    from callslip.agent import Agent

__all__ = ["Offer"]


class Offer:
    """What the runs of an agent are offered: all of it, or without what starts further runs."""

    __slots__ = ("begins_beside", "setup", "starts_early", "system_prompt", "toolbox")

    def __init__(self, agent: Agent, *, delegates: bool, agents: bool) -> None:
        protocol = agent.protocol
        built_in: list[str] = []
        if delegates:
            built_in = _core.ToolSet.delegation(protocol.name, sorted(agent.roles))
        tools = agent._tools
        if agent.python is not None:
            tools = tools.beside(agent.python.as_tool())
        self.toolbox = tools.offered(
            protocol.native,
            built_in,
            only=None if agents else lambda tool: not hasattr(tool, "agent"),
        )
        delegates = delegates and protocol.name == "ticket"
        self.system_prompt = protocol.native.system_prompt(self.toolbox.tool_set, delegates)
        self.starts_early = isinstance(protocol, ChattyProtocol) and protocol.early_start
        # Whether calls begin while a model is asked: before its reply is whole, or once approved.
        parks = any(tool.needs_approval for tool in self.toolbox)
        self.begins_beside = self.starts_early or parks
        self.setup = _core.Setup(
            protocol.native,
            self.toolbox.tool_set,
            prompt=self.system_prompt,
            limits=agent.limits.to_json(),
            raise_on_limit=agent.on_limit == "raise",
            cancel_open=agent.on_open_tickets == "cancel",
            delegates=delegates,
            call_first=protocol.first_move == "call",
            early_stop=protocol.early_stop,
            early_start=self.starts_early,
        )
