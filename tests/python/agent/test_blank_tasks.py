"""Tasks and messages of blank text, in whichever way a program gives them."""

import asyncio

import pytest

from callslip import Agent, Image, ScriptedModel, UsageError
from scripted import block

BLANK = ["", " \n", [], ["", " "]]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
GIVEN = {
    "run_sync": lambda agent, text: agent.run_sync(text),
    "run": lambda agent, text: asyncio.run(agent.run(text)),
    "stream": lambda agent, text: agent.stream(text),
    "stream_sync": lambda agent, text: agent.stream_sync(text),
    "start": lambda agent, text: asyncio.run(started(agent, text)),
    "send_sync": lambda agent, text: agent.run_sync("go").run.send_sync(text),
    "say": lambda agent, text: agent.stream(run="r", say=text),
    "hand_over_sync": lambda agent, text: agent.hand_over_sync(agent.run_sync("go").run, say=text),
    "messages": lambda agent, text: agent.run_sync(
        "go", messages=[{"role": "user", "content": text}]
    ),
}


async def started(agent, text):
    return agent.start(text)


@pytest.mark.parametrize("text", BLANK, ids=repr)
@pytest.mark.parametrize("how", GIVEN)
def test_blank_text_is_refused(how, text, tmp_path):
    model = ScriptedModel(["done"])
    agent = Agent(model, protocol="chatty", store=tmp_path / "runs.sqlite")
    with pytest.raises(UsageError) as caught:
        GIVEN[how](agent, text)
    what = {"messages": "the content of message 1 of messages=…"}
    what |= dict.fromkeys(("send_sync", "say", "hand_over_sync"), "the message")
    assert str(caught.value) == (
        f"expected {what.get(how, 'the task')}: got blank text; pass text, or a list of texts, "
        "images and files"
    )


def test_images_alone_are_a_task():
    model = ScriptedModel(["a cat"])
    assert Agent(model, protocol="chatty").run_sync([Image(PNG)]).value == "a cat"


@pytest.mark.parametrize("how", ["async", "sync"])
def test_a_blank_task_of_the_model_starts_no_child_run(how):
    asked = []
    below = Agent(lambda messages: asked.append(1) or "x", protocol="chatty", name="sub")
    model = ScriptedModel([block(("a", "sub", {"task": " "})), "done"])
    agent = Agent(model, protocol="chatty", tools=[below.as_tool(description="Do a part.")])
    result = agent.run_sync("go") if how == "sync" else asyncio.run(agent.run("go"))
    assert (result.value, asked, result.run.children) == ("done", [], [])
    assert "its task is blank" in result.tickets[0].error
