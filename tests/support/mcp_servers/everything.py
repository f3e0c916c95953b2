"""A server for tests, written with the official SDK: one tool for each thing a server can do.

`python everything.py` speaks over stdio, `python everything.py http PORT` over HTTP.
"""

import asyncio
import base64
import os
import subprocess
import sys
import time
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, Resolve, Sample
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer("everything")
calls = []
cancelled = []


class Point(BaseModel):
    x: int
    y: int = 0


class Booking(BaseModel):
    seats: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(
    a: Annotated[int, Field(description="The first")], b: Annotated[int, Field(ge=0)] = 1
) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def move(point: Point, by: int) -> Point:
    """Move a point."""
    return Point(x=point.x + by, y=point.y)


@server.tool()
def pid() -> str:
    return str(os.getpid())


@server.tool()
def environment(name: str) -> str:
    return os.environ.get(name, "not set")


@server.tool()
def header(name: str, context: Context) -> str:
    return (context.headers or {}).get(name, "not sent")


@server.tool()
def fail(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=True)


@server.tool()
def reveal(context: Context) -> CallToolResult:
    """Fail with what the client wants nobody to know."""
    key = os.environ.get("KEY", "")
    print(f"revealing {key}", file=sys.stderr, flush=True)
    header = (context.headers or {}).get("authorization", "")
    words = f"the key is {key or header.removeprefix('Bearer ')}"
    text = f"{words} or {header}" if header else words
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


@server.tool()
def mixed() -> CallToolResult:
    data = base64.b64encode(b"four").decode()
    blob = BlobResourceContents(uri="mem://blob", mime_type="x/y", blob=data)
    text = TextResourceContents(uri="mem://text", mime_type="text/plain", text="inside")
    return CallToolResult(
        content=[
            TextContent(type="text", text="first"),
            ImageContent(type="image", mime_type="image/png", data=data),
            AudioContent(type="audio", mime_type="audio/wav", data=data),
            EmbeddedResource(type="resource", resource=text),
            EmbeddedResource(type="resource", resource=blob),
            ResourceLink(type="resource_link", uri="mem://link", name="link", size=9),
        ]
    )


@server.tool()
def repeat(text: str, times: int) -> str:
    return text * times


@server.tool()
def two_texts() -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text="one"), TextContent(type="text", text="two")]
    )


@server.tool()
async def count(to: int, context: Context) -> str:
    for step in range(to):
        await context.report_progress(step + 1, to, f"step {step + 1}")
    return "counted"


@server.tool()
async def wait(seconds: float, note: str = "") -> str:
    calls.append(note)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        cancelled.append(note)
        raise
    return f"waited {note}".strip()


@server.tool()
def history() -> dict[str, list[str]]:
    return {"calls": calls, "cancelled": cancelled}


@server.tool()
def write_errors(lines: list[str]) -> str:
    for line in lines:
        print(line, file=sys.stderr)
    sys.stderr.flush()
    return "written"


@server.tool()
def end_with(words: str) -> str:
    print(words, file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def spawn_child() -> str:
    """Leave a process running."""
    return str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)


def ask_model(question: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=question))
    return Sample([message], max_tokens=50, system_prompt="Be brief.", stop_sequences=["END"])


@server.tool()
async def sample(question: str, reply: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    return f"{reply.model} said {reply.content.text} ({reply.stop_reason})"


def ask_person() -> Elicit[Booking]:
    return Elicit("How many seats?", Booking)


@server.tool()
async def book(answer: Annotated[ElicitationResult[Booking], Resolve(ask_person)]) -> str:
    return f"{answer.action} {answer.data.seats if answer.action == 'accept' else ''}".strip()


@server.tool()
def block(seconds: float) -> str:
    time.sleep(seconds)
    return "blocked"


def main(arguments):
    if arguments[:1] == ["http"]:
        server.run("streamable-http", port=int(arguments[1]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main(sys.argv[1:])
