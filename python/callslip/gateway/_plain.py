"""Requests without tools: the model is called as it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from callslip._threads import pool
from callslip.gateway._asked import Answered, Piece
from callslip.models import Messages, ModelChunk, ModelReply
from callslip.models._direct import reply_chunk
from callslip.models._reply import ReplyStream, open_result
from callslip.models._token_counts import read_usage

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from concurrent.futures import Future

    from callslip.models._call import ModelCall

__all__ = ["plain_answer"]

_GROUP = "callslip.gateway"
"""The name of the gateway in the line of a `BoundedModel`."""


async def plain_answer(
    call: ModelCall, messages: Messages, options: Mapping[str, Any]
) -> AsyncGenerator[Piece | Answered]:
    """Yield the model's text as it comes, and then the end. Leaving early stops the model.

    Args:
        call: The model.
        messages: The conversation.
        options: Keywords that the model accepts.

    Raises:
        Exception: The model failed.
    """
    texts: list[str] = []
    reasoning: list[str] = []
    counts: dict[str, float] = {}
    end = None
    async for chunk in _chunks(call, messages, options):
        texts.append(chunk.text)
        reasoning.append(chunk.reasoning)
        counts.update(read_usage(chunk.usage) or {})
        end = chunk.finish_reason or end
        if chunk.text or chunk.reasoning:
            yield Piece(chunk.text, chunk.reasoning)
    yield Answered(
        "".join(texts), reasoning="".join(reasoning), counts=counts, is_cut=end == "length"
    )


async def _chunks(
    call: ModelCall, messages: Messages, options: Mapping[str, Any]
) -> AsyncGenerator[ModelChunk]:
    gate = call.gate
    held: AbstractAsyncContextManager[None] = nullcontext() if gate is None else gate.held(_GROUP)
    async with held:
        send = partial(call, messages, **options)
        result = send() if call.is_async else await pool.in_thread(send)
        awaited = hasattr(result, "__await__")
        if awaited:
            result = await cast("Awaitable[object]", result)
        reply = open_result(result, awaited=awaited)
        if isinstance(reply, ModelReply):
            yield reply_chunk(reply)
        elif isinstance(reply, ReplyStream):
            async for chunk in _in_threads(reply):
                yield chunk
        else:
            try:
                while (following := await anext(reply, None)) is not None:
                    yield following
            finally:
                await reply.aclose()


async def _in_threads(reply: ReplyStream) -> AsyncGenerator[ModelChunk]:
    reading: Future[pool.Result[ModelChunk | None]] | None = None
    try:
        while True:
            reading = pool.submit_next(reply, None)
            chunk = await pool.result_of(reading)
            if chunk is None:
                return
            yield chunk
    finally:
        pool.close_soon(reply, reading)
