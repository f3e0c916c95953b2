"""The agent of a command: its model and its tools, by the words of the command."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from callslip._protocols import DEFAULT_PROTOCOL
from callslip.agent import Agent
from callslip.cli._imports import imported
from callslip.errors import UsageError
from callslip.models import Model, as_model
from callslip.models._late import SERVICES, client_of
from callslip.store import TicketStore
from callslip.tools import Tool, ToolSource

__all__ = ["agent_of", "model_of"]


def agent_of(options: argparse.Namespace, store: TicketStore | None) -> Agent[Any]:
    """Return the agent.

    Raises:
        UsageError: There is no such model or tool, or its client cannot be made.
    """
    return Agent(
        model_of(options.model, options.base_url),
        protocol=options.protocol or DEFAULT_PROTOCOL,
        tools=[_tool(name) for name in options.tool],
        store=store,
    )


def _tool(name: str) -> Any:
    tool = imported("the tool", name, "--tool as module:function")
    if not callable(tool) and not isinstance(tool, (Tool, ToolSource)):
        raise UsageError(
            f"expected --tool {name} to be a function or a tool: got {type(tool).__name__}"
        )
    return tool


def model_of(name: str, base_url: str | None) -> Model:
    """Return the local model, or one of a service.

    Args:
        name: `local`, or the service and the name of the model.
        base_url: The address of the service; `None` for its own.

    Raises:
        UsageError: There is no such model, or its client cannot be made.
    """
    provider, _, model = name.partition(":")
    if name == "local":
        if base_url is not None:
            raise UsageError("expected --base-url with a service: got local; leave it out")
        local: Model = import_module("callslip.models.local").LocalModel()
        return local
    if provider not in SERVICES or not model:
        raise UsageError(
            f"expected openai:NAME, anthropic:NAME or local: got {name}; pass one of them with -m"
        )
    return as_model(client_of(provider, base_url), model=model)
