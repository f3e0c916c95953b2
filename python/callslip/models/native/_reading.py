"""Replies of a client whose tool calls are read, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol, cast

from callslip.models._items import FaultItem, Item, TextItem
from callslip.models._no_reply import (
    check_body,
    check_chunks_came,
    check_response,
    kept_body,
    reply_in,
)
from callslip.models._piece import Piece, Reading
from callslip.models._reply import ModelChunk, ModelReply

__all__ = ["FaultOf", "NativeReader", "NativeStream", "NativeStreamAsync", "read_native"]

FaultOf = Callable[[Exception], FaultItem | None]
"""Recognises an error that is a fault of the reply; `None` for another one."""


def _no_fault(error: Exception) -> FaultItem | None:  # noqa: ARG001  # a `FaultOf`
    return None


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
    result: object,
    reader: NativeReader,
    *,
    awaited: bool = False,
    takes_text: bool = False,
    fault_of: FaultOf = _no_fault,
) -> ModelReply | NativeStream | NativeStreamAsync:
    """Read what a client returned, as `open_result` does for replies of text.

    Args:
        result: The client's response or stream.
        reader: The reader of its service.
        awaited: Whether it was awaited: a stream that can be iterated both ways is then async.
        takes_text: Whether text is a reply, as that of a function in place of a client is.
        fault_of: For errors that a stream reports in its midst. Default: none is a fault.

    Raises:
        ModelRefused: The model or its provider refused to answer.
        ModelError: It is no reply.
    """
    if takes_text and isinstance(result, str):
        return ModelReply("", items=(TextItem(str(result)),))
    if result is None or isinstance(result, str):
        # Not the letters of a page one by one.
        check_response(result)
    is_sync = hasattr(result, "__next__") or (
        hasattr(result, "__iter__")
        and not hasattr(result, "model_dump")
        and type(result) is not dict
    )
    if hasattr(result, "__aiter__") and (awaited or not is_sync):
        return NativeStreamAsync(result, reader, fault_of)
    if is_sync:
        return NativeStream(result, reader, fault_of)
    piece, items = reader.take(result, whole=True)
    reading = Reading(takes_calls=True)
    reading.take(piece)
    reading.check()
    return ModelReply("", reading.end, piece.usage, items=items)


class _Chunks:
    """What both streams share."""

    __slots__ = ("_fault_of", "_has_begun", "_reader", "_reading", "_source")

    def __init__(self, source: object, reader: NativeReader, fault_of: FaultOf = _no_fault) -> None:
        self._source = source
        self._reader = reader
        self._reading = Reading(takes_calls=True)
        self._fault_of = fault_of
        self._has_begun = False

    def _take(self, item: object, *, whole: bool = False) -> ModelChunk:
        self._has_begun = True
        piece, items = self._reader.take(item, whole=whole)
        self._reading.take(piece)
        return ModelChunk("", piece.finish_reason, piece.usage, items=items)

    def _fault(self, error: Exception) -> ModelChunk:
        """Return the last chunk of a stream that a fault has ended, or raise the error."""
        fault = self._fault_of(error)
        if fault is None:
            if isinstance(error, ValueError):
                check_body(error)
            raise error
        return ModelChunk("", "stop", items=(fault,))

    def _last(self) -> Iterator[ModelChunk]:
        """Check the end of the stream, and yield what is missing of it.

        That is the reply of a server that does not stream, which comes in place of chunks; or the
        mark of a stream that broke off.
        """
        if not self._has_begun:
            body = reply_in(self._source)
            if body is None:
                check_chunks_came(self._source)
            else:
                yield self._take(body, whole=True)
        is_whole = self._reading.is_whole() or self._reading.is_doubtful
        if not is_whole:
            yield ModelChunk("", "length")


class NativeStream(_Chunks, Iterator[ModelChunk]):
    """The chunks of a streamed reply, one for each chunk of the client."""

    __slots__ = ("_chunks",)

    def __init__(self, source: object, reader: NativeReader, fault_of: FaultOf = _no_fault) -> None:
        super().__init__(source, reader, fault_of)
        self._chunks = self._read()

    def __iter__(self) -> NativeStream:
        return self

    def __next__(self) -> ModelChunk:
        return next(self._chunks)

    def _read(self) -> Iterator[ModelChunk]:
        response: Any = kept_body(self._source)
        try:
            if response is not None:
                response.read()
            for item in cast("Iterator[object]", self._source):
                yield self._take(item)
        except Exception as error:  # noqa: BLE001  # what is no fault is raised again
            yield self._fault(error)
            return
        yield from self._last()

    def close(self) -> None:
        """Stop the reply where it is, and close the response behind it."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


class NativeStreamAsync(_Chunks, AsyncIterator[ModelChunk]):
    """The same of an async client."""

    __slots__ = ("_chunks",)

    def __init__(self, source: object, reader: NativeReader, fault_of: FaultOf = _no_fault) -> None:
        super().__init__(source, reader, fault_of)
        self._chunks = self._read()

    def __aiter__(self) -> NativeStreamAsync:
        return self

    async def __anext__(self) -> ModelChunk:
        return await self._chunks.__anext__()

    async def _read(self) -> AsyncIterator[ModelChunk]:
        response: Any = kept_body(self._source)
        try:
            if response is not None:
                await response.aread()
            async for item in cast("AsyncIterator[object]", self._source):
                yield self._take(item)
        except Exception as error:  # noqa: BLE001  # what is no fault is raised again
            yield self._fault(error)
            return
        for chunk in self._last():
            yield chunk

    async def aclose(self) -> None:
        """Stop the reply where it is, and close the response behind it."""
        close = getattr(self._source, "aclose", None) or getattr(self._source, "close", None)
        if close is not None:
            closing = close()
            if hasattr(closing, "__await__"):
                await closing
