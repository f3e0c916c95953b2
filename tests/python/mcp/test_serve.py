"""Agents as MCP servers, called by the SDK's own client and by other agents."""

import asyncio
import json
import subprocess
import sys
import time

import pytest
from mcp import Client, StdioServerParameters

from callslip import Agent, Context, Progress, ScriptedModel, UsageError, tool
from callslip.mcp import MCPServer, agent_server, serve
from scripted import act, finish, give
from serving import (
    PACKAGE,
    agent_for,
    at,
    error,
    eventually,
    forked,
    http_process,
    result,
    script,
    stdio,
)


def over_stdio():
    return Client(StdioServerParameters(command=sys.executable, args=forked("agent")))


def in_process(agent=None, **options):
    return Client(agent_server(agent or Agent(ScriptedModel([finish("done")])), **options))


async def asked(client, task, **options):
    name = "worker" if isinstance(client.server, StdioServerParameters) else "agent"
    return await client.call_tool(name, {"task": task}, **options)


def test_an_agent_is_one_tool_that_takes_a_task():
    async def main():
        async with over_stdio() as client:
            (offer,) = (await client.list_tools()).tools
            return offer, await asked(client, "say hello")

    offer, done = asyncio.run(main())
    assert (offer.name, offer.description) == ("worker", "Works.")
    assert offer.input_schema["required"] == ["task"]
    assert list(offer.input_schema["properties"]) == ["task"]
    assert [block.text for block in done.content] == ["did: say hello"]
    assert not done.is_error


def test_name_and_description_can_be_given():
    async def main():
        async with in_process(name="helper", description="Helps.") as client:
            return (await client.list_tools()).tools[0]

    offer = asyncio.run(main())
    assert (offer.name, offer.description) == ("helper", "Helps.")


def test_a_value_that_is_no_text_is_given_as_json_too():
    replies = [give({"rows": [1, 2]}), give([1, 2])]
    agent = Agent(ScriptedModel(replies), protocol="ticket")

    async def main():
        async with in_process(agent) as client:
            return await asked(client, "first"), await asked(client, "second")

    first, second = asyncio.run(main())
    assert first.structured_content == {"rows": [1, 2]}
    assert [block.text for block in first.content] == ['{"rows":[1,2]}']
    assert second.structured_content == {"result": [1, 2]}
    assert [block.text for block in second.content] == ["[1,2]"]


def test_turns_and_calls_are_told_as_progress():
    told = []

    async def hear(progress, total, message):
        told.append((progress, message))

    async def main():
        async with over_stdio() as client:
            return await asked(client, "work 2", progress_callback=hear)

    done = asyncio.run(main())
    assert done.content[0].text == "did: work 2"
    assert told == [
        (1, "thinking"),
        (2, 'working: work {"steps":2}'),
        (3, "work: 1/2"),
        (4, "work: 2/2"),
        (5, "thinking"),
    ]


def test_a_run_that_fails_is_a_failed_call_and_the_server_lives_on():
    async def main():
        async with over_stdio() as client:
            failed = await asked(client, "fail")
            return failed, await asked(client, "go on")

    failed, went_on = asyncio.run(main())
    assert failed.is_error
    assert failed.content[0].text == (
        "ModelError: the model failed in turn 1: RuntimeError: the model is away"
    )
    assert went_on.content[0].text == "did: go on"


def test_a_call_that_is_cancelled_cancels_its_run():
    async def main():
        async with over_stdio() as client:
            call = asyncio.create_task(asked(client, "work 1000"))
            await told(client, "at work", "begun: 1")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await told(client, "report", "stopped: 1")

    async def told(client, task, answer):
        until = time.monotonic() + 60
        while (await asked(client, task)).content[0].text != answer:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)

    asyncio.run(main())


def test_an_agent_whose_tools_need_approval_is_not_served():
    @tool(needs_approval=True)
    def pay() -> str:
        return "paid"

    with pytest.raises(
        UsageError, match="^the tool 'pay' needs approval, but nothing can approve it"
    ):
        agent_server(Agent(ScriptedModel([]), tools=[pay]))


def test_a_transport_that_is_none_is_said():
    with pytest.raises(UsageError) as raised:
        serve(Agent(ScriptedModel([])), transport="sse")
    assert str(raised.value) == (
        "expected transport='stdio' or 'streamable-http': got 'sse'; pass one of them"
    )


def test_an_agent_uses_a_served_agent_over_both_transports():
    with stdio("agent") as server:
        assert result(server, "worker", task="the first half") == "did: the first half"
        assert error(server, "worker", task="fail") == (
            "Error calling tool 'worker': ModelError: the model failed in turn 1: RuntimeError: "
            "the model is away"
        )
    with http_process("agent") as (port, _), at(port) as server:
        assert result(server, "worker", task="the other half") == "did: the other half"


