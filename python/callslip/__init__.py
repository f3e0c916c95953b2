"""Any model that can write text can be an agent.

Three text protocols (`TicketProtocol`, `ChattyProtocol`, `ReactProtocol`), one runtime: Rust reads
the model's replies, enforces the protocol, keeps the tickets and decides what happens next; models
and tools are plain Python callables.

    from callslip import Agent, tool

    @tool
    def calculator(expression: str) -> float:
        ...

    result = Agent(model, tools=[calculator]).run_sync("What is 25 times 4?")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip._core import Grammar, Move, Reader, Repair, Reply, ToolCall, Violation, __version__
from callslip.agent import Agent, Run, RunResult, Ticket, Usage
from callslip.errors import (
    CallslipError,
    LimitExceeded,
    ModelError,
    ProtocolError,
    RunCancelled,
    RunFailed,
    StoreError,
    TemplateError,
    ToolError,
    UsageError,
)
from callslip.events import Delta, Event
from callslip.limits import Limits
from callslip.models import as_model
from callslip.models._reply import ModelChunk, ModelReply
from callslip.protocols import ChattyProtocol, ReactProtocol, TicketProtocol
from callslip.tools import Context, Fail, Retry, Tool, tool

if TYPE_CHECKING:
    from callslip.models.local import LocalModel
    from callslip.models.testing import FunctionModel, ScriptedModel
    from callslip.openapi import OpenAPI

__all__ = [
    "Agent",
    "CallslipError",
    "ChattyProtocol",
    "Context",
    "Delta",
    "Event",
    "Fail",
    "FunctionModel",
    "Grammar",
    "LimitExceeded",
    "Limits",
    "LocalModel",
    "ModelChunk",
    "ModelError",
    "ModelReply",
    "Move",
    "OpenAPI",
    "ProtocolError",
    "ReactProtocol",
    "Reader",
    "Repair",
    "Reply",
    "Retry",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunResult",
    "ScriptedModel",
    "StoreError",
    "TemplateError",
    "Ticket",
    "TicketProtocol",
    "Tool",
    "ToolCall",
    "ToolError",
    "Usage",
    "UsageError",
    "Violation",
    "__version__",
    "as_model",
    "tool",
]

_LAZY = {
    "FunctionModel": "callslip.models.testing",
    "LocalModel": "callslip.models.local",
    "OpenAPI": "callslip.openapi",
    "ScriptedModel": "callslip.models.testing",
}


def __getattr__(name: str) -> Any:
    """Import what most programs do not need when it is first asked for."""
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'callslip' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value
