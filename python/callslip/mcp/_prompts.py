"""Prompts of an MCP server: messages that the program may begin a run with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip.mcp._lists import read_pages
from callslip.mcp._results import block_text

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


def messages_of(result: GetPromptResult) -> list[dict[str, str]]:
    """Return the messages of a prompt, joining neighbours of the same role."""
    messages: list[dict[str, str]] = []
    for message in result.messages:
        text = block_text(message.content)
        if not text.strip():
            continue
        if messages and messages[-1]["role"] == message.role:
            messages[-1]["content"] += f"\n\n{text}"
        else:
            messages.append({"role": message.role, "content": text})
    return messages
