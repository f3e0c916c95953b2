"""Models for tests: one that follows a script, and one that is a function.

Both work with sync and async drivers, record every request, and stream on demand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import closing
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias, cast

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_called_with, check_flag, check_whole, shown
from callslip.errors import UsageError
from callslip.models._bounds import Bounds
from callslip.models._call import ModelCall
from callslip.models._context import CountTokens, check_context
from callslip.models._direct import reply_chunk
from callslip.models._envelope import envelope_of, has_items
from callslip.models._items import Envelope, WrittenItem
from callslip.models._offered import check_messages
from callslip.models._parts import check_parts
from callslip.models._reply import Message, Messages, ModelChunk, ModelReply, open_result
from callslip.parts import PartKind

__all__ = ["FunctionModel", "Piece", "Request", "ScriptedModel", "ScriptedReply", "UnexpectedCall"]

Piece: TypeAlias = str | ModelChunk | BaseException
"""A piece of a streamed reply. An exception is raised at its place."""

ScriptedReply: TypeAlias = (
    str
    | ModelReply
    | Iterable[Piece]
    | BaseException
    | type[BaseException]
    | Callable[[Messages], object]
)
"""An item of a script: a whole reply, the pieces of a streamed one, an exception to raise, or a
function of the messages that returns one of these."""

_SHOWN = 2_000  # characters of one message in an error


class UnexpectedCall(AssertionError):
    """A scripted model was called more often than its script has replies.

    The message holds the messages that went unanswered.
    """


@dataclass(slots=True)
class Request:
    """One call of a model.

    Attributes:
        messages: The messages as they were, copied.
        options: The keywords that came with the call.
        sent: The text that was read so far; shorter than the reply if it was stopped early.
        closed: Whether a streamed reply has ended or was closed.
    """

    messages: list[Message]
    options: dict[str, object]
    sent: str = ""
    closed: bool = False


@dataclass(slots=True)
class _Recorder:
    """Returns replies, whole or streamed, and records them with their requests."""

    chunk_size: int | None = None
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_whole("chunk_size", self.chunk_size, 1, none="whole replies")

    def record(self, messages: Messages, options: dict[str, object]) -> Request:
        check_messages(messages)
        request = Request([dict(message) for message in messages], options)
        self.requests.append(request)
        return request

    def reply_to(self, reply: object, request: Request) -> ModelReply | Generator[ModelChunk]:
        """Return a reply of a script as the result of a sync model."""
        pieces = self._pieces(reply)
        if pieces is not None:
            return _stream(pieces, request)
        whole = cast("ModelReply", open_result(reply)) if isinstance(reply, str) else reply
        assert isinstance(whole, ModelReply)
        request.sent, request.closed = whole.text, True
        return whole

    def _pieces(self, reply: object) -> Iterable[Piece] | None:
        """Return the pieces to stream; `None` for a whole reply."""
        if isinstance(reply, BaseException) or (
            isinstance(reply, type) and issubclass(reply, BaseException)
        ):
            raise reply
        if isinstance(reply, (str, ModelReply)):
            return None if self.chunk_size is None else _cut(reply, self.chunk_size)
        if isinstance(reply, ModelChunk):
            return (reply,)
        _check_reply(reply)
        return cast("Iterable[Piece]", reply)


@knows_names_of_class({"responses": "replies=[…]", "script": "replies=[…]"})
class ScriptedModel:
    """A model that returns the replies of a script, one for each call, in order.

    Args:
        replies: The script; see `ScriptedReply`.
        chunk_size: Stream strings in pieces of this many characters; `None` (default) for whole
            strings.
        is_async: Answer as an async client does, with a coroutine. Default false.
        context: The tokens of the context that the model is said to have. Default: `None`, not
            known.
        parts: The kinds of images and files that it takes, such as `("image",)`; they are in
            `"parts"` of its messages. Default: none.

    Used in a `with` statement it calls `assert_done` at the end.

    Raises:
        UsageError: An item is not a reply, or an option has a wrong value.
        UnexpectedCall: When called after its last reply.
    """

    # In the ticket protocol, the run waits for calls before it asks for the next reply.
    is_scripted = True
    accepts: frozenset[str] = frozenset({"stop", "seed", "max_tokens", "tools", "tool_choice"})

    def __init__(
        self,
        replies: Iterable[ScriptedReply],
        *,
        chunk_size: int | None = None,
        is_async: bool = False,
        context: int | None = None,
        parts: Collection[PartKind] = (),
    ) -> None:
        self._recorder = _Recorder(chunk_size)
        self._left = deque(_checked_replies(replies))
        self._size = len(self._left)
        self._refused = ""
        check_flag("is_async", is_async)
        self.is_async = is_async
        self.context: int | None = check_context(context)
        self.parts: frozenset[PartKind] = check_parts(parts)

    @property
    def requests(self) -> list[Request]:
        """The calls so far, oldest first."""
        return self._recorder.requests

    def __call__(self, messages: Messages, **options: object) -> object:
        """Return the next reply of the script.

        Raises:
            UnexpectedCall: There is none left.
        """
        if self.is_async:
            return self._answer_later(messages, options)
        return self._recorder.reply_to(*self._next(messages, options))

    async def _answer_later(self, messages: Messages, options: dict[str, object]) -> object:
        return _as_async(self._recorder.reply_to(*self._next(messages, options)))

    def _next(self, messages: Messages, options: dict[str, object]) -> tuple[object, Request]:
        request = self._recorder.record(messages, options)
        try:
            reply = self._left.popleft()
        except IndexError:
            refusal = self._unexpected(request.messages)
            self._refused = self._refused or refusal
            raise UnexpectedCall(refusal) from None
        if callable(reply) and not isinstance(reply, type):
            return reply(messages), request
        return reply, request

    def _unexpected(self, messages: list[Message]) -> str:
        number = len(self.requests)
        replies = "1 reply" if self._size == 1 else f"{self._size} replies"
        lines = [f"expected no call {number}: the script has {replies}; unanswered:"]
        answered = [at for at, one in enumerate(messages) if one["role"] == "assistant"]
        start = answered[-1] + 1 if answered else 0
        for at, message in enumerate(messages[start:], start):
            lines.append(f"[{at}] {message['role']}: {_shorten(message['content'])}")
        return "\n".join(lines)

    def assert_done(self) -> None:
        """Check that each reply of the script was asked for, and nothing after the last one.

        Raises:
            UnexpectedCall: The model was called again, and the test has caught what the run raised.
            AssertionError: Replies are left.
        """
        if self._refused:
            raise UnexpectedCall(self._refused)
        if self._left:
            shown = "\n".join(f"- {_shorten(str(reply))}" for reply in self._left)
            raise AssertionError(
                f"expected {self._size} calls: got {len(self.requests)}; replies left:\n{shown}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A failure of the test itself must not be replaced by that of the remaining replies.
        if kind is None:
            self.assert_done()

    def __repr__(self) -> str:
        return f"ScriptedModel({self._size - len(self._left)} of {self._size} replies given)"


@knows_names_of_class()
class FunctionModel:
    """A model that is a function of the messages.

    Args:
        function: Takes the messages, and such keywords of a run as it names; returns the reply's
            text, or awaits it if it is async. It may return any item of a `ScriptedModel`.
        chunk_size: Stream the text in pieces of this many characters; `None` (default) for the
            whole text.
        context: The tokens of the context that the model is said to have. Default: `None`, not
            known.
        parts: As for `ScriptedModel`.

    Attributes:
        accepts: The keywords that the function takes from a run.
        is_async: Whether the function is async.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        chunk_size: int | None = None,
        context: int | None = None,
        parts: Collection[PartKind] = (),
    ) -> None:
        self._recorder = _Recorder(chunk_size)
        self._call = ModelCall(function)
        self.parts: frozenset[PartKind] = check_parts(parts) or self._call.parts
        self._call.parts = self.parts
        # A function of the messages alone may return calls too.
        self.accepts: frozenset[str] = self._call.accepts | {"tools", "tool_choice"}
        self.grammar_form: str | None = self._call.grammar_form
        self.bounds: Bounds | None = self._call.bounds
        self.is_async: bool = self._call.is_async
        self.context: int | None = check_context(context) or self._call.context
        self.count_tokens: CountTokens | None = self._call.count_tokens

    @property
    def requests(self) -> list[Request]:
        """The calls so far, oldest first."""
        return self._recorder.requests

    def __call__(self, messages: Messages, **options: object) -> object:
        """Return the reply of the function."""
        request = self._recorder.record(messages, options)
        reply = self._call(messages, **options)
        if hasattr(reply, "__await__"):
            return self._answer_later(cast("Awaitable[object]", reply), request)
        return self._recorder.reply_to(reply, request)

    async def _answer_later(self, reply: Awaitable[object], request: Request) -> object:
        return _as_async(self._recorder.reply_to(await reply, request))

    def __repr__(self) -> str:
        return f"FunctionModel({self._call.model!r})"


