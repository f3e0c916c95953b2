"""The tool with which the model of an agent runs scripts that call the agent's tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from callslip._base.json import to_json
from callslip._protocols.script import ScriptProtocol
from callslip._scripts.model import EngineModel
from callslip._scripts.runner import CallableTools, ScriptRunner
from callslip.errors import ToolError, UsageError
from callslip.tools import Tool

if TYPE_CHECKING:
    from callslip.agent._agent import Agent

__all__ = ["ScriptRunTool", "python_tool"]

_PARAMETERS = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The script."}},
    "required": ["code"],
    "additionalProperties": False,
}

_DESCRIPTION = (
    "Runs a Python script that calls the other tools as async functions: `await name(arg=…)`, or "
    "side by side with `asyncio.gather`. You read what it prints and its last expression. Use it "
    "for loops, for combined results, and for more than three calls."
)


class ScriptRunTool(Tool[..., Any]):
    """A tool for scripts that call tools: each call is a child run.

    Attributes:
        agent: The agent of these runs. Its model is an interpreter.
    """

    # Agents that a script calls take one each.
    takes_level: ClassVar[bool] = False

    agent: Agent[Any]

    def __init__(self, agent: Agent[Any], about: str) -> None:
        def execute_python_code(code: str) -> NoReturn:
            raise UsageError(
                f"expected a call of a run: got a script of {len(code)} characters; call agent.run"
            )

        super().__init__(
            execute_python_code,
            description=f"{_DESCRIPTION} {about}".strip(),
            effect="idempotent",
            retries=0,
        )
        self.agent = agent

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return _PARAMETERS

    def _spec(self) -> str:
        """Return the specification of the tool for the core, as JSON text."""
        return to_json({**json.loads(super()._spec()), "kind": "script_run"})


def python_tool(agent: Agent[Any], kind: type[Agent[Any]]) -> Tool[..., Any]:
    """Return the tool with which the model of an agent runs scripts.

    Args:
        agent: The agent.
        kind: The class of the agent of the scripts.

    Raises:
        ToolError: Scripts are to call a tool that the agent does not have.
    """
    runner = agent.python
    assert runner is not None
    if not isinstance(runner, ScriptRunner):
        return runner.as_tool()
    return _script_tool(agent, kind, runner)


def _script_tool(agent: Agent[Any], kind: type[Agent[Any]], runner: ScriptRunner) -> ScriptRunTool:
    engine, calls = runner.engine, runner.calls
    tools = [tool for tool in agent._tools if _is_callable(tool, calls)]
    if not isinstance(calls, str):
        missing = sorted({*calls} - {tool.name for tool in tools})
        if missing:
            raise ToolError(
                f"expected calls as names of tools of the agent: got {', '.join(missing)}; pass "
                "names of its tools"
            )
    runs = kind(
        EngineModel(engine, agent._model.value_level),
        protocol=ScriptProtocol(engine=engine.version),
        tools=tools,
        limits=runner.run_limits,
        on_limit="raise",
        name=f"{agent.name}/script",
        delegate=False,
        values=agent.values,
    )
    return ScriptRunTool(runs, runner.about)


def _is_callable(tool: Tool[..., Any], calls: CallableTools) -> bool:
    if calls == "all":
        return True
    return tool.readonly if calls == "readonly" else tool.name in calls