def test_progress_of_a_served_agent_is_progress_of_the_call():
    async def watch(server):
        async with agent_for(server, ("worker", {"task": "work 2"})).stream("t") as run:
            return [event.message async for event in run if isinstance(event, Progress)]

    with stdio("agent") as server:
        told = asyncio.run(watch(server))
    assert told == [
        "thinking",
        'working: work {"steps":2}',
        "work: 1/2",
        "work: 2/2",
        "thinking",
    ]


async def begun(server):
    run = await agent_for(server, ("worker", {"task": "at work"})).run("t")
    return run.tickets[0].result


def test_a_run_that_is_cancelled_cancels_the_run_of_the_served_agent():
    with http_process("agent") as (port, _), stdio("agent") as own, at(port) as web:
        for server in (own, web):

            async def main(server=server):
                run = asyncio.create_task(
                    agent_for(server, ("worker", {"task": "work 1000"})).run("t")
                )
                until = time.monotonic() + 60
                while await begun(server) != "begun: 1":
                    assert time.monotonic() < until
                    await asyncio.sleep(0.05)
                run.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await run

            asyncio.run(main())
            assert eventually(
                lambda server=server: result(server, "worker", task="report") == "stopped: 1"
            )


def test_more_tools_can_be_added_to_the_servers_object():
    server = agent_server(Agent(ScriptedModel([finish()])))

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async def main():
        async with Client(server) as client:
            return [one.name for one in (await client.list_tools()).tools]

    assert asyncio.run(main()) == ["agent", "add"]


def test_a_served_agent_may_itself_use_servers():
    inner = MCPServer.stdio(sys.executable, [script("everything")])
    with inner:
        replies = [act("add", a=20, b=22), finish("42")]
        server = agent_server(Agent(ScriptedModel(replies), tools=inner, name="outer"))

        async def main():
            async with Client(server) as client:
                return await client.call_tool("outer", {"task": "add"})

        assert asyncio.run(main()).content[0].text == "42"


def test_a_models_error_is_told_without_its_secrets():
    def model(messages):
        raise RuntimeError("no: key sk-ant-api03-abcdefghijklmnop at https://u:pw@host/?token=zzz")

    async def main():
        async with in_process(Agent(model)) as client:
            return await asked(client, "t")

    done = asyncio.run(main())
    assert done.is_error
    assert done.content[0].text == (
        "ModelError: the model failed in turn 1: RuntimeError: no: key … at https://…@host/?token=…"
    )


def test_progress_that_can_not_be_told_ends_no_run():
    told = []

    @tool
    def odd(context: Context) -> str:
        context.progress(1, 2, "half \ud800 a pair")
        context.progress("x")
        return "done"

    async def hear(progress, total, message):
        told.append(message)

    async def main():
        agent = Agent(ScriptedModel([act("odd"), finish("went on")]), tools=[odd])
        async with in_process(agent) as client:
            return await asked(client, "t", progress_callback=hear)

    assert asyncio.run(main()).content[0].text == "went on"
    assert "odd: 1/2 half \ufffd a pair" in told


def test_an_empty_task_is_a_failed_call():
    async def main():
        async with in_process() as client:
            return await asked(client, " "), await asked(client, "t")

    empty, done = asyncio.run(main())
    assert (empty.is_error, empty.content[0].text) == (
        True,
        "expected the task: got blank text; pass what to do",
    )
    assert done.content[0].text == "done"


@pytest.mark.parametrize("name", ["my agent", " ", 5])
def test_a_name_that_no_tool_may_have_is_said(name):
    with pytest.raises(UsageError) as raised:
        agent_server(Agent(ScriptedModel([])), name=name)
    assert str(raised.value) == (
        f"expected the name of a tool, without blanks: got {name!r}: pass another with name="
    )


PRINTING = """
import os, sys
from callslip import Agent
from callslip.mcp import serve
kept = sys.stdout
print("before")
def model(messages):
    print("one"); kept.write("two\\n"); os.write(1, b"three\\n")
    return '{"thought": "", "action": "FINISH", "final_answer": "ok", "task_successful": true}'
serve(Agent(model, name="worker"))
print("after")
"""


def test_what_is_printed_while_serving_goes_to_standard_error():
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    call = {"name": "worker", "arguments": {"task": "t"}}
    process = subprocess.Popen(
        [sys.executable, "-c", PRINTING],
        env=PACKAGE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = []
    for number, (method, params) in enumerate([("initialize", hello), ("tools/call", call)]):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        lines.append(process.stdout.readline())
        if not number:
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            process.stdin.write(json.dumps(ready) + "\n")
    rest, errors = process.communicate(timeout=200)
    assert [json.loads(line)["id"] for line in lines] == [0, 1]
    assert rest == "after\n"
    assert {"before", "one", "two", "three"} <= set(errors.splitlines())
