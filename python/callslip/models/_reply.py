"""Models, and the reading of their return values.

A model is any callable from messages to text. Its result may be a string, an object that holds the
text, the raw response of a known client, or a sync or async iterator of pieces of any of these.
`open_result` turns a result into one of three things, which is all that a driver has to know:
`ModelReply`, `ReplyStream` or `AsyncReplyStream`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from callslip._base.options import shown
from callslip.errors import ModelError
from callslip.models._finish_reasons import quote_body
from callslip.models._items import Envelope, WrittenItem
from callslip.models._no_reply import check_body, check_chunks_came, kept_body, reply_in
from callslip.models._piece import Reading
from callslip.models._token_counts import check_counts

if TYPE_CHECKING:
    from callslip._base.usage import Usage
    from callslip.models._items import CallDelta, Item, NativeCall
    from callslip.models._piece import Piece

__all__ = [
    "AsyncReplyStream",
    "Message",
    "Messages",
    "Model",
    "ModelChunk",
    "ModelReply",
    "ReplyStream",
    "open_result",
]

Message: TypeAlias = dict[str, Any]
"""One message: `{"role": "system" | "user" | "assistant", "content": text}`. A model that takes
images or files finds those of the message in `"parts"`, a list of `Image` and `File`. With
`protocol="native"` its parts are also in `"items"`: of the assistant `{"text"}`,
`{"reasoning", "data"}` and `{"call", "tool", "arguments", "data"}`; of the user
`{"result", "tool", "content", "error"}`, one for each call in its order, and `{"text"}`."""

Messages: TypeAlias = Sequence[Message]
"""The messages for a model: a read-only sequence, oldest message first. It may be lazy and shared
with the run: use `list(messages)` if a client needs a list, and do not change the messages."""


class Model(Protocol):
    """Anything that can be called with the messages and returns (or yields) the reply's text.

    The call may return a string, an object with a `.text` string, the raw response of an OpenAI,
    Anthropic, Gemini, Bedrock, Cohere, Mistral, Ollama, Hugging Face or LiteLLM client, an iterator
    or async iterator of these, or an awaitable of any of them. The keywords `stop` (sequence of
    strings), `seed` (int), `max_tokens` (int) and `grammar` (an object with `.gbnf` and `.lark`, or
    the text of one) are passed to a model whose signature names them.
    """

    def __call__(self, messages: Messages, /) -> object:
        """Answer the last message."""
        ...


@dataclass(frozen=True, slots=True)
class ModelChunk:
    """A piece of a streamed reply, or the data that comes with its end.

    An empty piece is a sign of life while a model reads or thinks; a caller may stop there.

    Attributes:
        text: The text that came with this chunk; empty for a chunk that only closes the reply.
        finish_reason: `"stop"`, `"length"` (cut off) or `"unknown"` (not known to be whole) on the
            last chunk, `None` before it. `None` on the last chunk is `"stop"`.
        usage: A `Usage`, or a mapping of `input_tokens`, `output_tokens` and `cached_tokens` (the
            part of the input that was not read again), in tokens, and `cost` in the server's
            currency, if it reports one; `None` before the last chunk or if unknown. A client may
            report in parts: in a stream, a later value of a key replaces an earlier one.
        reasoning: Reasoning that the client keeps apart from the text. It is streamed as
            `Delta.Reasoning` and is not part of the reply.
        call: A piece of a tool call of the model's own, for a run with `protocol="native"`.
        items: As of a `ModelReply`, in pieces.
        certainty: The probability, from 0 to 1, that the model gave to the name of the first tool
            that the reply calls, before a grammar; `None` if it is not known. See
            `LocalModel.least_certainty`.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, float] | Usage | None = None
    reasoning: str = field(default="", compare=False)
    call: CallDelta | None = None
    items: tuple[Item, ...] = field(default=(), repr=False)
    certainty: float | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole reply.

    Attributes:
        text: All of the reply's text; may be empty.
        finish_reason: `"stop"`, `"length"` (it was cut off), `"unknown"` (it is not known to be
            whole), or `None`, which is `"stop"`.
        usage: A `Usage`, or a mapping of `input_tokens`, `output_tokens` and `cached_tokens` (the
            part of the input that was not read again), in tokens, and `cost` in the server's
            currency, if it reports one; `None` if unknown.
        reasoning: As in a `ModelChunk`. It is ignored when replies are compared.
        calls: The tool calls of the model's own, in order, for a run with `protocol="native"`.
        items: All of the reply in the service's order, in place of the fields above; for callslip's
            own models.
        certainty: As of a `ModelChunk`.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, float] | Usage | None = None
    reasoning: str = field(default="", compare=False)
    calls: Sequence[NativeCall] = ()
    items: tuple[Item, ...] = field(default=(), repr=False)
    certainty: float | None = None


