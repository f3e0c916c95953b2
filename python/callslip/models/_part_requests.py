"""Requests with images and files, made again without those that the server refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from callslip.errors import ModelError
from callslip.models._part_refusals import refused_kinds
from callslip.models._parts import kinds_of, taken_messages
from callslip.models._reply import (
    AsyncReplyStream,
    Messages,
    ModelChunk,
    ReplyStream,
    open_result,
)
from callslip.parts import PartKind

__all__ = ["PartRequest"]


class _TakesParts(Protocol):
    parts: frozenset[PartKind]

    def _stop_sending(self, kinds: frozenset[PartKind], error: Exception) -> None:
        """Send no more parts of some kinds, because of what a server said."""


class PartRequest:
    """One request with parts.

    Args:
        model: The model.
        send: Calls the client with messages.
        messages: The messages.
    """

    __slots__ = ("_messages", "_model", "_send", "_sent")

    def __init__(
        self, model: _TakesParts, send: Callable[[Messages], object], messages: Messages
    ) -> None:
        self._model = model
        self._send = send
        self._messages = messages
        self._sent: frozenset[PartKind] = frozenset()

    def make(self) -> object:
        """Make the request, and again as long as parts are refused.

        Returns:
            The client's own result, or an awaitable for it; for a stream a `ReplyStream` or an
            `AsyncReplyStream`, because a refusal may be in place of its first text.
        """
        while True:
            try:
                result = self._begin()
                if hasattr(result, "__await__"):
                    return self._make_async(result)
                return self._read(result, awaited=False)
            except Exception as error:
                if not self.is_refused(error):
                    raise

    async def _make_async(self, pending: Awaitable[object]) -> object:
        while True:
            try:
                return self._read(await pending, awaited=True)
            except Exception as error:
                if not self.is_refused(error):
                    raise
            pending = self._begin()

    def _begin(self) -> Any:
        messages = taken_messages(self._messages, self._model.parts)
        self._sent = kinds_of(messages)
        return self._send(messages)

    def _read(self, result: object, *, awaited: bool) -> object:
        if not self._sent:
            return result
        try:
            opened = open_result(result, awaited=awaited)
        except ModelError as error:
            # A server may report an error in a reply. All others are read again by the caller.
            if refused_kinds(error, self._sent):
                raise
            return result
        if isinstance(opened, ReplyStream):
            return _Stream(opened, self)
        return _AsyncStream(opened, self) if isinstance(opened, AsyncReplyStream) else result

    def is_refused(self, error: Exception) -> bool:
        """Whether parts were refused: the model sends no more of their kinds."""
        kinds = refused_kinds(error, self._sent)
        if kinds:
            self._model._stop_sending(kinds, error)
        return bool(kinds)


class _Stream(ReplyStream):
    """A stream whose request is made again if parts are refused in place of its first text."""

    __slots__ = ("_request",)

    def __init__(self, stream: ReplyStream, request: PartRequest) -> None:
        self.broke = self._has_begun = False
        self._request: PartRequest | None = request
        _take_over(self, stream)

    def __next__(self) -> ModelChunk:
        while True:
            request = self._request
            try:
                chunk = super().__next__()
            except Exception as error:
                if request is None or not request.is_refused(error):
                    raise
            else:
                self._request = None if chunk.text or chunk.items else request
                return chunk
            assert request is not None
            self.close()
            again = open_result(request.make())
            assert isinstance(again, ReplyStream), "one client streams both"
            _take_over(self, again)


class _AsyncStream(AsyncReplyStream):
    """As `_Stream`."""

    __slots__ = ("_request",)

    def __init__(self, stream: AsyncReplyStream, request: PartRequest) -> None:
        self.broke = self._has_begun = False
        self._request: PartRequest | None = request
        _take_over(self, stream)

    async def __anext__(self) -> ModelChunk:
        while True:
            request = self._request
            try:
                chunk = await super().__anext__()
            except Exception as error:
                if request is None or not request.is_refused(error):
                    raise
            else:
                self._request = None if chunk.text or chunk.items else request
                return chunk
            assert request is not None
            await self.aclose()
            made: Any = request.make()
            again = open_result(await made if hasattr(made, "__await__") else made, awaited=True)
            assert isinstance(again, AsyncReplyStream), "one client streams both"
            _take_over(self, again)


def _take_over(stream: Any, another: Any) -> None:
    """Let a stream go on with the chunks of another one of its kind."""
    stream._items, stream._source = another._items, another._source
    stream._reading, stream._has_begun = another._reading, another._has_begun