def _checked_replies(replies: object) -> Iterable[ScriptedReply]:
    """Return a script.

    Raises:
        UsageError: It is none.
    """
    if isinstance(replies, str):
        raise UsageError("expected a list of replies: got a string: put it into a list")
    is_list = isinstance(replies, Iterable) and not isinstance(replies, (bytes, dict, type))
    if not is_list:
        raise UsageError(f"expected a list of replies: got {shown(replies)}; put it into a list")
    script = list(cast("Iterable[ScriptedReply]", replies))
    for reply in script:
        if callable(reply) and not isinstance(reply, type):
            check_called_with("a function of a script", reply, "the messages")
        else:
            _check_reply(reply)
    return script


def _check_reply(reply: object) -> None:
    if isinstance(reply, (str, ModelReply, ModelChunk, BaseException)):
        return
    if isinstance(reply, type):
        is_reply = issubclass(reply, BaseException)
    else:
        is_reply = isinstance(reply, Iterable) and not isinstance(reply, (bytes, dict))
    if not is_reply:
        raise UsageError(
            "expected a string, a ModelReply, pieces to stream, an exception or a function as a "
            f"scripted reply: got {shown(reply)}"
        )
    if isinstance(reply, (list, tuple)):
        for piece in reply:
            _check_piece(piece)