class ReplyStream(Iterator[ModelChunk]):
    """The chunks of a streamed reply, one for each item of the source.

    If a client reports finish reasons and its stream ends without one, the stream broke off. One
    more chunk with the finish reason `"length"` is then added.

    Args:
        source: A sync iterable of strings, `ModelChunk`s or a client's own chunks.

    Attributes:
        broke: Whether the stream broke off; known at its end.

    Raises:
        ModelRefused: At the end, where the model or its provider refused to answer.
        ModelError: While iterating, at an item that is no piece of a reply; at the end of a
            client's stream without text.
    """

    __slots__ = ("_has_begun", "_items", "_reading", "_source", "broke")

    def __init__(self, source: object) -> None:
        self._source = source
        self.broke: bool = False
        self._has_begun = False
        self._reading: Reading | None = Reading()
        # A client's stream is its own iterator; `iter()` would wrap it in one more generator.
        self._items = cast(
            "Iterator[object]",
            source if hasattr(source, "__next__") else iter(cast("Sequence[object]", source)),
        )

    def __iter__(self) -> ReplyStream:
        return self

    def __next__(self) -> ModelChunk:
        if not self._has_begun:
            _keep_body(self._source)
        try:
            item = next(self._items)
        except StopIteration:
            reading, self._reading = self._reading, None
            if not self._has_begun and reading is not None:
                chunk = _whole_chunk(self._source)
                if chunk is not None:
                    return chunk
            if reading is None or reading.is_whole():
                raise
            self.broke = True
            if reading.is_doubtful:
                raise
            return ModelChunk("", "length")
        except ValueError as error:
            check_body(error)
            raise
        self._has_begun = True
        return _read_item(item, self._reading)

    def close(self) -> None:
        """Stop the reply where it is: closes the generator, or the HTTP response behind a stream.

        May be called more than once, and after the end.
        """
        self._reading = None
        for owner in _owners(self._items, self._source):
            close = getattr(owner, "close", None)
            if close is not None:
                close()


class AsyncReplyStream(AsyncIterator[ModelChunk]):
    """The chunks of a reply streamed by an async client; else the same as `ReplyStream`.

    Args:
        source: An async iterable of strings, `ModelChunk`s or a client's own chunks.

    Attributes:
        broke: As of `ReplyStream`.

    Raises:
        ModelRefused: As of `ReplyStream`.
        ModelError: As of `ReplyStream`.
    """

    __slots__ = ("_has_begun", "_items", "_reading", "_source", "broke")

    def __init__(self, source: object) -> None:
        self._source = source
        self.broke: bool = False
        self._has_begun = False
        self._reading: Reading | None = Reading()
        self._items = cast(
            "AsyncIterator[object]",
            source
            if hasattr(source, "__anext__")
            else cast("AsyncIterator[object]", source).__aiter__(),
        )

    def __aiter__(self) -> AsyncReplyStream:
        return self

    async def __anext__(self) -> ModelChunk:
        if not self._has_begun:
            await _keep_body_async(self._source)
        try:
            item = await self._items.__anext__()
        except StopAsyncIteration:
            reading, self._reading = self._reading, None
            if not self._has_begun and reading is not None:
                chunk = _whole_chunk(self._source)
                if chunk is not None:
                    return chunk
            if reading is None or reading.is_whole():
                raise
            self.broke = True
            if reading.is_doubtful:
                raise
            return ModelChunk("", "length")
        except ValueError as error:
            check_body(error)
            raise
        self._has_begun = True
        return _read_item(item, self._reading)

    async def aclose(self) -> None:
        """Stop the reply where it is: closes the generator, or the HTTP response behind a stream.

        May be called more than once, and after the end.
        """
        self._reading = None
        for owner in _owners(self._items, self._source):
            # Generators have `aclose`; the streams of client libraries an async `close`.
            close = getattr(owner, "aclose", None) or getattr(owner, "close", None)
            if close is not None:
                closing = close()
                if hasattr(closing, "__await__"):
                    await closing


def open_result(
    result: object, *, awaited: bool = False
) -> ModelReply | ReplyStream | AsyncReplyStream:
    """Read what a model's call returned.

    Args:
        result: The returned object; if it was an awaitable, what awaiting it gave.
        awaited: Whether it was an awaitable. A stream that can be iterated both ways (LiteLLM's)
            is then taken for an async one, else for a sync one. Default false.

    Returns:
        The whole reply; or its chunks, which the caller must close (`close()`, `await aclose()`) at
        the latest when it stops reading.

    Raises:
        ModelRefused: The model, or its provider's filter, refused to answer.
        ModelError: The object is no reply, or a reply without text to read: an empty one of a
            client, a native tool call, an error report.
    """
    if type(result) is str:
        return ModelReply(result)
    if type(result) is ModelReply or isinstance(
        result, (str, ModelReply, ReplyStream, AsyncReplyStream)
    ):
        return _open(result)
    # Iterators go first: reading attributes of a lazy stream may start it.
    is_sync = hasattr(result, "__next__")
    if hasattr(result, "__anext__") and (awaited or not is_sync):
        return AsyncReplyStream(result)
    if is_sync:
        return ReplyStream(result)
    # Bedrock's stream lies in a dict.
    inner = result.get("stream") if isinstance(result, Mapping) else None
    if hasattr(inner, "__iter__") or hasattr(inner, "__aiter__"):
        return open_result(inner, awaited=awaited)
    piece = _read(result, whole=True)
    if piece is not None:
        return _whole(piece)
    is_sync = hasattr(result, "__iter__")
    if hasattr(result, "__aiter__") and (awaited or not is_sync):
        return AsyncReplyStream(result)
    # Pydantic objects iterate over their fields: an unknown one is no stream.
    if is_sync and not (
        isinstance(result, (bytes, bytearray, Mapping)) or hasattr(result, "model_dump")
    ):
        return ReplyStream(result)
    raise ModelError(
        "expected a string, an object with .text, a client's response or an iterator of these "
        f"from the model: got {_kind(result)}{_hint(result)}{_quoted(result)}"
    )


