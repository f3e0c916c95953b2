"""The agent of a command: its model and its tools, by the words of the command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from callslip._protocols import DEFAULT_PROTOCOL
from callslip.agent import Agent
from callslip.cli._imports import imported
from callslip.errors import UsageError
from callslip.models import Model, as_model
from callslip.store import TicketStore
from callslip.tools import Tool, ToolSource

__all__ = ["agent_of"]

_CLIENTS = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}


def agent_of(options: argparse.Namespace, store: TicketStore | None) -> Agent[Any]:
    """Return the agent.

    Raises:
        UsageError: There is no such model or tool, or its client cannot be made.
    """
    return Agent(
        _model(options.model, options.base_url),
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


def _model(name: str, base_url: str | None) -> Model:
    provider, _, model = name.partition(":")
    if name == "local":
        if base_url is not None:
            raise UsageError("expected --base-url with a service: got local; leave it out")
        local: Model = import_module("callslip.models.local").LocalModel()
        return local
    if provider not in _CLIENTS or not model:
        raise UsageError(
            f"expected openai:NAME, anthropic:NAME or local: got {name}; pass one of them with -m"
        )
    return as_model(_client(provider, base_url), model=model)


def _client(provider: str, base_url: str | None) -> object:
    try:
        package = import_module(provider)
    except ImportError as error:
        raise UsageError(
            f"the package {provider} is not installed: pass callslip[{provider}] to pip install"
        ) from error
    make: Callable[..., object] = getattr(package, _CLIENTS[provider])
    try:
        return make(base_url=base_url)
    except Exception as error:  # each package has errors of its own, as for a missing key
        raise UsageError(f"the client of {provider} cannot be made: {error}") from error
