"""Calls of tools as tests make them: the tool alone, and by an agent."""

import asyncio

from callslip import Agent, Context, ScriptedModel
from callslip._core import Outcome
from callslip.tools._toolbox import as_tool
from scripted import act, asked, finish

CONTEXT = Context(run_id="r", ticket_id="T1", tool="f")


def kind_and_text(outcome):
    """The kind of an outcome, and its JSON or its message."""
    match outcome:
        case Outcome.Ok(json):
            return "ok", json
        case Outcome.Error(message):
            return "error", message
        case Outcome.Retry(message):
            return "retry", message
        case Outcome.InDoubt(message):
            return "in_doubt", message


def call(one, **arguments):
    """Call a tool with right arguments, and return the kind and the text of its outcome."""
    outcome = one.call(arguments, CONTEXT)
    if hasattr(outcome, "__await__"):
        outcome = asyncio.run(awaited(outcome))
    return kind_and_text(outcome)


async def awaited(outcome):
    return await outcome


def properties(function):
    return as_tool(function).parameters["properties"]


def called(function, **arguments):
    """Let an agent call a tool once, and return what its model is told of that."""
    one = as_tool(function)
    model = ScriptedModel([act(one.name, **arguments), finish()])
    result = Agent(model, protocol="react", tools=[one]).run_sync("go")
    told = asked(result.messages)[2]["content"]
    return told.removeprefix("Observation: ").split("\nline 1: ")[0]
