"""Images and files from MCP servers, and in the answers of agents that are served."""

import asyncio
import base64
import json

import pytest
from mcp import Client

from callslip import Agent, File, Image, ScriptedModel, tool
from callslip.mcp import agent_server
from pictures import png
from scripted import act, finish, give
from serving import agent_for, python, result

CAT = png(32, 16)
SOUND = b"RIFF\x24\0\0\0WAVEfmt "

SERVER = (
    f"CAT, SOUND = {CAT!r}, {SOUND!r}"
    """
import base64, sys
from typing import Any
from mcp.server import MCPServer
from mcp_types import *
server = MCPServer("camera")
CAT, SOUND = base64.b64encode(CAT).decode(), base64.b64encode(SOUND).decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
def text(words): return TextContent(type="text", text=words)
def image(data, kind="image/png"): return ImageContent(type="image", data=data, mime_type=kind)
def blob(uri, data, kind):
    blob = BlobResourceContents(uri=uri, mime_type=kind, blob=data)
    return EmbeddedResource(type="resource", resource=blob)

@server.tool()
def picture() -> CallToolResult:
    return CallToolResult(content=[image(CAT)])

@server.tool()
def several() -> CallToolResult:
    sound = AudioContent(type="audio", data=SOUND, mime_type="audio/wav")
    pdf = blob("files://2026/plan%20B.pdf", PDF, "application/pdf")
    other = blob("files://state", base64.b64encode(b"four").decode(), "application/x-state")
    return CallToolResult(content=[text("before"), image(CAT), text("after"), sound, pdf, other])

@server.tool()
def faulty() -> CallToolResult:
    four = base64.b64encode(b"four").decode()
    return CallToolResult(content=[
        image("no base64!"), image("é"), image(""), image(four), image(CAT, "text/plain\\nno"),
        image(four, "text/plain"), image(PDF), blob("files://x", "a", "application/pdf"),
        blob("files://x", four, "evil\\n[type"),
    ])

@server.tool()
def beside() -> CallToolResult:
    return CallToolResult(content=[text("{}"), image(CAT)], structured_content={"size": [32, 16]})

@server.tool()
def repeated() -> list[Any]:
    return ["a cat", image(CAT)]

server.run("stdio")
"""
)


@pytest.fixture(scope="module")
def server():
    with python(SERVER, name="camera") as server:
        yield server


def test_a_single_image_is_the_result(server):
    run = agent_for(server, ("picture", {})).run_sync("t").run
    image = run.tickets[0].result
    assert isinstance(image, Image)
    assert (image.data, image.label) == (CAT, "T1")
    assert run.parts == {"T1": image}


def test_several_blocks_keep_their_order(server):
    before, image, after, sound, pdf, other = result(server, "several")
    assert (before, after, image.data) == ("before", "after", CAT)
    assert (sound.kind, sound.media_type, sound.data) == ("audio", "audio/wav", SOUND)
    assert (pdf.kind, pdf.name, pdf.data) == ("pdf", "plan B.pdf", b"%PDF-1.7")
    assert (type(other), other.media_type, other.name) == (File, "application/x-state", None)


def test_data_that_is_not_what_it_claims_stays_an_object(server):
    told = result(server, "faulty")
    assert [one.get("size") if isinstance(one, dict) else one for one in told] == [
        7,
        0,
        0,
        4,
        Image(CAT),
        4,
        8,
        0,
        4,
    ]


def test_a_structured_result_comes_first_and_contains_what_it_repeats(server):
    assert result(server, "beside") == [{"size": [32, 16]}, Image(CAT)]
    assert result(server, "repeated") == {"result": ["a cat", Image(CAT)]}


def test_a_model_that_takes_images_is_sent_them(server):
    model = ScriptedModel([act("picture"), finish()], parts=("image",))
    Agent(model, tools=[server]).run_sync("t")
    last = model.requests[-1].messages[-1]
    assert last["parts"] == [Image(CAT)]
    assert "[image 32x16, 86 bytes, T1]" in last["content"]


@tool
def draw() -> Image:
    """Draw."""
    return Image(png(4, 3))


@tool
def write() -> dict[str, File]:
    """Write."""
    files = [File(SOUND, media_type="audio/wav"), File(b"%PDF-1.7", name="plan B.pdf")]
    return dict(zip(("sound", "plan"), files, strict=True))


PLOT = "[image 4x3, 73 bytes, T1]"


def served(replies, **options):
    """What a client of a served agent gets."""
    agent = Agent(ScriptedModel(replies), tools=[draw, write], **options)

    async def main():
        async with Client(agent_server(agent)) as client:
            return await client.call_tool("agent", {"task": "t"})

    return asyncio.run(main())


def test_an_answer_is_served_with_the_images_that_it_names():
    done = served([act("draw"), finish(f"It is here: {PLOT}.")], protocol="react")
    text, image = done.content
    assert text.text == "It is here: [image 4x3, 73 bytes]."
    assert (image.type, image.mime_type) == ("image", "image/png")
    assert base64.b64decode(image.data) == png(4, 3)
    (only,) = served([act("draw"), finish("It is T1.")], protocol="react").content
    assert only.text == "It is T1."


def test_sound_and_files_of_an_answer_are_served_as_such():
    lines = [
        "[audio audio/wav, 16 bytes, T1.1]",
        "[file application/pdf, 8 bytes, T1.2, plan B.pdf]",
    ]
    replies = [
        '<output>{"type": "CALL", "route": "/write", "payload": {}, "description": "d"}</output>',
        give({"made": lines}),
    ]
    done = served([f"<thoughts>a</thoughts>{replies[0]}", replies[1]], protocol="ticket")
    text, sound, plan = done.content
    made = {"made": ["[audio audio/wav, 16 bytes]", "[file application/pdf, 8 bytes, plan B.pdf]"]}
    assert (json.loads(text.text), done.structured_content) == (made, made)
    assert (sound.type, sound.mime_type, sound.data) == (
        "audio",
        "audio/wav",
        base64.b64encode(SOUND).decode(),
    )
    assert (plan.type, plan.resource.mime_type) == ("resource", "application/pdf")
    assert plan.resource.uri.endswith("/T1.2/plan%20B.pdf")
    assert base64.b64decode(plan.resource.blob) == b"%PDF-1.7"
