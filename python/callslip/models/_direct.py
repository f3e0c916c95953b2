"""Attempts at a reply outside of a run: wrappers of models, called with messages."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from callslip._base import _lazy
from callslip._threads import pool
from callslip.errors import ModelError
from callslip.models._attempt import Attempt, report_reply
from callslip.models._envelope import chunk_items, has_items, items_of
from callslip.models._items import Item, TextItem
from callslip.models._no_reply import empty_reply
from callslip.models._reply import (
    AsyncReplyStream,
    Messages,
    ModelChunk,
    ModelReply,
    ReplyStream,
    open_result,
)
from callslip.models._token_counts import read_usage

if TYPE_CHECKING:
    from callslip.models._attempt import Attempts
    from callslip.models._call import ModelCall

__all__ = [
    "answer",
    "broken_off",
    "check_text_came",
    "in_time",
    "join_chunks",
    "read_whole",
    "reply_chunk",
    "too_late",
    "whole_reply",
]

T = TypeVar("T")
Reply: TypeAlias = "ModelReply | ReplyStream | AsyncReplyStream"


def answer(
    attempts: Attempts, messages: Messages, options: Mapping[str, object], *, is_async: bool
) -> Reply | Awaitable[Reply]:
    """Make attempts until there is a reply. No gate is held, and no rate kept.

    A stream that fails before its first text is requested again; later it raises.

    Args:
        attempts: The attempts.
        messages: The messages.
        options: The keywords for the model.
        is_async: Whether a model is known to be async.

    Returns:
        The reply, or its stream; an awaitable if a model is async.

    Raises:
        Exception: That of the last attempt.
    """
    request = _Request(attempts, messages, options)
    return request.ask_async() if is_async else request.ask()


async def whole_reply(call: ModelCall, messages: Messages) -> ModelReply:
    """Call a model, and wait for its whole reply. A sync model runs in a thread of the pool.

    Raises:
        Exception: That of the model.
    """
    result = call(messages) if call.is_async else await pool.in_thread(call, messages)
    awaited = hasattr(result, "__await__")
    if awaited:
        result = await cast("Awaitable[object]", result)
    return await read_whole(open_result(result, awaited=awaited))


async def read_whole(reply: Reply) -> ModelReply:
    """Return a reply, or read its stream to the end and close it."""
    if isinstance(reply, ModelReply):
        return reply
    chunks: list[ModelChunk] = []
    try:
        while (chunk := await _next_async(reply)) is not None:
            chunks.append(chunk)
    finally:
        await _close_async(reply)
    return join_chunks(chunks)


def join_chunks(chunks: Iterable[ModelChunk]) -> ModelReply:
    """Return the whole reply of a stream."""
    reasoning = []
    items: list[Item] = []
    finish_reason, usage = None, {}
    for chunk in chunks:
        reasoning.append(chunk.reasoning)
        items += chunk.items or chunk_items(chunk)
        finish_reason = chunk.finish_reason or finish_reason
        usage.update(read_usage(chunk.usage) or {})
    # Also the text of a native reply that is only text stands in its items.
    text = "".join(item.text for item in items if isinstance(item, TextItem))
    joined = tuple(items) if any(not isinstance(item, TextItem) for item in items) else ()
    return ModelReply(text, finish_reason, usage or None, "".join(reasoning), items=joined)


def too_late(seconds: float) -> TimeoutError:
    """Return the exception of a model that has not replied in time."""
    return TimeoutError(f"the model did not reply within {seconds:g} seconds")


async def in_time(seconds: float | None, awaitable: Awaitable[T]) -> T:
    """Wait for an object, for so many seconds at most; `None` is no limit.

    Raises:
        TimeoutError: It was not done in time.
    """
    if seconds is None:
        return await awaitable
    try:
        async with _lazy.asyncio.timeout(seconds) as scope:
            return await awaitable
    except TimeoutError:
        if not scope.expired():
            raise
        raise too_late(seconds) from None


def broken_off() -> ModelError:
    """Return the exception of a stream that has ended before its reply."""
    error = ModelError(
        "expected a whole reply from the model: its stream broke off; call it again, or wrap it in "
        "Retrying"
    )
    error._is_transient = True
    return error


def check_text_came(text: str, finish_reason: str | None) -> None:
    """Check that a reply is not empty. One that was cut before its text would be cut again.

    Raises:
        ModelError: It is.
    """
    if text.strip() or finish_reason == "length":
        return
    raise empty_reply()


class _Request:
    """One request to the models of a wrapper, from its first attempt to its reply."""

    def __init__(
        self, attempts: Attempts, messages: Messages, options: Mapping[str, object]
    ) -> None:
        self._attempts = attempts
        self._messages = messages
        self._options = options
        self._attempt: Attempt = next(attempts)

    def ask(self) -> Reply | Awaitable[Reply]:
        """Make attempts until there is a reply, a stream, or an awaitable for one."""
        while True:
            try:
                result = _within(self._attempt.timeout, self._call)
                if hasattr(result, "__await__"):
                    return self.ask_async(cast("Awaitable[object]", result))
                return self._open(result, awaited=False)
            except Exception as error:  # noqa: BLE001  # raised again after the last attempt
                time.sleep(self._next(error))

    async def ask_async(self, pending: Awaitable[object] | None = None) -> Reply:
        """Make attempts until there is a reply or a stream.

        Args:
            pending: The result of the first attempt, if that was begun.
        """
        while True:
            timeout = self._attempt.timeout
            try:
                if pending is None:
                    result = await in_time(timeout, self._call_async())
                else:
                    result, pending = await in_time(timeout, pending), None
                return self._open(result, awaited=True)
            except Exception as error:  # noqa: BLE001  # raised again after the last attempt
                pending = None
                await _lazy.asyncio.sleep(self._next(error))

    def _call(self) -> object:
        return self._attempt.call(self._messages, **self._options)

    async def _call_async(self) -> object:
        result = self._call() if self._attempt.call.is_async else await pool.in_thread(self._call)
        return await result if hasattr(result, "__await__") else result

    def _next(self, error: Exception) -> float:
        """Continue with the next attempt, if there is one. Returns the seconds to wait."""
        self._attempt = self._attempts.throw(error)
        return self._attempt.wait

    def _open(self, result: object, *, awaited: bool) -> Reply:
        attempt = self._attempt
        reply = open_result(result, awaited=awaited)
        if isinstance(reply, ReplyStream):
            return ReplyStream(self._relay(reply))
        if isinstance(reply, AsyncReplyStream):
            return AsyncReplyStream(self._relay_async(reply))
        if attempt.is_retried and not has_items(reply):
            check_text_came(reply.text, reply.finish_reason)
        report_reply(self._attempts)
        return replace(reply, usage=_Usage(attempt).add(reply.usage))

    def _relay(self, stream: ReplyStream) -> Iterator[ModelChunk]:
        """Yield the chunks of a stream, and of the next attempt if it fails before its text."""
        reply: Reply = stream
        while True:
            chunks = _Chunks(self._attempt)
            timeout = self._attempt.timeout
            try:
                if isinstance(reply, ModelReply):
                    yield reply_chunk(reply)
                    return
                try:
                    while (chunk := _within(timeout, partial(_next_of, reply))) is not None:
                        yield from chunks.read(chunk, is_broken=reply.broke)
                finally:
                    # A thread that was given up may still read from it.
                    pool.submit(_close, reply) if timeout is not None else _close(reply)
                chunks.check_end()
            except Exception as error:
                if chunks.are_given:
                    raise
                time.sleep(self._next(error))
                reply = _wait_for(self.ask())
            else:
                report_reply(self._attempts)
                return

    async def _relay_async(self, stream: AsyncReplyStream) -> AsyncIterator[ModelChunk]:
        """As `_relay`."""
        reply: Reply = stream
        while True:
            chunks = _Chunks(self._attempt)
            timeout = self._attempt.timeout
            try:
                if isinstance(reply, ModelReply):
                    yield reply_chunk(reply)
                    return
                try:
                    while (chunk := await in_time(timeout, _next_async(reply))) is not None:
                        for one in chunks.read(chunk, is_broken=reply.broke):
                            yield one
                finally:
                    await _close_async(reply)
                chunks.check_end()
            except Exception as error:
                if chunks.are_given:
                    raise
                await _lazy.asyncio.sleep(self._next(error))
                reply = await self.ask_async()
            else:
                report_reply(self._attempts)
                return


class _Chunks:
    """The chunks of one attempt. Those without text are passed on at once too."""

    def __init__(self, attempt: Attempt) -> None:
        self._usage = _Usage(attempt)
        self._is_retried = attempt.is_retried
        self._end: str | None = None
        self.are_given = False

    def read(self, chunk: ModelChunk, *, is_broken: bool) -> Iterator[ModelChunk]:
        if is_broken and self._is_retried and not self.are_given:
            raise broken_off()
        self._end = chunk.finish_reason or self._end
        self.are_given = self.are_given or bool(chunk.text or chunk.items or chunk.call)
        yield replace(chunk, usage=self._usage.add(chunk.usage))

    def check_end(self) -> None:
        if self._is_retried and not self.are_given:
            check_text_came("", self._end)


class _Usage:
    """The usage of one attempt so far, with its cost."""

    def __init__(self, attempt: Attempt) -> None:
        self._prices = attempt.prices
        self._model = attempt.call.name
        self._counts: dict[str, float] = {}

    def add(self, usage: Any) -> Any:
        """Return the usage with the cost of all that was reported so far."""
        if self._prices is None or usage is None:
            return usage
        self._counts.update(read_usage(usage) or {})
        return self._prices.add_cost(self._model, self._counts)


def _within(seconds: float | None, function: Callable[[], T]) -> T:
    """Call a function, in a thread of the pool if there is a time limit."""
    if seconds is None:
        return function()
    future = pool.submit(function)
    try:
        result = future.result(seconds)
    except FutureTimeoutError:
        future.cancel()
        raise too_late(seconds) from None
    return result.get()


def _next_of(stream: ReplyStream | AsyncReplyStream) -> ModelChunk | None:
    if isinstance(stream, ReplyStream):
        return next(stream, None)
    return pool.on_loop(_next_async(stream)).result().get()


async def _next_async(stream: ReplyStream | AsyncReplyStream) -> ModelChunk | None:
    if isinstance(stream, ReplyStream):
        return await pool.in_thread(next, stream, None)
    return await anext(stream, None)


def _close(stream: ReplyStream | AsyncReplyStream) -> None:
    if isinstance(stream, ReplyStream):
        stream.close()
    else:
        pool.on_loop(stream.aclose()).result().get()


async def _close_async(stream: ReplyStream | AsyncReplyStream) -> None:
    if isinstance(stream, ReplyStream):
        pool.submit(stream.close)
    else:
        await stream.aclose()


def _wait_for(reply: Reply | Awaitable[Reply]) -> Reply:
    if isinstance(reply, (ModelReply, ReplyStream, AsyncReplyStream)):
        return reply
    return pool.on_loop(_awaited(reply)).result().get()


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def reply_chunk(reply: ModelReply) -> ModelChunk:
    """Return a whole reply as the one chunk of a stream."""
    items = items_of(reply) if has_items(reply) else ()
    return ModelChunk(
        reply.text,
        reply.finish_reason,
        reply.usage,
        reply.reasoning,
        items=items,
        certainty=reply.certainty,
    )
