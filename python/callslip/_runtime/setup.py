"""The tools, the prompt and the settings of an agent's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip import _core

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip.tools._toolbox import Toolbox

__all__ = ["RunSetup"]


class RunSetup:
    """The tools, the prompt and the settings of runs, with or without tools that start child runs.

    Args:
        agent: The agent.
        delegates: Whether the model may delegate tasks.
        agents: Whether the tools of the agent that are agents are offered.

    Attributes:
        native: The setup, as the core takes it.
        protocol: The protocol with the type of the agent's answers, as the core takes it.
        toolbox: The tools, with those of the runtime.
        system_prompt: The prompt, with the tools and with instructions that are text.
        starts_early: Whether calls start before a reply is complete.
        file_tools: The names of the tools whose scripts find the files of a run.
        runs_concurrently: Whether calls may start while the model is asked: during its reply, or
            after an approval or an answer.
    """

    __slots__ = (
        "_delegates",
        "file_tools",
        "native",
        "protocol",
        "runs_concurrently",
        "starts_early",
        "system_prompt",
        "toolbox",
    )

    def __init__(self, agent: DrivenAgent, *, delegates: bool, agents: bool) -> None:
        protocol = agent.protocol
        ends_at_call = agent._ends_at_call
        if ends_at_call:
            delegates = agents = False
        native = protocol._native_for(needs_examples=agent._model.needs_examples)
        self.protocol: _core.Protocol = agent._answers.native(native)
        built_in: list[str] = []
        if delegates:
            built_in = self.protocol.delegation(sorted(agent.roles))
        tools = agent._tools
        if agent.python is not None:
            tools = tools.with_tool(agent._python_tool)
        self.toolbox: Toolbox = tools.for_protocol(
            self.protocol,
            built_in,
            only=None if agents else lambda tool: not getattr(tool, "takes_level", False),
            searched=not ends_at_call,
        )
        self.file_tools: list[str] = [tool.name for tool in self.toolbox if tool.reads_files]
        delegates = delegates and self.protocol.delegates
        self._delegates = delegates
        instructions = agent._instructions.text
        self.system_prompt: str = self.prompt_with(instructions)
        self.starts_early: bool = protocol._starts_early and not ends_at_call
        waits = any(tool.needs_approval is not False or tool.external for tool in self.toolbox)
        self.runs_concurrently: bool = self.starts_early or (waits and not ends_at_call)
        self.native: _core.Setup = _core.Setup(
            self.protocol,
            self.toolbox.tool_set,
            prompt=self.system_prompt,
            instructions=instructions or None,
            limits=agent.limits._to_json(),
            raise_on_limit=agent.on_limit == "raise",
            cancel_open=agent.on_open_tickets == "cancel",
            delegates=delegates,
            call_first=protocol.first_move == "call",
            early_stop=protocol.early_stop,
            early_start=self.starts_early,
            checks_answer=agent._answers.are_checked,
            ends_at_call=ends_at_call,
            values=agent.values or agent._model.value_level,
            values_by_model=agent.values is None,
            least_certainty=_least_certainty(agent),
        )

    def prompt_with(self, instructions: str) -> str:
        """Return the prompt with other instructions.

        Raises:
            TemplateError: The template lacks a placeholder or has an unknown one.
        """
        return self.protocol.system_prompt(self.toolbox.tool_set, self._delegates, instructions)


def _least_certainty(agent: DrivenAgent) -> tuple[float, float] | None:
    """How sure the model must be of a tool; `None` where its certainty says nothing.

    Without an example it has not seen the form of a call, and where a call is required it has to
    name a tool.
    """
    if agent.protocol.examples is False or agent.protocol.first_move == "call":
        return None
    return agent._model.least_certainty
