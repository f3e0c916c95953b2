"""Resources of an MCP server: documents and data that a program or a model may read."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip.mcp._lists import read_pages
from callslip.mcp._results import file_or_line
from callslip.tools import Fail

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import BlobResourceContents

__all__ = [
    "Resource",
    "ResourceContent",
    "ResourceTemplate",
    "contents_for_model",
    "listing_for_model",
    "read_contents",
    "read_resources",
    "read_templates",
]


@dataclass(frozen=True, slots=True)
class Resource:
    """A document or other data of a server, as it is listed.

    Attributes:
        uri: The address for `MCPServer.read_resource`.
        name: The name.
        title: A name for people; `None` if there is none.
        description: What it contains; `None` if the server does not say.
        mime_type: The media type; `None` if the server does not say.
        size: The number of bytes; `None` if the server does not say.
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """Resources of a server with fields in their address.

    Attributes:
        uri_template: The address with fields in braces, as in `books://{author}` (RFC 6570).
        name: The name.
        title: A name for people; `None` if there is none.
        description: What these resources contain; `None` if the server does not say.
        mime_type: The media type of all of them; `None` if the server does not say.
    """

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceContent:
    """The content of a resource. A resource may have several, such as the files of a folder.

    Attributes:
        uri: The address of this content.
        mime_type: The media type; `None` if the server does not say.
        text: The text; `None` for binary data.
        data: The binary data; `None` for text.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = None
    data: bytes | None = None


async def read_resources(client: Client) -> list[Resource]:
    """Read the list of a server's resources."""
    return [
        Resource(one.uri, one.name, one.title, one.description, one.mime_type, one.size)
        for page in await _pages(client, client.list_resources, "resources")
        for one in page.resources
    ]


async def read_templates(client: Client) -> list[ResourceTemplate]:
    """Read the list of a server's resource templates."""
    return [
        ResourceTemplate(one.uri_template, one.name, one.title, one.description, one.mime_type)
        for page in await _pages(client, client.list_resource_templates, "resource templates")
        for one in page.resource_templates
    ]


async def _pages(client: Client, read: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    if client.server_capabilities.resources is None:
        return []
    try:
        return await read_pages(read, what)
    except _lazy.mcp.MCPError as error:
        # Many servers answer one of the two lists alone.
        if error.code == _lazy.mcp_types.METHOD_NOT_FOUND:
            return []
        raise


async def read_contents(client: Client, *, uri: str) -> list[ResourceContent]:
    """Read the contents of a resource.

    Raises:
        Fail: Its data is not base64.
    """
    result = await client.read_resource(uri)
    return [
        ResourceContent(one.uri, one.mime_type, text=one.text)
        if isinstance(one, _lazy.mcp_types.TextResourceContents)
        else ResourceContent(one.uri, one.mime_type, data=_data(one))
        for one in result.contents
    ]


def _data(content: BlobResourceContents) -> bytes:
    try:
        return a2b_base64(content.blob)
    except ValueError:
        raise Fail(
            f"the server broke the protocol: the data of {content.uri} is not base64"
        ) from None


def listing_for_model(
    resources: list[Resource], templates: list[ResourceTemplate]
) -> dict[str, list[dict[str, Any]]]:
    """Return the lists as JSON, without the fields that the server left out."""
    return {
        name: [
            {field: value for field in kind.__slots__ if (value := getattr(one, field)) is not None}
            for one in ones
        ]
        for name, kind, ones in (
            ("resources", Resource, resources),
            ("templates", ResourceTemplate, templates),
        )
        if ones or name == "resources"
    }


def contents_for_model(contents: list[ResourceContent]) -> Any:
    """Return one content as text, an image or a file; several as objects with their addresses."""
    values = [
        one.text if one.data is None else file_or_line(one.data, one.mime_type, one.uri)
        for one in contents
    ]
    if len(values) == 1:
        return values[0]
    return [{"uri": one.uri, "content": value} for one, value in zip(contents, values, strict=True)]
