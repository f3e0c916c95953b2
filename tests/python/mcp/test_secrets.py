"""Secrets of MCP servers in what a model sees, and in what is logged."""

import asyncio

import pytest

from callslip import Agent, Progress
from callslip.mcp._secrets import server_secrets
from callslip.mcp._stderr import ServerStderr
from scripted import act, finish
from serving import agent_for, python

SECRET = "canary-5e1f-secret"

TELLING = """
import os, sys
from typing import Annotated, Any
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import BlobResourceContents, EmbeddedResource
from pydantic import Field
key = os.environ["KEY"]
server = MCPServer("telling")
@server.tool(description=f"Uses {key}.")
def told(default: Annotated[str, Field(description=f"not {key}")] = key) -> dict[str, Any]:
    return {"key": key, "list": [f"{key}!", 1, None], key: 2}
@server.tool(structured_output=False)
def said() -> list[Any]:
    blob = BlobResourceContents(uri=f"a://b/{key}.pdf", mime_type="a/b", blob="aGk=")
    return [f"it is {key}", EmbeddedResource(type="resource", resource=blob)]
@server.tool()
async def scan(context: Context) -> str:
    await context.report_progress(float("nan"), 2, "no number")
    await context.report_progress(1, 2, f"with {key}")
    return "scanned"
server.run("stdio")
"""


def test_secrets_stand_in_neither_prompt_nor_result():
    prompts = []

    def model(messages):
        prompts.append("".join(message["content"] for message in messages))
        return [act("told"), act("said"), finish("done")][len(prompts) - 1]

    with python(TELLING, env={"KEY": SECRET}) as server:
        first, second = Agent(model, tools=[server]).run_sync("t").tickets
        schema = server.as_tools()[0].parameters
    assert first.result == {"key": "***", "list": ["***!", 1, None], "***": 2}
    assert second.result[0] == "it is ***"
    assert second.result[1].name == "***.pdf"
    assert "Uses ***." in prompts[0]
    assert schema["properties"]["default"] == {
        "description": "not ***",
        "title": "Default",
        "type": "string",
    }
    assert all(SECRET not in prompt for prompt in prompts)


def test_progress_of_a_server_is_told_without_its_secrets_and_as_numbers():
    async def watch(server):
        async with agent_for(server, ("scan", {})).stream("t") as run:
            seen = [event async for event in run if isinstance(event, Progress)]
        return seen, run.result.tickets[0].result

    with python(TELLING, env={"KEY": SECRET}) as server:
        seen, scanned = asyncio.run(watch(server))
    assert [(event.done, event.message) for event in seen] == [(1, "with ***")]
    assert scanned == {"result": "scanned"}


def test_names_and_allowed_values_of_a_schema_stay():
    schema = {
        "type": "object",
        "title": f"of {SECRET}",
        "properties": {
            SECRET: {"enum": [SECRET], "examples": [SECRET], "default": SECRET},
            "default": {"type": "string", "default": "plain"},
        },
        "anyOf": [{"description": SECRET}],
        "required": [SECRET],
    }
    assert server_secrets(env={"KEY": SECRET}).redact_schema(schema) == {
        "type": "object",
        "title": "of ***",
        "properties": {
            SECRET: {"enum": [SECRET]},
            "default": {"type": "string", "default": "plain"},
        },
        "anyOf": [{"description": "***"}],
        "required": [SECRET],
    }


@pytest.mark.parametrize("before", [65_530, 65_536 - 16, 131_065, 98_300])
def test_a_secret_in_a_line_that_is_cut_is_in_no_record(before, caplog, monkeypatch):
    monkeypatch.setattr("callslip.mcp._stderr._LONGEST_LINE", 1 << 20)
    caplog.set_level("INFO", "callslip.mcp")
    errors = ServerStderr("odd", server_secrets(env={"KEY": SECRET}))
    writing = errors.pipe.buffer
    errors._thread.start()
    writing.write(b"x" * before + SECRET.encode() + b"y" * 70_000 + b"\nend\n")
    errors.pipe.close()
    errors._thread.join()
    said = "".join(caplog.messages).replace("odd: ", "")
    assert said == "x" * before + "***" + "y" * 70_000 + "end"


def test_a_setting_is_no_secret():
    secrets = server_secrets(
        env={"STAGE": "production", "PASSWORD": "correcthorse", "ID": "a-1234567"}
    )
    assert secrets.redact("production correcthorse a-1234567") == "production *** ***"
