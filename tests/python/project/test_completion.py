"""Tab completion in notebooks and editors: jedi reads every public object."""

import inspect
import sys

import jedi
import pytest

import callslip
from callslip import (
    Agent,
    Limits,
    OpenAPI,
    PythonRunner,
    ReactProtocol,
    ScriptedModel,
    TicketStore,
    tool,
)
from callslip.mcp import MCPServer
from scripted import act, finish

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {"/pets": {"get": {"operationId": "list_pets", "responses": {}}}},
}


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def instances():
    """Yield one of each class that a program holds in a variable."""
    store = TicketStore()
    agent = Agent(
        ScriptedModel([act("double", number=2), "no reply", finish()]), tools=[double], store=store
    )
    result = agent.run_sync("task")
    yield from (agent, store, result, result.run, result.messages, result.run.usage)
    yield from (result.run.tickets[0], result.run.log[0], store.runs()[0])
    yield from (double, Limits(), ScriptedModel([]), agent.stream("task"))
    yield from (MCPServer.http("http://127.0.0.1:9"), OpenAPI(DOCUMENT, auth={}), PythonRunner())
    reply = ReactProtocol().parse(act("double", number=2))
    yield from (reply, reply.move, reply.move.calls[0], ReactProtocol().reader())
    yield from (ReactProtocol().parse("no").violation, callslip.LimitExceeded("over", result.run))


PUBLIC = {name: getattr(callslip, name) for name in callslip.__all__}


def complete(value):
    """Return the names that are offered after `value.`, each read as a notebook reads it."""
    completions = jedi.Interpreter("value.", [{"value": value}]).complete()
    names = {completion.name for completion in completions}
    for completion in completions:
        if not completion.name.startswith("_"):
            assert completion.type
            completion.docstring()
    return names


def public_names(value):
    return {name for name in dir(value) if not name.startswith("_")}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_completed(name):
    assert complete(PUBLIC[name]) >= public_names(PUBLIC[name])


@pytest.mark.parametrize(
    "value", [pytest.param(value, id=type(value).__name__) for value in instances()]
)
def test_an_instance_is_completed(value):
    assert complete(value) >= public_names(value)


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if callable(value)])
def test_the_options_of_a_call_are_completed(name):
    try:
        parameters = inspect.signature(PUBLIC[name]).parameters.values()
    except ValueError:  # made by the runtime alone
        return
    options = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    completions = jedi.Interpreter(f"{name}(", [PUBLIC]).complete()
    assert {completion.name.rstrip("=") for completion in completions} >= options


@pytest.mark.parametrize("module", sorted(callslip._MODULES))
def test_a_module_is_completed(module):
    assert module in complete(callslip)
    value = getattr(callslip, module)
    assert value is sys.modules[f"callslip.{module}"]
    assert complete(value) >= set(value.__all__)


def test_the_package_is_completed_before_anything_of_it_was_used():
    names = {completion.name for completion in jedi.Script("import callslip\ncallslip.").complete()}
    assert names >= set(callslip.__all__) - {"__version__"}
