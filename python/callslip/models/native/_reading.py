"""Replies of a client whose tool calls are read, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Protocol, cast

from callslip.models._items import Item
from callslip.models._no_reply import check_body
from callslip.models._piece import Piece, Reading
from callslip.models._reply import ModelChunk, ModelReply

__all__ = ["NativeReader", "NativeStream", "NativeStreamAsync", "read_native"]


class NativeReader(Protocol):
    """Reads the responses or chunks of one reply of one service; made anew for each reply."""

    def take(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        """Read a client's response (`whole`), or one chunk of its stream.

        Returns:
            The piece, with its text, reasoning, refusal, end and usage as for replies of text, and
            the items that it holds. An empty tuple of items and an empty piece for a chunk that
            says nothing.

        Raises:
            ModelError: It reports an error, or its shape is not known.
        """
        ...


def read_native(
    result: object, reader: NativeReader, *, awaited: bool = False
) -> ModelReply | NativeStream | NativeStreamAsync:
    """Read what a client returned, as `open_result` does for replies of text.

    Args:
        result: The client's response or stream.
        reader: The reader of its service.
        awaited: Whether it was awaited: a stream that can be iterated both ways is then async.

    Raises:
        ModelRefused: The model or its provider refused to answer.
        ModelError: It is no reply.
    """
    is_sync = hasattr(result, "__next__") or (
        hasattr(result, "__iter__")
        and not hasattr(result, "model_dump")
        and type(result) is not dict
    )
    if hasattr(result, "__aiter__") and (awaited or not is_sync):
        return NativeStreamAsync(result, reader)
    if is_sync:
        return NativeStream(result, reader)
    piece, items = reader.take(result, whole=True)
    reading = Reading(takes_calls=True)
    reading.take(piece)
    reading.check()
    return ModelReply("", reading.end, piece.usage, items=items)


class _Chunks:
    """What both streams share."""

    __slots__ = ("_reader", "_reading", "_source")

    def __init__(self, source: object, reader: NativeReader) -> None:
        self._source = source
        self._reader = reader
        self._reading = Reading(takes_calls=True)

    def _take(self, item: object) -> ModelChunk:
        piece, items = self._reader.take(item, whole=False)
        self._reading.take(piece)
        return ModelChunk("", piece.finish_reason, piece.usage, items=items)

    def _end(self) -> ModelChunk | None:
        """Check the end of the stream. Returns a last chunk for a stream that broke off."""
        is_whole = self._reading.is_whole() or self._reading.is_doubtful
        return None if is_whole else ModelChunk("", "length")


class NativeStream(_Chunks, Iterator[ModelChunk]):
    """The chunks of a streamed reply, one for each chunk of the client."""

    __slots__ = ("_chunks",)

    def __init__(self, source: object, reader: NativeReader) -> None:
        super().__init__(source, reader)
        self._chunks = self._read()

    def __iter__(self) -> NativeStream:
        return self

    def __next__(self) -> ModelChunk:
        return next(self._chunks)

    def _read(self) -> Iterator[ModelChunk]:
        try:
            for item in cast("Iterator[object]", self._source):
                yield self._take(item)
        except ValueError as error:
            check_body(error)
            raise
        last = self._end()
        if last is not None:
            yield last

    def close(self) -> None:
        """Stop the reply where it is, and close the response behind it."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


class NativeStreamAsync(_Chunks, AsyncIterator[ModelChunk]):
    """The same of an async client."""

    __slots__ = ("_chunks",)

    def __init__(self, source: object, reader: NativeReader) -> None:
        super().__init__(source, reader)
        self._chunks = self._read()

    def __aiter__(self) -> NativeStreamAsync:
        return self

    async def __anext__(self) -> ModelChunk:
        return await self._chunks.__anext__()

    async def _read(self) -> AsyncIterator[ModelChunk]:
        try:
            async for item in cast("AsyncIterator[object]", self._source):
                yield self._take(item)
        except ValueError as error:
            check_body(error)
            raise
        last = self._end()
        if last is not None:
            yield last

    async def aclose(self) -> None:
        """Stop the reply where it is, and close the response behind it."""
        close = getattr(self._source, "aclose", None) or getattr(self._source, "close", None)
        if close is not None:
            closing = close()
            if hasattr(closing, "__await__"):
                await closing
