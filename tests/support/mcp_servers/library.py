"""A server for tests, with all that is no tool: resources, prompts, logs, roots, and changes.

`python library.py` speaks over stdio, `python library.py http PORT` over HTTP.
"""

import base64
import sys
import warnings
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import AssistantMessage, Context, Image, ListRoots, Resolve, UserMessage
from mcp.server.mcpserver.resources import TextResource
from mcp_types import ListRootsResult

# The SDK advises against log messages, which older servers send.
warnings.simplefilter("ignore")

server = MCPServer("library")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAQCAIAAAD4YuoOAAAAHUlEQVR4nGO44KBAU8QwasGoBaMWjFow"
    "asFQsAAA0hxgH8Gi+hwAAAAASUVORK5CYII="
)


@server.resource("books://emma", name="Emma", description="A novel.", mime_type="text/plain")
def emma() -> str:
    return "Emma Woodhouse, handsome, clever, and rich"


@server.resource("books://cover", mime_type="image/png")
def cover() -> bytes:
    return PNG


@server.resource("books://broken.png", mime_type="image/png")
def broken() -> bytes:
    return b"\0PNG" + bytes(24_000)


@server.resource("books://shelf/plan.pdf", mime_type="application/pdf")
def plan() -> bytes:
    return b"%PDF-1.7"


@server.resource("books://by/{author}", description="All of an author.")
def by(author: str) -> str:
    return f"The books of {author}"


@server.prompt(description="Review a book.")
def review(title: str, tone: str = "kind") -> list:
    return [
        UserMessage("You review books."),
        UserMessage(Image(data=PNG, format="png").to_image_content()),
        AssistantMessage("Which one?"),
        UserMessage(f"Review {title}, be {tone}."),
    ]


@server.prompt(title="Hello")
def greet() -> str:
    return "Greet the reader."


@server.tool()
async def acquire(title: str, context: Context) -> str:
    """Add a book, and a tool and a resource for it."""

    def lend() -> str:
        return f"lent {title}"

    server.add_tool(lend, name=f"lend_{title}")
    server.add_resource(TextResource(uri=f"books://{title}", name=title, text=title))
    await tell(context)
    return "acquired"


@server.tool()
async def lose(tool: str, context: Context) -> str:
    """Remove a tool."""
    server.remove_tool(tool)
    await tell(context)
    return "lost"


@server.tool()
def lose_quietly(tool: str) -> str:
    server.remove_tool(tool)
    return "lost"


async def tell(context: Context) -> None:
    await context.notify_tools_changed()
    # For clients of older revisions.
    await context.session.send_tool_list_changed()


@server.tool()
async def log(level: str, words: str, context: Context) -> str:
    await context.log(level, words, logger_name="desk")
    return "logged"


@server.tool()
async def log_data(context: Context) -> str:
    await context.log("error", {"shelf": 3, "missing": ["Emma"]})
    return "logged"


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def folders(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> list[str]:
    return [str(root.uri) for root in roots.roots]


def main(arguments):
    if arguments[:1] == ["http"]:
        server.run("streamable-http", port=int(arguments[1]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main(sys.argv[1:])