_ENDS = (None, "stop", "length", "unknown")


def _open(
    result: str | ModelReply | ReplyStream | AsyncReplyStream,
) -> ModelReply | ReplyStream | AsyncReplyStream:
    if isinstance(result, str):
        text = str(result)
        return ModelReply(text, items=(WrittenItem(text),) if isinstance(result, Envelope) else ())
    if not isinstance(result, ModelReply):
        return result
    text, reasoning = result.text, result.reasoning
    if not (isinstance(text, str) and isinstance(reasoning, str)):
        name, value = ("reasoning", reasoning) if isinstance(text, str) else ("text", text)
        raise ModelError(f"expected a string as the {name} of a reply: got {shown(value)}")
    if result.usage is not None:
        check_counts(result.usage)
    if result.finish_reason not in _ENDS:
        # In the words of a client.
        piece = _read(result, whole=True)
        assert piece is not None
        return _whole(piece)
    return result


def _whole(piece: Piece) -> ModelReply:
    reading = Reading()
    reading.take(piece)
    try:
        reading.check()
    except ModelError as error:
        error._usage = piece.usage
        raise
    return ModelReply(piece.text, reading.end, piece.usage, piece.reasoning)


def _keep_body(source: object) -> None:
    response = kept_body(source)
    if response is not None:
        cast("Any", response).read()


async def _keep_body_async(source: object) -> None:
    response = kept_body(source)
    if response is not None:
        await cast("Any", response).aread()


def _whole_chunk(source: object) -> ModelChunk | None:
    """Return the reply of a server that does not stream, which has come in the place of chunks.

    Returns:
        `None` if the source is no stream of a client over HTTP.

    Raises:
        ModelError: It has sent another body.
    """
    body = reply_in(source)
    piece = None if body is None else _read(body, whole=True)
    if piece is None:
        check_chunks_came(source)
        return None
    reply = _whole(piece)
    return ModelChunk(
        reply.text, reply.finish_reason, reply.usage, reply.reasoning, certainty=reply.certainty
    )


def _read_item(item: object, reading: Reading | None) -> ModelChunk:
    if type(item) is str:
        return ModelChunk(item)
    if isinstance(item, str):
        return ModelChunk(str(item))
    piece = _read(item, whole=False)
    if piece is None and reading is not None and reading.is_service and _is_event(item):
        # Services add kinds of events, which clients pass on.
        return ModelChunk()
    if piece is None:
        raise ModelError(
            "expected strings, objects with .text or a client's chunks from the model's stream: "
            f"got {_kind(item)}{_hint(item)}{_quoted(item)}"
        )
    if reading is not None:
        reading.take(piece)
    if isinstance(item, ModelChunk):
        return replace(item, text=piece.text, finish_reason=piece.finish_reason)
    return ModelChunk(piece.text, piece.finish_reason, piece.usage, piece.reasoning)


def _read(item: object, *, whole: bool) -> Piece | None:
    # Imported here: a run whose model returns strings never needs it, and it imports this module.
    from callslip.models._shapes import read_shape

    return read_shape(item, whole=whole)


def _is_event(item: object) -> bool:
    kind = item.get("type") if isinstance(item, Mapping) else getattr(item, "type", None)
    return isinstance(kind, str)


def _owners(items: object, source: object) -> list[object]:
    """What to close, the iterator first."""
    owners = [items] if items is source else [items, source]
    # LiteLLM's wrapper may have no `close` and keeps the client's stream here.
    inner = getattr(source, "completion_stream", None)
    return owners if inner is None else [*owners, inner]


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__qualname__


def _hint(value: object) -> str:
    if value is None:
        return ": does the function return its reply?"
    if isinstance(value, (bytes, bytearray)):
        return ": decode it first"
    if hasattr(value, "__await__"):
        return ": await it first"
    if hasattr(value, "__enter__") or hasattr(value, "__aenter__"):
        return ": enter the context manager and return or yield what it gives"
    return ": return or yield its text"


def _quoted(value: object) -> str:
    """Return the JSON of a body that is no reply, for an error."""
    is_body = isinstance(value, Mapping) or callable(getattr(value, "model_dump", None))
    return f"; it says: {quote_body(value)}" if is_body and value else ""
