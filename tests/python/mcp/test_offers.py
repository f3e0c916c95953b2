"""What MCP servers offer that is faulty."""

import threading
import time

import pytest

from callslip import Agent, ScriptedModel, ToolError, UsageError
from callslip.mcp import MCPServer
from serving import SERVERS, error, python, result

OFFERING = """
import sys
sys.path.insert(0, SERVERS)
import handwritten
handwritten.TOOLS[2:] = OFFERED
handwritten.speak_stdio()
"""


def offering(*tools, **options):
    code = OFFERING.replace("SERVERS", repr(str(SERVERS))).replace("OFFERED", repr(tools))
    return python(code, **options)


@pytest.mark.parametrize(
    ("bad", "named", "place"),
    [
        ({"name": "bad", "inputSchema": {}}, "bad", "inputSchema.type"),
        ({"name": "bad"}, "bad", "inputSchema"),
        (
            {"name": "bad", "inputSchema": {"type": "object"}, "description": 5},
            "bad",
            "description",
        ),
        ({"inputSchema": {"type": "object"}}, "no. 3", "name"),
        (3, "no. 3", ""),
    ],
)
def test_a_faulty_tool_is_left_out_and_named(bad, named, place, caplog):
    with offering(bad) as server:
        assert [tool.name for tool in server.as_tools()] == ["tool_0", "tool_1"]
        assert result(server, "tool_0") == "tool_0"
    assert f"odd: left out the tool '{named}', which is faulty at '{place}'" in caplog.messages


def test_a_faulty_tool_may_be_left_out_by_name():
    bad = {"name": "bad", "inputSchema": {}}
    with offering(bad, exclude=["bad"], needs_approval=["bad"]) as server:
        assert [tool.name for tool in server.as_tools()] == ["tool_0", "tool_1"]
    with pytest.raises(UsageError) as raised:
        offering(bad, include=["bad"]).connect_sync()
    assert str(raised.value) == (
        "the MCP server 'odd' has no tool 'bad' (include=): it has tool_0, tool_1; pass its own "
        "names, without prefix, or patterns"
    )


def test_two_tools_of_one_name_of_one_server_are_said():
    twice = {"name": "tool_0", "inputSchema": {"type": "object"}}
    with pytest.raises(ToolError) as raised:
        Agent(ScriptedModel([]), tools=offering(twice))
    assert str(raised.value) == (
        "the MCP server 'odd' has more than one tool 'tool_0': leave them out with "
        "exclude=['tool_0']"
    )


def test_a_server_that_is_closed_in_mid_call_was_not_lost():
    with offering() as server:
        said = []
        call = threading.Thread(target=lambda: said.append(error(server, "tool_1")))
        call.start()
        time.sleep(0.5)
        server.close()
        call.join(60)
    assert said == [
        "Error calling tool 'tool_1': the MCP server 'odd' was closed during the call, which may "
        "have taken effect."
    ]


def test_headers_are_strings():
    with pytest.raises(UsageError) as raised:
        MCPServer.http("http://127.0.0.1:1/mcp", headers={"X-Key": 1})
    assert str(raised.value) == "expected headers['X-Key'] to be text: got int"


@pytest.mark.parametrize(
    ("protocol", "options", "name"),
    [
        ("chatty", {"delegate": True}, "spawn_agent"),
        ("chatty", {}, "wait_for_agents"),
        ("ticket", {}, "search_tools"),
        ("ticket", {}, "describe_tool"),
        ("ticket", {"python": True}, "execute_python_code"),
        ("react", {}, "FINISH"),
    ],
)
def test_a_tool_never_replaces_one_of_the_runtimes(protocol, options, name):
    named = {"name": name, "inputSchema": {"type": "object"}}
    advice = "use a prefix for the MCP server: MCPServer.…(…, prefix='files_')"
    with offering(named) as server, pytest.raises(ToolError) as raised:
        Agent(ScriptedModel([]), protocol=protocol, tools=server, **options)
    reason = (
        "expected another name for a tool: 'NAME' is one of the runtime's own"
        if protocol != "react"
        else "a tool of the react protocol can't be named 'NAME', the word that ends a run"
    )
    assert str(raised.value) == f"{reason.replace('NAME', name)}: {advice}"
    with offering(named, prefix="odd_") as server:
        agent = Agent(ScriptedModel([]), protocol=protocol, tools=server, **options)
        assert f"odd_{name}" in [one.name for one in server.as_tools()]
        del agent
