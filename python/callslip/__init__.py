"""Any model that can write text can be an agent.

Three text protocols (`TicketProtocol`, `ChattyProtocol`, `ReactProtocol`), one runtime: Rust reads
the model's replies, enforces the protocol, keeps the tickets and decides the next step; models and
tools are plain Python callables.

    from callslip import Agent, tool

    @tool
    def calculator(expression: str) -> float:
        ...

    result = Agent(model, tools=[calculator]).run_sync("What is 25 times 4?")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from callslip._core import __version__

if TYPE_CHECKING:
    from callslip._core import (
        Grammar,
        Move,
        PartialCall,
        Reader,
        Repair,
        Reply,
        Snapshot,
        ToolCall,
        Violation,
    )
    from callslip.agent import Agent
    from callslip.agent._with_tools import WithTools
    from callslip.approval import at_terminal, in_notebook
    from callslip.errors import (
        CallslipError,
        ContextFull,
        InterpreterMissing,
        IsolationUnavailable,
        LimitExceeded,
        ModelError,
        ModelRefused,
        ProtocolError,
        ReplayError,
        RunCancelled,
        RunFailed,
        RunnerLost,
        RunnerProtocolError,
        SandboxError,
        ScriptRefused,
        StoreError,
        TemplateError,
        ToolError,
        UsageError,
    )
    from callslip.events import Delta, Event, Progress
    from callslip.history import Exchange, HistoryPolicy, KeepLast, Summarize
    from callslip.limits import Limits
    from callslip.look import show
    from callslip.models import BoundedModel, Fallback, Priced, Retrying, as_model
    from callslip.models._reply import ModelChunk, ModelReply
    from callslip.models.local import LocalModel
    from callslip.models.testing import FunctionModel, ScriptedModel
    from callslip.openapi import OpenAPI
    from callslip.origins import Origin
    from callslip.parts import File, Image
    from callslip.protocols import (
        ChattyProtocol,
        NativeProtocol,
        ReactProtocol,
        TicketProtocol,
    )
    from callslip.roles import Role
    from callslip.runs import Run, RunResult, Ticket, Usage, Waiting
    from callslip.sandbox import (
        Artifact,
        CommandRunner,
        MontyRunner,
        PythonRunner,
        ScriptEvent,
        ScriptLimits,
        ScriptResult,
    )
    from callslip.store import StoredRun, TicketStore, replay
    from callslip.tools import Context, Fail, NotDone, Pending, Retry, Tool, ask_user, tool

__all__ = [
    "Agent",
    "Artifact",
    "BoundedModel",
    "CallslipError",
    "ChattyProtocol",
    "CommandRunner",
    "Context",
    "ContextFull",
    "Delta",
    "Event",
    "Exchange",
    "Fail",
    "Fallback",
    "File",
    "FunctionModel",
    "Grammar",
    "HistoryPolicy",
    "Image",
    "InterpreterMissing",
    "IsolationUnavailable",
    "KeepLast",
    "LimitExceeded",
    "Limits",
    "LocalModel",
    "ModelChunk",
    "ModelError",
    "ModelRefused",
    "ModelReply",
    "MontyRunner",
    "Move",
    "NativeProtocol",
    "NotDone",
    "OpenAPI",
    "Origin",
    "PartialCall",
    "Pending",
    "Priced",
    "Progress",
    "ProtocolError",
    "PythonRunner",
    "ReactProtocol",
    "Reader",
    "Repair",
    "ReplayError",
    "Reply",
    "Retry",
    "Retrying",
    "Role",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunResult",
    "RunnerLost",
    "RunnerProtocolError",
    "SandboxError",
    "ScriptEvent",
    "ScriptLimits",
    "ScriptRefused",
    "ScriptResult",
    "ScriptedModel",
    "Snapshot",
    "StoreError",
    "StoredRun",
    "Summarize",
    "TemplateError",
    "Ticket",
    "TicketProtocol",
    "TicketStore",
    "Tool",
    "ToolCall",
    "ToolError",
    "Usage",
    "UsageError",
    "Violation",
    "Waiting",
    "WithTools",
    "__version__",
    "as_model",
    "ask_user",
    "at_terminal",
    "in_notebook",
    "replay",
    "show",
    "tool",
]

# The module of each name: a module that a program does not use is not imported.
_HOMES = {
    "callslip._core": "Grammar Move PartialCall Reader Repair Reply Snapshot ToolCall Violation",
    "callslip.agent": "Agent",
    "callslip.agent._with_tools": "WithTools",
    "callslip.approval": "at_terminal in_notebook",
    "callslip.errors": (
        "CallslipError ContextFull InterpreterMissing IsolationUnavailable LimitExceeded "
        "ModelError ModelRefused ProtocolError ReplayError RunCancelled RunFailed RunnerLost "
        "RunnerProtocolError SandboxError ScriptRefused StoreError TemplateError ToolError "
        "UsageError"
    ),
    "callslip.events": "Delta Event Progress",
    "callslip.history": "Exchange HistoryPolicy KeepLast Summarize",
    "callslip.limits": "Limits",
    "callslip.look": "show",
    "callslip.models": ("BoundedModel Fallback ModelChunk ModelReply Priced Retrying as_model"),
    "callslip.models.local": "LocalModel",
    "callslip.models.testing": "FunctionModel ScriptedModel",
    "callslip.openapi": "OpenAPI",
    "callslip.parts": "File Image",
    "callslip.protocols": "ChattyProtocol NativeProtocol ReactProtocol TicketProtocol",
    "callslip.origins": "Origin",
    "callslip.roles": "Role",
    "callslip.runs": "Run RunResult Ticket Usage Waiting",
    "callslip.sandbox": (
        "Artifact CommandRunner MontyRunner PythonRunner ScriptEvent ScriptLimits ScriptResult"
    ),
    "callslip.store": "StoredRun TicketStore replay",
    "callslip.tools": "Context Fail NotDone Pending Retry Tool ask_user tool",
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = {
    "agent",
    "approval",
    "cli",
    "console",
    "errors",
    "events",
    "fleet",
    "gateway",
    "history",
    "limits",
    "logs",
    "look",
    "mcp",
    "models",
    "openapi",
    "origins",
    "otel",
    "parts",
    "protocols",
    "roles",
    "runs",
    "sandbox",
    "store",
    "temporal",
    "testing",
    "tools",
    "trace",
    "web",
}


_ELSEWHERE = {
    "Anthropic": 'as_model("anthropic:…")',
    "BaseTool": "tool, or Tool",
    "FunctionTool": "tool, or Tool",
    "Fleet": "callslip.fleet.Fleet",
    "MCPServer": "callslip.mcp.MCPServer",
    "Model": "callslip.models.Model",
    "OpenAI": 'as_model("openai:…")',
    "RunContext": "Context",
    "Runner": "Agent(…).run_sync(task)",
    "Say": "callslip.testing.Say",
    "TestModel": "ScriptedModel",
    "function_tool": "tool",
}
"""Replacements for names of other libraries, and where names of other modules are."""


# Hidden from type checkers, which would take any name for one of the module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name of the package when it is first used."""
        if name in _LAZY:
            value = getattr(import_module(_LAZY[name]), name)
        elif name in _MODULES:
            value = import_module(f"callslip.{name}")
        else:
            from callslip._base.attribute_names import unknown_name

            raise unknown_name("callslip", name, __all__, _ELSEWHERE)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names and modules, also those that were not used yet."""
    return sorted({*globals(), *__all__, *_MODULES})
