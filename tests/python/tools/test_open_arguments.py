"""Tools with a schema without properties: any object is valid, as in JSON Schema."""

import pytest

from callslip import Agent, Context, ScriptedModel, Tool
from callslip.approval import view
from scripted import act, block, finish, give
from scripted import call as route

PROTOCOLS = ("react", "ticket", "chatty")
OPEN = [{}, {"type": "object"}, {"description": "a row"}, {"additionalProperties": True}]
CLOSED = [{"properties": {}}, {"type": "object", "properties": {}}, {"additionalProperties": False}]
ROW = {"city": "Oslo", "odd name": [1, None, {"a": True}]}


def given(**arguments):
    """Return the arguments."""
    return arguments


def with_context(context: Context, **arguments):
    """Return the ticket and the arguments."""
    return {"ticket": context.ticket_id, **arguments}


def replies(protocol, arguments):
    match protocol:
        case "react":
            return [act("rows", **arguments), finish("done")]
        case "ticket":
            return [route("rows", arguments), give("done")]
    return [block(("c", "rows", arguments)), "done"]


def run(protocol, parameters, arguments, function=given, **options):
    one = Tool.from_schema(function, name="rows", parameters=parameters, **options)
    model = ScriptedModel(replies(protocol, arguments))
    return Agent(model, protocol=protocol, tools=[one], delegate=False).run_sync("go")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("parameters", OPEN)
@pytest.mark.parametrize("arguments", [{}, ROW])
def test_a_tool_without_named_arguments_takes_any(protocol, parameters, arguments):
    result = run(protocol, parameters, arguments)
    assert (result.run.violations, result.tickets[0].result) == (0, arguments)
    assert "args: none" not in result.messages[0]["content"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("parameters", CLOSED)
def test_a_tool_that_names_no_arguments_takes_none(protocol, parameters):
    one = Tool.from_schema(given, name="rows", parameters=parameters)
    replied = [replies(protocol, ROW)[0], *replies(protocol, {})]
    agent = Agent(ScriptedModel(replied), protocol=protocol, tools=[one], delegate=False)
    result = agent.run_sync("go")
    assert [e.violation["code"] for e in result.run.log if e.kind == "violated"] == [
        "unknown_argument"
    ]
    assert result.tickets[0].result == {}


def test_a_context_is_filled_in():
    assert run("react", {}, ROW, with_context).tickets[0].result == {"ticket": "T1", **ROW}


def test_references_to_definitions_name_arguments():
    shared = {"$ref": "#/$defs/row", "$defs": {"row": {"properties": {"city": {}}}}}
    assert run("react", shared, {"city": 5}).tickets[0].result == {"city": 5}


def test_a_person_sees_each_argument_of_a_call():
    one = Tool.from_schema(given, name="rows", parameters={}, needs_approval=True)
    seen = []

    def approve(ticket):
        seen.extend(row.name for row in view(ticket).rows)
        return True

    model = ScriptedModel(replies("react", ROW))
    result = Agent(model, tools=[one]).run_sync("go", approve=approve)
    assert result.tickets[0].result == ROW
    assert seen[:2] == ["city", '"odd name"']


def test_a_call_whose_result_comes_from_outside_takes_any():
    one = Tool.from_schema(None, name="rows", parameters={}, external=True)
    agent = Agent(ScriptedModel(replies("react", ROW)), tools=[one])
    result = agent.run_sync("go", answer=lambda ticket: ticket.arguments)
    assert result.tickets[0].result == ROW
