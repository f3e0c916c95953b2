"""What an MCP server may ask of its client: a model's reply, or something of a person."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from callslip import _lazy
from callslip._core import ToolSet
from callslip._json import to_json
from callslip._threads.pool import in_thread
from callslip.errors import ToolError
from callslip.mcp._words import log
from callslip.models._call import ModelCall
from callslip.models._reply import AsyncReplyStream, ModelReply, ReplyStream, open_result
from callslip.tools._schema_tool import SchemaTool

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
    )

__all__ = ["Elicitation", "answering", "sampling"]


@dataclass(frozen=True, slots=True)
class Elicitation:
    """What a server wants to know from a person in the middle of a call.

    Attributes:
        server: The server's name.
        message: For the person.
        schema: JSON Schema of the answer: an object of plain values. Empty with a `url`.
        url: What the person is to open instead, for example to log in; `None` for a form.
    """

    server: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None


def sampling(model: object, *, server: str) -> Callable[..., Any]:
    """Return what answers a server that asks for a model's reply.

    Args:
        model: As an agent takes it.
        server: The server's name.

    Raises:
        UsageError: The model can't be called.
    """
    call = ModelCall(model)
    name = getattr(call.model, "__name__", None) or type(call.model).__name__

    async def reply(
        _: object, asked: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        try:
            messages = _messages(asked)
        except ToolError as error:
            return _lazy.mcp_types.ErrorData(
                code=_lazy.mcp_types.INVALID_PARAMS, message=str(error)
            )
        try:
            text, reason = await _reply(call, messages, asked, group=server)
        except Exception:  # noqa: BLE001  # the client's words are not for the server
            log().warning("%s: the model for its sampling failed", server, exc_info=True)
            return _lazy.mcp_types.ErrorData(
                code=_lazy.mcp_types.INTERNAL_ERROR, message="the model failed"
            )
        return _lazy.mcp_types.CreateMessageResult.model_validate(
            {
                "role": "assistant",
                "content": {"type": "text", "text": text},
                "model": name,
                "stopReason": "maxTokens" if reason == "length" else "endTurn",
            }
        )

    return reply


def answering(ask: Callable[[Elicitation], Any], *, server: str) -> Callable[..., Any]:
    """Return what answers a server that asks a person.

    Args:
        ask: Sync, then in a thread, or async. Returns the answer as a mapping, `True` once the
            person has opened the address, or `None` where the person declines.
        server: The server's name.
    """
    if not callable(ask):
        raise ToolError(f"expected elicitation to be callable: got {type(ask).__name__}")

    async def answer(_: object, asked: ElicitRequestParams) -> ElicitResult | ErrorData:
        url = asked.url if asked.mode == "url" else None
        schema: Any = asked.requested_schema if asked.mode == "form" else {}
        question = Elicitation(server, asked.message, schema, url)
        try:
            return _answer(await _called(ask, question), question)
        except Exception:  # noqa: BLE001  # what went wrong here is not for the server
            log().warning("%s: its question failed", server, exc_info=True)
            return _lazy.mcp_types.ErrorData(
                code=_lazy.mcp_types.INTERNAL_ERROR, message="the question could not be asked"
            )

    return answer


def _answer(answered: object, question: Elicitation) -> ElicitResult:
    """Return what is sent. Nothing but what is asked for is taken for consent.

    Raises:
        TypeError: It is no answer.
        ValueError: It does not fit the schema.
    """
    if answered is None or answered is False:
        return _lazy.mcp_types.ElicitResult(action="decline")
    if question.url is not None and (answered is True or isinstance(answered, Mapping)):
        return _lazy.mcp_types.ElicitResult(action="accept")
    if question.url is not None or not isinstance(answered, Mapping):
        wanted = "a mapping" if question.url is None else "True"
        kind = type(answered).__name__
        raise TypeError(f"expected elicitation= to return {wanted}, or None to decline: got {kind}")

    form = SchemaTool(
        lambda content, _: content, name="answer", description="", parameters=question.schema
    )
    content = ToolSet([form._spec()]).check("answer", to_json(dict(answered)))
    return _lazy.mcp_types.ElicitResult(action="accept", content=content)


async def _reply(
    call: ModelCall,
    messages: list[dict[str, str]],
    asked: CreateMessageRequestParams,
    *,
    group: str,
) -> tuple[str, str | None]:
    options = {"max_tokens": asked.max_tokens, "stop": asked.stop_sequences}
    offered = {name: value for name, value in options.items() if name in call.accepts}
    if call.gate is None:
        return await _read(call, messages, offered)
    turn: AbstractAsyncContextManager[None] = call.gate.held(group)
    async with turn:
        return await _read(call, messages, offered)


async def _read(
    call: ModelCall, messages: list[dict[str, str]], offered: dict[str, Any]
) -> tuple[str, str | None]:
    if call.is_async:
        result = call(messages, **offered)
    else:
        result = await in_thread(partial(call, messages, **offered))
    awaited = inspect.isawaitable(result)
    if inspect.isawaitable(result):
        result = await result
    reply = open_result(result, awaited=awaited)
    if isinstance(reply, ModelReply):
        return reply.text, reply.finish_reason
    if isinstance(reply, ReplyStream):
        chunks = await in_thread(list, reply)
    else:
        chunks = await _chunks(reply)
    reasons = [chunk.finish_reason for chunk in chunks if chunk.finish_reason is not None]
    return "".join(chunk.text for chunk in chunks), reasons[-1] if reasons else None


async def _chunks(stream: AsyncReplyStream) -> list[Any]:
    try:
        return [chunk async for chunk in stream]
    finally:
        await stream.aclose()


def _messages(asked: CreateMessageRequestParams) -> list[dict[str, str]]:
    messages = []
    if asked.system_prompt:
        messages.append({"role": "system", "content": asked.system_prompt})
    for message in asked.messages:
        texts = []
        for block in message.content_as_list:
            if block.type != "text":
                raise ToolError(f"expected messages of text alone: got {block.type}")
            texts.append(block.text)
        messages.append({"role": message.role, "content": "\n".join(texts)})
    return messages


async def _called(ask: Callable[[Elicitation], Any], question: Elicitation) -> Any:
    if inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(
        getattr(type(ask), "__call__", None)  # noqa: B004
    ):
        return await ask(question)
    answered = await in_thread(ask, question)
    return await answered if inspect.isawaitable(answered) else answered
