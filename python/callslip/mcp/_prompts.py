"""Prompts of an MCP server: messages that the program may begin a run with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callslip.mcp._lists import read_pages
from callslip.mcp._results import block_content
from callslip.parts import File

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import GetPromptResult

__all__ = ["Prompt", "PromptArgument", "messages_of", "read_prompts"]


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt. Its value is a text.

    Attributes:
        name: The name.
        description: Its meaning; `None` if the server does not say.
        required: Whether it must be passed.
    """

    name: str
    description: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of a server, as it is listed.

    Attributes:
        name: The name for `MCPServer.get_prompt`.
        title: A name for people; `None` if there is none.
        description: Its purpose; `None` if the server does not say.
        arguments: Its arguments.
    """

    name: str
    title: str | None = None
    description: str | None = None
    arguments: Sequence[PromptArgument] = ()


async def read_prompts(client: Client) -> list[Prompt]:
    """Read the list of a server's prompts."""
    if client.server_capabilities.prompts is None:
        return []
    return [
        Prompt(
            one.name,
            one.title,
            one.description,
            tuple(
                PromptArgument(argument.name, argument.description, argument.required is True)
                for argument in one.arguments or ()
            ),
        )
        for page in await read_pages(client.list_prompts, "prompts")
        for one in page.prompts
    ]


def messages_of(result: GetPromptResult) -> list[dict[str, Any]]:
    """Return the messages of a prompt, joining neighbours of the same role.

    The content is text, or a list of texts, images and files.
    """
    messages: list[dict[str, Any]] = []
    for message in result.messages:
        content = block_content(message.content)
        if isinstance(content, str) and not content.strip():
            continue
        if messages and messages[-1]["role"] == message.role:
            _append(messages[-1]["content"], content)
        else:
            messages.append({"role": message.role, "content": [content]})
    return [{**one, "content": _plain(one["content"])} for one in messages]


def _append(contents: list[str | File], more: str | File) -> None:
    last = contents[-1]
    if isinstance(last, str) and isinstance(more, str):
        contents[-1] = f"{last}\n\n{more}"
    else:
        contents.append(more)


def _plain(contents: list[str | File]) -> str | list[str | File]:
    return contents[0] if len(contents) == 1 and isinstance(contents[0], str) else contents
