"""MCP servers whose tools change while they are connected."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from mcp import MCPError

from callslip import Agent, ScriptedModel, UsageError
from callslip.mcp import _lists
from scripted import act, asked, finish
from serving import at, error, eventually, http_process, python, result, stdio

OURS = ["acquire", "lose", "lose_quietly", "log", "log_data", "folders"]


@pytest.fixture(params=["stdio", "http"])
def server(request, era):
    """A new server, which tells its changes by either revision of the protocol."""
    if request.param == "stdio":
        with stdio("library", name="library") as server:
            yield server
    else:
        with http_process("library") as (port, _), at(port, name="library") as server:
            yield server


def names(server):
    return [one.name for one in server.as_tools()]


def test_an_agent_made_after_a_change_has_the_new_tools(server, caplog):
    assert names(server) == OURS
    before = Agent(ScriptedModel([act("acquire", title="emma"), finish()]), tools=[server])
    assert before.run_sync("t").tickets[0].result == {"result": "acquired"}

    assert eventually(lambda: names(server) == [*OURS, "lend_emma"])
    assert result(server, "lend_emma") == {"result": "lent emma"}
    assert (
        "library: its tools have changed (added lend_emma): agents made from now on have the new "
        "ones"
    ) in caplog.messages
    # The agent made before has its own still.
    told = asked(before.replace(model=ScriptedModel([finish()])).run_sync("t").run.messages)
    assert "lend_emma" not in str(told)


def test_a_call_of_a_tool_that_is_gone_says_so(server):
    old = Agent(ScriptedModel([act("log_data"), finish()] * 2), tools=[server], name="old")
    assert result(server, "lose", tool="log_data") == {"result": "lost"}
    assert eventually(lambda: "log_data" not in names(server))
    ticket = old.run_sync("t").tickets[0]
    assert ticket.error == (
        "Error calling tool 'log_data': the MCP server 'library' no longer has the tool 'log_data'."
    )


@pytest.mark.parametrize("era", ["old"], indirect=True)
@pytest.mark.usefixtures("era")
def test_a_server_that_is_silent_about_a_change_can_be_read_again(caplog):
    with stdio("library", name="library") as server:
        result(server, "lose_quietly", tool="log")
        assert names(server) == OURS
        assert server.refresh_sync() is server
        assert "log" not in names(server)
        asyncio.run(server.refresh())
        changes = [one for one in caplog.messages if "have changed" in one]
        assert changes == [
            "library: its tools have changed (removed log): agents made from now on have the new "
            "ones"
        ]


def test_an_option_that_names_a_tool_that_went_fails_for_new_agents_alone():
    with stdio("library", include=["log", "lose_quietly"]) as server:
        agent = Agent(
            ScriptedModel([act("lose_quietly", tool="log"), finish()] * 2), tools=[server]
        )
        agent.run_sync("t")
        with pytest.raises(UsageError, match=r"has no tool 'log' \(include=\)"):
            server.refresh_sync()
        with pytest.raises(UsageError, match=r"has no tool 'log' \(include=\)"):
            Agent(ScriptedModel([]), tools=[server])
        # The session goes on.
        ticket = agent.run_sync("t").tickets[0]
        assert ticket.error.startswith("Error calling tool 'lose_quietly': ")


RESTARTED = """
import os, sys
from pathlib import Path
from mcp.server import MCPServer

server = MCPServer("odd")
starts = Path(sys.argv[1] if len(sys.argv) > 1 else MARK)
number = len(starts.read_text()) if starts.exists() else 0
starts.write_text("x" * (number + 1))

@server.tool()
def end() -> str:
    os._exit(3)

def version() -> int:
    return number

server.add_tool(version, name=f"version_{number}")
server.run("stdio")
"""


def test_a_server_that_starts_again_with_other_tools_is_read_again(tmp_path, caplog):
    code = RESTARTED.replace("MARK", repr(str(tmp_path / "starts")))
    with python(code, name="odd") as server:
        old = Agent(ScriptedModel([act("version_0"), finish()]), tools=[server])
        assert names(server) == ["end", "version_0"]
        assert "was lost" in error(server, "end")
        assert old.run_sync("t").tickets[0].error == (
            "Error calling tool 'version_0': the MCP server 'odd' no longer has the tool "
            "'version_0'."
        )
        assert (
            "odd: its tools have changed (added version_1; removed version_0): agents made from "
            "now on have the new ones"
        ) in caplog.messages
        assert names(server) == ["end", "version_1"]
        assert result(server, "version_1") == {"result": 1}


class Subscriptions:
    """A client of the SDK whose subscriptions end, one after the other."""

    protocol_version = "2026-07-28"

    def __init__(self, *ends):
        self.ends = list(ends)
        tools = SimpleNamespace(list_changed=True)
        self.server_capabilities = SimpleNamespace(tools=tools)

    @asynccontextmanager
    async def listen(self, *, tools_list_changed):
        assert tools_list_changed
        end = self.ends.pop(0)
        if isinstance(end, MCPError):
            raise end
        yield Subscription(end)


class Subscription:
    honored = SimpleNamespace(tools_list_changed=True)

    def __init__(self, end):
        self.end = end

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise self.end


def test_a_subscription_that_ends_is_renewed_and_one_that_is_refused_is_not(monkeypatch):
    monkeypatch.setattr(_lists, "_FIRST_PAUSE", 0.0)
    refused = MCPError(-32601, "Method not found")
    begun = []
    client = Subscriptions(
        StopAsyncIteration(), RuntimeError("lost"), refused, StopAsyncIteration()
    )

    async def listen():
        listening = asyncio.create_task(
            _lists.listen_for_tools(client, lambda: begun.append(len(client.ends)))
        )
        async with asyncio.timeout(60):
            while client.ends:
                await asyncio.sleep(0.001)
        listening.cancel()

    asyncio.run(listen())
    # A renewal may be refused for a while; the first request is answered for good.
    assert begun == [3, 2, 0]
    asyncio.run(_lists.listen_for_tools(Subscriptions(refused), begun.clear))
    assert begun == [3, 2, 0]
