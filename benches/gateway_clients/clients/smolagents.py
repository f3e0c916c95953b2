"""smolagents: `ToolCallingAgent` with `OpenAIServerModel`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool

from gateway_clients.job import MAX_REQUESTS, MAX_TOKENS, Job


def described(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a description of each parameter, which smolagents insists on."""
    lines = [
        f"    {name}: The {name.replace('_', ' ')}."
        for name in inspect.signature(function).parameters
    ]
    function.__doc__ = "\n".join([function.__doc__ or "", "", "Args:", *lines])
    return function


def answer(job: Job) -> str:
    model = OpenAIServerModel(
        "m", api_base=job.url, api_key=job.key, temperature=0, max_tokens=MAX_TOKENS
    )
    agent = ToolCallingAgent(
        tools=[tool(described(function)) for function in job.functions],
        model=model,
        max_steps=MAX_REQUESTS,
        verbosity_level=LogLevel.OFF,
    )
    return str(agent.run(job.text))
