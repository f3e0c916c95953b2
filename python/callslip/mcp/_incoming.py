"""Messages of a server as they come in: repaired, observed, and told from the SDK's own errors."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from callslip._base import _lazy

if TYPE_CHECKING:
    from contextvars import Context as ContextVariables

    from httpx2 import AsyncByteStream
    from mcp import MCPError
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData

__all__ = ["MessageListener", "ObservedStream", "is_lost", "is_unreadable", "repaired_body"]

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_UNFINISHED = re.compile(
    r"(\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z)"
    rf"|{_ESCAPE.pattern}",
    re.DOTALL,
)
"""Escapes. The first group is one that may go on in the next part of a text."""

_HALF = 6
"""The length of the escape of half a surrogate pair."""


class MessageListener(Protocol):
    """Receives notices about the messages of a server."""

    def on_unreadable(self) -> None:
        """Called for a message that cannot be read."""

    def on_tool_page(self, page: dict[str, Any]) -> None:
        """Called for a page of the server's tools. Removes invalid tools from it.

        The SDK would reject the whole page.
        """

    def on_end(self) -> None:
        """Called when no more messages will come."""


class _OfServer:
    """The `data` of an error that the server sent.

    The SDK makes errors of its own with the type and the codes that a server may use.
    """

    __slots__ = ("data",)

    def __init__(self, data: object) -> None:
        self.data = data


def is_lost(error: MCPError) -> bool:
    """Whether the SDK found that the connection has ended."""
    closed = error.code == _lazy.mcp_types.CONNECTION_CLOSED
    return closed and not isinstance(error.data, _OfServer)


def is_unreadable(error: MCPError) -> bool:
    """Whether the answer was unreadable. The SDK's message may quote it."""
    fault = error.code == _lazy.mcp_types.PARSE_ERROR
    return fault and not isinstance(error.data, _OfServer)


class ObservedStream:
    """A stream of messages that notifies a listener, also of its end.

    The SDK itself only fails the requests that wait for an answer.

    Args:
        stream: The SDK's stream.
        listener: Receives the notices.
        sdk_errors: Beginnings of the messages of errors that the SDK itself puts into the stream.
    """

    def __init__(
        self, stream: Any, listener: MessageListener, sdk_errors: Sequence[str] = ()
    ) -> None:
        self._stream = stream
        self._listener = listener
        self._sdk_errors = tuple(sdk_errors)

    @property
    def last_context(self) -> ContextVariables | None:
        """The context of the sender of the last message, if the stream knows it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> ObservedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except BaseException:
            self._listener.on_end()
            raise
        if isinstance(item, ValueError):
            repaired = _repaired(item)
            if repaired is None:
                self._listener.on_unreadable()
                return _error_response(item) or item
            item = repaired
        message = getattr(item, "message", None)
        page = getattr(message, "result", None)
        if isinstance(page, dict) and isinstance(page.get("tools"), list):
            self._listener.on_tool_page(page)
        if (error := getattr(message, "error", None)) is not None:
            self._mark(error)
        return item

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    def _mark(self, error: ErrorData) -> None:
        types = _lazy.mcp_types
        # The SDK reads the data of errors with other codes.
        is_ambiguous = error.code in (types.CONNECTION_CLOSED, types.PARSE_ERROR)
        if is_ambiguous and not error.message.startswith(self._sdk_errors):
            error.data = _OfServer(error.data)


def repaired_body(stream: AsyncByteStream) -> AsyncByteStream:
    """Return the body of a response over HTTP as UTF-8 that consists of whole characters."""

    class Repaired(_lazy.httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            repair = _Repair()
            async for part in stream:
                yield repair.next(part)
            yield repair.next(b"", is_last=True)

        async def aclose(self) -> None:
            await stream.aclose()

    return Repaired()


class _Repair:
    """Repairs JSON that comes in parts."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def next(self, part: bytes, *, is_last: bool = False) -> bytes:
        """Return the next part, without an escape at its end that may go on."""
        text = self._rest + self._decoder.decode(part, is_last)
        end = len(text)
        if not is_last:
            for escape in _UNFINISHED.finditer(text):
                if escape[1] is not None:
                    end = escape.start()
        self._rest = text[end:]
        return with_whole_characters(text[:end]).encode()


def with_whole_characters(text: str) -> str:
    """Return JSON with U+FFFD for each escape of half a surrogate pair, which is no character."""

    def whole(escape: re.Match[str]) -> str:
        return "\ufffd" if len(escape[0]) == _HALF else escape[0]

    return _ESCAPE.sub(whole, text)


def _repaired(fault: ValueError) -> SessionMessage | None:
    """Return the message of an unreadable line if only halves of surrogate pairs are its fault."""
    line = _unread_line(fault)
    repaired = None if line is None else with_whole_characters(line)
    if repaired is None or repaired == line:
        return None
    try:
        message = _lazy.mcp_types.jsonrpc_message_adapter.validate_json(repaired, by_name=False)
    except ValueError:
        return None
    return _lazy.mcp_message.SessionMessage(message)


def _unread_line(fault: ValueError) -> str | None:
    """Return the text that is no JSON; `None` if it is JSON, but no message."""
    if isinstance(fault, _lazy.pydantic.ValidationError):
        for part in fault.errors(include_url=False, include_context=False):
            if part["type"] == "json_invalid" and isinstance(part["input"], str):
                return part["input"]
    return None


def _error_response(fault: ValueError) -> SessionMessage | None:
    """Return an error response for the request of an unreadable answer, if its id is readable.

    Over stdio the SDK drops such an answer, and the call would wait for its whole time.
    """
    if not isinstance(fault, _lazy.pydantic.ValidationError):
        return None
    for part in fault.errors(include_url=False, include_context=False):
        message = part["input"]
        if part["type"] == "json_invalid":
            # Python reads JSON that pydantic does not, such as tabs within a text.
            try:
                message = json.loads(message, strict=False)
            except (ValueError, RecursionError):
                return None
        if isinstance(message, dict) and ("result" in message or "error" in message):
            number = message.get("id")
            if isinstance(number, int | str) and not isinstance(number, bool):
                error = _lazy.mcp_types.ErrorData(
                    code=_lazy.mcp_types.PARSE_ERROR, message="an answer can't be read"
                )
                return _lazy.mcp_message.SessionMessage(
                    _lazy.mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
                )
    return None