def _check_piece(piece: object) -> None:
    # A reply ends a stream as a chunk does.
    if not isinstance(piece, (str, ModelChunk, ModelReply, BaseException)):
        raise UsageError(
            "expected a string, a ModelChunk or an exception as a piece of a scripted reply: got "
            f"{shown(piece)}"
        )


def _cut(reply: str | ModelReply, size: int) -> Iterator[Piece]:
    if isinstance(reply, Envelope) or (isinstance(reply, ModelReply) and has_items(reply)):
        yield from _cut_items(reply, size)
        return
    whole = ModelReply(reply, "stop") if isinstance(reply, str) else reply
    if whole.reasoning:
        yield ModelChunk(reasoning=whole.reasoning)
    for start in range(0, len(whole.text), size):
        yield whole.text[start : start + size]
    yield ModelChunk("", whole.finish_reason, whole.usage)


def _cut_items(reply: Envelope | ModelReply, size: int) -> Iterator[Piece]:
    """Yield the pieces of a reply with tool calls of the model's own."""
    if isinstance(reply, Envelope):
        reply = ModelReply(finish_reason="stop", items=(WrittenItem(str(reply)),))
    written = envelope_of(reply)
    for start in range(0, len(written), size):
        yield ModelChunk(items=(WrittenItem(written[start : start + size]),))
    yield ModelChunk("", reply.finish_reason, reply.usage)


def _stream(pieces: Iterable[Piece], request: Request) -> Generator[ModelChunk]:
    try:
        for piece in pieces:
            _check_piece(piece)
            if isinstance(piece, BaseException):
                raise piece
            chunk = _chunk_of(piece)
            request.sent += chunk.text
            yield chunk
    finally:
        request.closed = True


def _chunk_of(piece: str | ModelChunk | ModelReply) -> ModelChunk:
    if isinstance(piece, Envelope):
        return ModelChunk(items=(WrittenItem(str(piece)),))
    if isinstance(piece, str):
        return ModelChunk(piece)
    # A reply ends a stream as a chunk does.
    return piece if isinstance(piece, ModelChunk) else reply_chunk(piece)


def _as_async(
    result: ModelReply | Generator[ModelChunk],
) -> ModelReply | AsyncIterator[ModelChunk]:
    return result if isinstance(result, ModelReply) else _stream_async(result)


async def _stream_async(chunks: Generator[ModelChunk]) -> AsyncIterator[ModelChunk]:
    with closing(chunks):
        for chunk in chunks:
            yield chunk


def _shorten(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    return f"{text[:half]} ... ({len(text) - _SHOWN} characters left out) ... {text[-half:]}"
