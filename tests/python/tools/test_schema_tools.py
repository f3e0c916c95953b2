"""Tools of a function and a given JSON Schema."""

import asyncio
from functools import partial

import pytest

from callslip import Agent, Context, OpenAPI, ScriptedModel, Tool, ToolError, UsageError
from scripted import act, finish

SCHEMA = {
    "type": "object",
    "properties": {"key": {"type": "integer"}, "odd-name": {"type": "string"}},
    "required": ["key"],
    "additionalProperties": False,
}


def given(**arguments):
    """Return what was given."""
    return arguments


async def given_async(**arguments):
    """Return what was given."""
    return arguments


def with_context(key, *, context: Context, **more):
    """Return what was given."""
    return {"key": key, "ticket": context.ticket_id, **more}


def made(function=given, **options):
    return Tool.from_schema(function, **{"name": "rows", "parameters": SCHEMA, **options})


def ran(one, **arguments):
    """The ticket of one call."""
    model = ScriptedModel([act(one.name, **arguments), finish()])
    return Agent(model, tools=[one]).run_sync("go").tickets[0]


@pytest.mark.parametrize("function", [given, given_async, partial(given), partial(given_async)])
def test_a_function_receives_the_arguments_by_keyword(function):
    one = made(function, description="Read rows.")
    ticket = ran(one, key=7, **{"odd-name": "x"})
    assert ticket.result == {"key": 7, "odd-name": "x"}
    assert (one.name, one.description) == ("rows", "Read rows.")
    assert one.is_async is asyncio.iscoroutinefunction(function)


def test_arguments_are_checked_against_the_schema():
    model = ScriptedModel([act("rows", key="x", more=1), act("rows", key="7"), finish()])
    result = Agent(model, tools=[made()]).run_sync("go")
    assert result.run.violations == 1
    assert "'key' must be an integer" in result.messages[-4]["content"]
    assert result.tickets[0].result == {"key": 7}


def test_names_and_descriptions_are_those_of_the_function_by_default():
    one = Tool.from_schema(given, parameters={})
    assert (one.name, one.description) == ("given", "Return what was given.")
    assert one.parameters == {"type": "object"}


def test_the_schema_is_copied():
    schema = {"type": "object", "properties": {"key": {"type": "integer"}}}
    one = made(parameters=schema)
    schema["properties"]["key"]["type"] = "string"
    assert one.parameters["properties"]["key"] == {"type": "integer"}


def test_a_context_is_filled_in():
    assert ran(made(with_context), key=3).result == {"key": 3, "ticket": "T1"}
    assert "context" not in made(with_context).parameters["properties"]


def test_hints_are_not_read():
    def odd(key: "NoSuchType") -> int:  # noqa: F821
        """Odd."""
        return key

    assert ran(made(odd), key=3).result == 3


def test_positional_parameters_are_passed_too():
    def plain(key, name="none", /):
        """Plain."""
        return [key, name]

    schema = {"properties": {"key": {"type": "integer"}, "name": {"type": "string"}}}
    assert ran(made(plain, parameters=schema), key=3).result == [3, "none"]


def test_options_are_those_of_tools():
    one = made(
        readonly=True,
        effect="pure",
        repeatable=True,
        retries=4,
        timeout=3,
        concurrency=2,
        needs_approval=True,
    )
    assert (one.readonly, one.effect, one.repeatable, one.retries) == (True, "pure", True, 4)
    assert (one.timeout, one.gate.limit, one.needs_approval) == (3, 2, True)
    with pytest.raises(UsageError, match="expected effect="):
        made(effect="often")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (None, "expected parameters as the JSON Schema of an object: got NoneType"),
        ([], "expected parameters as the JSON Schema of an object: got list"),
        ({"type": "string"}, "expected parameters of the type 'object': got 'string'"),
        ({"type": ["object", "null"]}, "expected parameters of the type 'object'"),
        ({"properties": []}, "expected properties of parameters as an object: got list"),
        ({"properties": {"a": object()}}, "expected parameters as JSON"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(parameters, message):
    with pytest.raises(UsageError, match=message):
        made(parameters=parameters)


def test_faults_are_reported_when_the_tool_is_made():
    with pytest.raises(ToolError, match="one row"):
        made(name="one row")
    with pytest.raises(ToolError, match="a lambda has no name"):
        Tool.from_schema(lambda: 1, parameters={})
    with pytest.raises(UsageError, match="expected a function as a tool"):
        Tool.from_schema(3, parameters={})


def test_a_tool_of_a_class_is_bound_with_its_schema():
    class Rows:
        def find(self, **arguments):
            """Find rows."""
            return [type(self).__name__, arguments["key"]]

        find = Tool.from_schema(find, parameters=SCHEMA)

    assert ran(Rows().find, key=3).result == ["Rows", 3]


def test_it_can_handle_an_operation():
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/x": {
                "get": {
                    "parameters": [{"name": "key", "in": "query", "schema": {"type": "integer"}}]
                }
            }
        },
    }
    api = OpenAPI(document, handlers={"GET /x": made()})
    model = ScriptedModel([act("GET /x", key=3), finish()])
    assert Agent(model, tools=api).run_sync("go").tickets[0].result == {"key": 3}
