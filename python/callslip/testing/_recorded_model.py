"""A model that replies as recorded, or records the replies of another one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator, Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from callslip import errors
from callslip._base.backoff import headers_of, retry_after
from callslip.models._call import ModelCall
from callslip.models._direct import answer
from callslip.models._envelope import EnvelopePieces, chunk_items, envelope_of, has_items
from callslip.models._items import TextItem, WrittenItem
from callslip.models._reply import Messages, ModelChunk, ModelReply, ReplyStream, open_result
from callslip.models._retry_rules import status_of
from callslip.testing._masked_lines import masked_lines
from callslip.testing._replies import Asked, RecordedReply

if TYPE_CHECKING:
    from callslip.models._bounds import Bounds
    from callslip.parts import PartKind
    from callslip.testing._recording import Recording

__all__ = ["RecordedError", "RecordedModel"]


class RecordedError(Exception):
    """The exception of a client, replayed: the class of the client is not imported.

    Attributes:
        kind: The name of the client's class, with its module.
        status_code: The HTTP status; `None` if there was none.
        headers: Retry-After, if the server has sent it.
    """

    def __init__(
        self,
        message: str,
        kind: str,
        status_code: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status_code = status_code
        self.headers: dict[str, str] = (
            {} if retry_after is None else {"retry-after": str(retry_after)}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordedError, (str(self), self.kind, self.status_code), {"headers": self.headers}


class RecordedModel:
    """A model that replies as recorded; made by the fixture `recorded`.

    It offers a run what the recorded model offers, but for its way to count tokens: they are
    estimated, so that a replay needs no model.
    """

    def __init__(
        self, recording: Recording, model: object = None, asks_for: Mapping[str, Any] | None = None
    ) -> None:
        call = None if model is None else ModelCall(model)
        asked = asks_for or {}
        self._recording = recording
        self._inner = call
        # A replay may be that of a native run.
        tools = frozenset({"tools", "tool_choice"})
        self.accepts: frozenset[str] = tools if call is None else call.accepts
        self.grammar_form: str | None = None if call is None else call.grammar_form
        self.bounds: Bounds | None = None if call is None else call.bounds
        self.context: int | None = None if call is None else call.context
        self.parts: frozenset[PartKind] = frozenset() if call is None else call.parts
        self.is_async: bool = call is not None and call.is_async
        self.needs_examples: bool = asked.get("needs_examples") is True
        self.value_level: str | None = asked.get("value_level")
        least = asked.get("least_certainty")
        self.least_certainty: tuple[float, ...] | None = None if least is None else tuple(least)

    def __call__(self, messages: Messages, **options: object) -> object:
        """Return the reply to the messages.

        Raises:
            NotRecorded: It was not recorded, and is not recorded now.
        """
        if self.is_async:
            return self._answer_later(messages, options)
        asked, known = self._recording.find(messages)
        if known is not None:
            return self._replay(known)
        try:
            made = self._ask(messages, options)
            reply = open_result(made)
        except Exception as error:
            self._keep_error(asked, "", error)
            raise
        if isinstance(reply, ModelReply):
            return self._keep(asked, reply)
        return self._record(asked, cast("ReplyStream", reply))

    async def _answer_later(self, messages: Messages, options: dict[str, object]) -> object:
        asked, known = self._recording.find(messages)
        if known is not None:
            replayed = self._replay(known)
            return replayed if isinstance(replayed, ModelReply) else _as_async(replayed)
        try:
            made = self._ask(messages, options)
            reply = open_result(await cast("Awaitable[object]", made), awaited=True)
        except Exception as error:
            self._keep_error(asked, "", error)
            raise
        if isinstance(reply, ModelReply):
            return self._keep(asked, reply)
        return self._record_async(asked, cast("Any", reply))

    def _ask(self, messages: Messages, options: Mapping[str, object]) -> object:
        assert self._inner is not None
        return answer(self._inner.attempts(), messages, options, is_async=self._inner.is_async)

    def _keep(self, asked: Asked, reply: ModelReply, *, streamed: bool = False) -> ModelReply:
        has_lines = has_items(reply)
        text = self._cleaned(envelope_of(reply) if has_lines else reply.text, has_lines=has_lines)
        usage = _usage(reply.usage)
        kept = RecordedReply(
            text,
            reply.finish_reason,
            usage,
            streamed=streamed,
            has_items=has_lines,
            certainty=reply.certainty,
        )
        self._recording.add(asked, kept)
        items = (WrittenItem(text),) if has_lines else ()
        return replace(reply, text="" if has_lines else text, calls=(), items=items)

    def _cleaned(self, text: str, *, has_lines: bool) -> str:
        clean = self._recording.clean
        return masked_lines(text, clean) if has_lines else clean(text)

    def _keep_error(
        self, asked: Asked, text: str, error: Exception, *, has_lines: bool = False
    ) -> None:
        row = {
            "type": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": self._recording.clean(str(error)),
            "status_code": status_of(error),
            "retry_after": retry_after(headers_of(error)),
        }
        text = self._cleaned(text, has_lines=has_lines)
        self._recording.add(asked, RecordedReply(text, error=row, has_items=has_lines))

    def _record(self, asked: Asked, stream: ReplyStream) -> Generator[ModelChunk]:
        heard = _Heard(self, asked)
        try:
            for chunk in stream:
                heard.take(chunk)
                yield chunk
            heard.is_cut = False
        except Exception as error:
            heard.error = error
            raise
        finally:
            stream.close()
            heard.keep()

    async def _record_async(self, asked: Asked, stream: Any) -> AsyncIterator[ModelChunk]:
        heard = _Heard(self, asked)
        try:
            async for chunk in stream:
                heard.take(chunk)
                yield chunk
            heard.is_cut = False
        except Exception as error:
            heard.error = error
            raise
        finally:
            heard.keep()
            await stream.aclose()

    def _replay(self, reply: RecordedReply) -> ModelReply | Generator[ModelChunk]:
        if reply.error is not None and not reply.text:
            raise _error_of(reply.error)
        if reply.cut or reply.error is not None:
            return self._replay_part(reply)
        if reply.streamed:
            return self._replay_stream(reply)
        items = (WrittenItem(reply.text),) if reply.has_items else ()
        text = "" if reply.has_items else reply.text
        return ModelReply(
            text, reply.finish_reason, reply.usage, items=items, certainty=reply.certainty
        )

    def _replay_part(self, reply: RecordedReply) -> Generator[ModelChunk]:
        yield from self._replay_stream(reply)
        raise self._recording.ends_here() if reply.error is None else _error_of(reply.error)

    @staticmethod
    def _replay_stream(reply: RecordedReply) -> Generator[ModelChunk]:
        # In two pieces: a reader may look at one more piece after the end of a move.
        first, last = ModelChunk(reply.text[:-1]), ModelChunk(reply.text[-1:])
        if reply.has_items:
            first, last = (ModelChunk(items=(WrittenItem(one.text),)) for one in (first, last))
        yield replace(first, certainty=reply.certainty)
        yield replace(last, finish_reason=reply.finish_reason, usage=reply.usage)


class _Heard:
    """What was read of a stream so far."""

    def __init__(self, model: RecordedModel, asked: Asked) -> None:
        self._model = model
        self._asked = asked
        self._reply = ModelReply("")
        self.is_cut = True
        self.error: Exception | None = None

    def take(self, chunk: ModelChunk) -> None:
        before = self._reply
        items = before.items + (chunk.items or chunk_items(chunk))
        self._reply = ModelReply(
            before.text + chunk.text,
            chunk.finish_reason or before.finish_reason,
            {**(_usage(before.usage) or {}), **(_usage(chunk.usage) or {})} or None,
            items=items,
            certainty=before.certainty if chunk.certainty is None else chunk.certainty,
        )

    def keep(self) -> None:
        model, reply = self._model, self._reply
        texts = [item.text for item in reply.items if isinstance(item, TextItem)]
        if len(texts) == len(reply.items):
            reply = replace(reply, text="".join(texts), items=())
        has_lines = has_items(reply)
        text = _part_of(reply) if has_lines else reply.text
        if self.error is not None:
            model._keep_error(self._asked, text, self.error, has_lines=has_lines)
        elif self.is_cut:
            text = model._cleaned(text, has_lines=has_lines)
            usage = _usage(reply.usage)
            kept = RecordedReply(
                text,
                reply.finish_reason,
                usage,
                cut=True,
                has_items=has_lines,
                certainty=reply.certainty,
            )
            model._recording.add(self._asked, kept)
        else:
            model._keep(self._asked, reply, streamed=True)


def _part_of(reply: ModelReply) -> str:
    """Return the envelope of a reply as far as it came."""
    pieces = EnvelopePieces()
    return "".join(pieces.write(item) for item in reply.items)


def _usage(usage: object) -> dict[str, float] | None:
    if usage is None:
        return None
    if is_dataclass(usage) and not isinstance(usage, type):
        return asdict(usage)
    return dict(cast("Mapping[str, float]", usage))


def _error_of(row: dict[str, Any]) -> Exception:
    """Return a recorded exception: of callslip or of Python by its own class."""
    module, _, name = str(row["type"]).rpartition(".")
    kinds: dict[str, type[Exception]] = {
        "ConnectionError": ConnectionError,
        "ConnectionResetError": ConnectionResetError,
        "TimeoutError": TimeoutError,
    }
    kind = getattr(errors, name, None) if module == "callslip.errors" else kinds.get(name)
    if isinstance(kind, type) and module in {"builtins", "callslip.errors"}:
        return cast("Exception", kind(row["message"]))
    # What is retried is also known by the name of the client's class.
    named = type(name, (RecordedError,), {})
    return cast(
        "Exception",
        named(row["message"], row["type"], row["status_code"], row["retry_after"]),
    )


async def _as_async(chunks: Generator[ModelChunk]) -> AsyncIterator[ModelChunk]:
    for chunk in chunks:
        yield chunk
