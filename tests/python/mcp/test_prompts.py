"""Prompts of MCP servers, which begin runs."""

import asyncio

import pytest

from callslip import Agent, Image, ScriptedModel, ToolError
from callslip.mcp import Prompt, PromptArgument
from pictures import png
from scripted import asked, finish
from serving import stdio


@pytest.fixture(scope="module")
def server():
    with stdio("library", name="library") as server:
        yield server


def test_prompts_are_listed_with_their_arguments(server):
    review, greet = server.prompts_sync()
    assert review == Prompt(
        "review",
        description="Review a book.",
        arguments=(PromptArgument("title", required=True), PromptArgument("tone")),
    )
    assert (greet.name, greet.title, greet.arguments) == ("greet", "Hello", ())


def test_a_prompt_is_messages_with_one_for_each_turn(server):
    assert server.get_prompt_sync("review", {"title": "Emma"}) == [
        {"role": "user", "content": ["You review books.", Image(png(32, 16))]},
        {"role": "assistant", "content": "Which one?"},
        {"role": "user", "content": "Review Emma, be kind."},
    ]


def test_a_prompt_begins_a_run(server):
    async def run():
        *before, task = await server.get_prompt("review", {"title": "Emma", "tone": "harsh"})
        agent = Agent(ScriptedModel([finish("Bad.")]))
        return await agent.run(task["content"], messages=before)

    told = asked(asyncio.run(run()).run.messages)
    contents = [one["content"] for one in told]
    assert contents[-4] == "You review books.\n[image 32x16, 86 bytes, U1]"
    assert contents[-3] == "Which one?"
    assert "Review Emma, be harsh." in contents[-2]


def test_prompts_are_listed_on_any_loop(server):
    assert [one.name for one in asyncio.run(server.prompts())] == ["review", "greet"]


@pytest.mark.parametrize(("name", "arguments"), [("review", None), ("nothing", {})])
def test_a_prompt_that_is_not_there_or_lacks_an_argument_fails(server, name, arguments):
    with pytest.raises(ToolError, match="^library: "):
        server.get_prompt_sync(name, arguments)


def test_a_server_without_prompts_has_none():
    with stdio("handwritten", include=["tool_0"]) as server:
        assert server.prompts_sync() == []
