"""Resources of MCP servers: for the program, and as tools for a model."""

import asyncio

import pytest

from callslip import Agent, File, Image, ScriptedModel, ToolError, UsageError
from callslip.mcp import MCPServer, Resource, ResourceContent, ResourceTemplate
from callslip.mcp._resources import contents_for_model
from pictures import png
from serving import SERVERS, at, error, http_process, python, result, stdio, tickets

EMMA = "Emma Woodhouse, handsome, clever, and rich"


@pytest.fixture(scope="module")
def over_stdio():
    with stdio("library", resources=True, prefix="lib_", name="library") as server:
        yield server


@pytest.fixture(scope="module")
def over_http():
    options = {"resources": True, "prefix": "lib_", "name": "library"}
    with http_process("library") as (port, _), at(port, **options) as server:
        yield server


@pytest.fixture(params=["stdio", "http"])
def server(request):
    return request.getfixturevalue(f"over_{request.param}")


def test_a_program_lists_and_reads_resources(server):
    emma, cover, broken, plan = server.resources_sync()
    assert emma == Resource("books://emma", "Emma", description="A novel.", mime_type="text/plain")
    assert (cover.uri, cover.mime_type) == ("books://cover", "image/png")
    assert server.resource_templates_sync() == [
        ResourceTemplate(
            "books://by/{author}", "by", description="All of an author.", mime_type="text/plain"
        )
    ]
    assert server.read_resource_sync(emma.uri) == [
        ResourceContent("books://emma", "text/plain", text=EMMA)
    ]
    (image,) = server.read_resource_sync(cover.uri)
    assert (image.text, image.data) == (None, png(32, 16))
    assert [(one.uri, one.mime_type) for one in (broken, plan)] == [
        ("books://broken.png", "image/png"),
        ("books://shelf/plan.pdf", "application/pdf"),
    ]


def test_resources_are_read_on_any_loop(over_stdio):
    async def read():
        resources, templates = await over_stdio.resources(), await over_stdio.resource_templates()
        (content,) = await over_stdio.read_resource("books://by/Austen")
        return len(resources), len(templates), content.text

    assert asyncio.run(read()) == (4, 1, "The books of Austen")


def test_a_model_lists_resources_and_templates(server):
    listed = result(server, "lib_list_resources")
    assert listed["resources"][0] == {
        "uri": "books://emma",
        "name": "Emma",
        "description": "A novel.",
        "mime_type": "text/plain",
    }
    assert [one["uri"] for one in listed["resources"]] == [
        "books://emma",
        "books://cover",
        "books://broken.png",
        "books://shelf/plan.pdf",
    ]
    assert [one["uri_template"] for one in listed["templates"]] == ["books://by/{author}"]


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("books://emma", EMMA),
        ("books://by/Eliot", "The books of Eliot"),
        ("books://broken.png", "[image/png, 25 KB]"),
        ("books://cover", Image(png(32, 16))),
        ("books://shelf/plan.pdf", File(b"%PDF-1.7")),
    ],
)
def test_a_model_reads_text_images_and_files(server, uri, told):
    assert result(server, "lib_read_resource", uri=uri) == told


def test_a_file_has_the_name_of_its_address(server):
    assert result(server, "lib_read_resource", uri="books://shelf/plan.pdf").name == "plan.pdf"
    assert result(server, "lib_read_resource", uri="books://cover").name is None


def test_several_contents_are_told_with_their_addresses():
    contents = [
        ResourceContent("a://b", text="words"),
        ResourceContent("a://c.png", "image/png", data=png(2, 2)),
        ResourceContent("a://d", None, data=b"four"),
    ]
    assert contents_for_model(contents) == [
        {"uri": "a://b", "content": "words"},
        {"uri": "a://c.png", "content": Image(png(2, 2))},
        {"uri": "a://d", "content": "[binary data, 4 bytes]"},
    ]


def test_the_tools_for_resources_change_nothing(over_stdio):
    named = {one.name: one for one in over_stdio.as_tools()}
    for name in ("lib_list_resources", "lib_read_resource"):
        assert (named[name].readonly, named[name].effect) == (True, "pure")
    assert named["lib_list_resources"].description == (
        "List the resources of library: documents and data for lib_read_resource."
    )


def test_a_resource_that_is_not_there_is_a_failed_call(server):
    told = error(server, "lib_read_resource", uri="books://nothing")
    assert told.startswith("Error calling tool 'lib_read_resource': ")
    assert "books://nothing" in told
    with pytest.raises(ToolError, match="^library: .*books://nothing"):
        server.read_resource_sync("books://nothing")


def test_resources_are_tools_only_if_asked_for_and_had():
    with stdio("library") as server:
        names = [one.name for one in server.as_tools()]
        assert "read_resource" not in names
        assert "list_resources" not in names
    with stdio("handwritten", resources=True, include=["tool_0"]) as server:
        assert [one.name for one in server.as_tools()] == ["tool_0"]
        assert server.resources_sync() == []
        assert server.resource_templates_sync() == []


def test_options_name_the_tools_for_resources_too():
    with stdio("library", resources=True, repeatable=["read_*"], include=["log"]) as server:
        assert [(one.name, one.repeatable) for one in server.as_tools()] == [
            ("log", False),
            ("list_resources", False),
            ("read_resource", True),
        ]
        calls = [("read_resource", {"uri": "books://emma"})] * 6
        assert [one.outcome for one in tickets(server, *calls)] == ["ok"] * 6
    asking = stdio("library", resources=True, needs_approval=["read_resource"])
    with asking as server, pytest.raises(UsageError, match="read_resource"):
        Agent(ScriptedModel([]), tools=[server]).run_sync("t")


def test_a_server_with_such_a_tool_of_its_own_is_named():
    own = {"name": "read_resource", "inputSchema": {"type": "object"}}
    with pytest.raises(ToolError) as raised:
        with_capabilities({"tools": {}, "resources": {}}, own, resources=True).connect_sync()
    assert str(raised.value) == (
        "the MCP server 'odd' has a tool 'read_resource' of its own: leave it out with "
        "exclude=['read_resource'], or pass resources=False"
    )


def test_a_server_may_have_resources_and_know_no_list_of_them():
    server = with_capabilities({"tools": {}, "resources": {}}, resources=True)
    with server:
        assert result(server, "list_resources") == {"resources": []}
        assert server.resource_templates_sync() == []


def test_data_that_is_not_base64_is_said():
    answers = {"resources/read": {"contents": [{"uri": "a://b", "blob": "x"}]}}
    server = with_capabilities({"resources": {}}, answers=answers)
    with server, pytest.raises(ToolError) as raised:
        server.read_resource_sync("a://b")
    assert str(raised.value) == (
        "odd: the server broke the protocol: the data of a://b is not base64"
    )


def with_capabilities(capabilities, *tools, answers=(), **options):
    code = f"""
import sys
sys.path.insert(0, {str(SERVERS)!r})
import handwritten
handwritten.TOOLS[:] = {list(tools)!r}
answer = handwritten.answer
def other(method, params):
    told = {dict(answers)!r}.get(method) or answer(method, params)
    return {{**told, "capabilities": {capabilities!r}}} if method == "initialize" else told
handwritten.answer = other
handwritten.speak_stdio()
"""
    return python(code, **options)


def test_resources_is_a_switch():
    with pytest.raises(UsageError) as raised:
        MCPServer.stdio("python", resources=["books://emma"])
    assert str(raised.value) == "expected resources=True or False: got ['books://emma']"
