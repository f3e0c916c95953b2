"""Answers of MCP servers that can't be read, and what is said of them."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

import pytest

from callslip import ToolError
from mcp_servers import handwritten
from serving import SERVERS, at, error, python, result

SECRET = "sk_live_" + "0123456789" * 9 + "zzzz"

ODD = """
import json, sys
sys.path.insert(0, SERVERS)
import handwritten
handwritten.TOOLS = handwritten.TOOLS[:3]
def speak():
    for line in sys.stdin:
        message = json.loads(line)
        reply = handwritten.reply_to(message)
        if message["method"] == "tools/call" and message["params"]["name"] == "tool_1":
            print(ANSWER % json.dumps(message["id"]), flush=True)
        elif reply is not None:
            print(json.dumps(reply), flush=True)
handwritten.time.sleep = lambda seconds: None
speak()
"""


def odd(answer, **options):
    code = ODD.replace("SERVERS", repr(str(SERVERS))).replace("ANSWER", repr(answer))
    return python(code, **options)


@pytest.mark.parametrize(
    "rest",
    [
        '"result": null',
        '"error": "it broke"',
        '"result": {"content": [{"type": "text", "text": "a\ttab"}]}',
    ],
)
def test_an_answer_that_can_not_be_read_fails_its_call_at_once(rest):
    with odd('{"jsonrpc": "2.0", "id": %s, ' + rest + "}") as server:
        began = time.monotonic()
        assert error(server, "tool_1") == (
            "Error calling tool 'tool_1': the MCP server 'odd' broke the protocol: its answer "
            "can't be read."
        )
        assert time.monotonic() - began < 40
        # The session goes on.
        assert result(server, "tool_0") == "tool_0"


def test_nonsense_in_place_of_an_answer_is_said_when_the_time_is_over():
    with odd("{nope %s", timeout=3.0) as server:
        assert error(server, "tool_1") == (
            "Error calling tool 'tool_1': the MCP server 'odd' gave no result within 3 seconds, "
            "but it sent something that is not an MCP message."
        )


def test_an_answer_that_is_none_of_a_call_is_said_without_it():
    broken = json.dumps({"content": [{"type": SECRET, "text": "x"}]})
    with odd('{"jsonrpc": "2.0", "id": %s, "result": ' + broken + "}") as server:
        said = error(server, "tool_1")
    assert said.startswith(
        "Error calling tool 'tool_1': the MCP server 'odd' broke the protocol: its answer has a "
        "fault at 'content.0"
    )
    assert "sk_live" not in said


@contextmanager
def served(broken):
    """A server over HTTP whose answers to a method are no JSON and repeat a header."""

    class Handler(handwritten.Handler):
        def give(self, status, value, headers=()):
            method = handwritten.seen[-1] if handwritten.seen else ""
            if method != broken:
                super().give(status, value, headers)
                return
            data = f"{{nope key {self.headers['X-Key']}".encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    handwritten.seen.clear()
    try:
        yield at(listening.server_port, name="odd", headers={"X-Key": SECRET}, exclude=["tool 6"])
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
        handwritten.sessions.clear()


def test_json_that_is_none_is_said_without_what_it_holds():
    with served("tools/call") as server, server:
        said = error(server, "tool_0")
    assert said == (
        "Error calling tool 'tool_0': the MCP server 'odd' broke the protocol: its answer can't "
        "be read."
    )
    with served("tools/list") as server, pytest.raises(ToolError) as raised:
        server.connect_sync()
    assert str(raised.value) == (
        "the MCP server 'odd' can't be connected: it broke the protocol: its answer can't be read"
    )


UNFIT = """
import sys
from mcp.server.lowlevel import Server
import mcp_types as types
SCHEMA = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
async def listed(context, params):
    tool = types.Tool(name="count", input_schema={"type": "object"}, output_schema=SCHEMA)
    silent = types.Tool(name="silent", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool, silent])
async def called(context, params):
    if params.name == "silent":
        return types.CallToolResult(content=[], is_error=True)
    content = {"n": [1, "SECRET in a long text " * 9]}
    return types.CallToolResult(content=[], structured_content=content)
server = Server("odd", on_list_tools=listed, on_call_tool=called)
import anyio
from mcp.server.stdio import stdio_server
async def main():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
anyio.run(main)
"""


def test_a_result_that_does_not_fit_is_said_with_its_place_and_without_its_text():
    with python(UNFIT) as server:
        assert error(server, "count") == (
            "Error calling tool 'count': the MCP server 'odd' broke the protocol: its structured "
            "result does not fit its output schema at '/n/1'."
        )
        assert error(server, "silent") == (
            "Error calling tool 'silent': it failed without saying why."
        )
