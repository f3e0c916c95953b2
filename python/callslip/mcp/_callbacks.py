"""Callbacks for the requests of an MCP server: a model's reply, or a person's answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip._base.json import to_json
from callslip._base.options import check_called_with
from callslip._core import ToolSet
from callslip._threads.pool import in_thread
from callslip.errors import ToolError
from callslip.mcp._stderr import mcp_logger
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

__all__ = ["Elicitation", "elicitation_callback", "sampling_callback"]


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A question of a server to a person, in the middle of a call.

    Attributes:
        server: The server's name.
        message: The question.
        schema: JSON Schema of the answer: an object of plain values. Empty with a `url`.
        url: An address that the person should open, for example to log in; `None` for a form.
    """

    server: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None


def sampling_callback(model: object, *, server: str) -> Callable[..., Any]:
    """Return the callback for a server that asks for a model's reply.

    Args:
        model: Any model that an agent accepts.
        server: The server's name.

    Raises:
        UsageError: The model can't be called.
    """
    call = ModelCall(model)
    name = getattr(call.model, "__name__", None) or type(call.model).__name__

    async def reply(
        _: object, request: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        try:
            messages = _messages(request)
        except ToolError as error:
            return _lazy.mcp_types.ErrorData(
                code=_lazy.mcp_types.INVALID_PARAMS, message=str(error)
            )
        try:
            text, reason = await _reply(call, messages, request, group=server)
        except Exception:  # noqa: BLE001  # the client's message is not for the server
            mcp_logger().warning("%s: the model for its sampling failed", server, exc_info=True)
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


def elicitation_callback(ask: Callable[[Elicitation], Any], *, server: str) -> Callable[..., Any]:
    """Return the callback for a server that asks a person.

    Args:
        ask: A function, sync (called in a thread) or async. Returns the answer as a mapping,
            `True` once the person has opened the address, or `None` if the person declines.
        server: The server's name.

    Raises:
        UsageError: `ask` is no function of the question.
    """
    check_called_with("elicitation", ask, "the question")

    async def answer(_: object, request: ElicitRequestParams) -> ElicitResult | ErrorData:
        url = request.url if request.mode == "url" else None
        schema: Any = request.requested_schema if request.mode == "form" else {}
        question = Elicitation(server, request.message, schema, url)
        try:
            return _elicit_result(await _call(ask, question), question)
        except Exception:  # noqa: BLE001  # the failure's message is not for the server
            mcp_logger().warning("%s: its question failed", server, exc_info=True)
            return _lazy.mcp_types.ErrorData(
                code=_lazy.mcp_types.INTERNAL_ERROR, message="the question could not be asked"
            )

    return answer


def _elicit_result(answer_value: object, question: Elicitation) -> ElicitResult:
    """Return the response for the server. Only an answer of the expected kind counts as consent.

    Raises:
        TypeError: The answer is of another kind.
        ValueError: The answer does not fit the schema.
    """
    if answer_value is None or answer_value is False:
        return _lazy.mcp_types.ElicitResult(action="decline")
    if question.url is not None and (answer_value is True or isinstance(answer_value, Mapping)):
        return _lazy.mcp_types.ElicitResult(action="accept")
    if question.url is not None or not isinstance(answer_value, Mapping):
        wanted = "a mapping" if question.url is None else "True"
        kind = type(answer_value).__name__
        raise TypeError(f"expected elicitation= to return {wanted}, or None to decline: got {kind}")

    form = SchemaTool(
        lambda content, _: content, name="answer", description="", parameters=question.schema
    )
    content = ToolSet([form._spec()]).check("answer", to_json(dict(answer_value)))
    return _lazy.mcp_types.ElicitResult(action="accept", content=content)


async def _reply(
    call: ModelCall,
    messages: list[dict[str, str]],
    request: CreateMessageRequestParams,
    *,
    group: str,
) -> tuple[str, str | None]:
    options = {"max_tokens": request.max_tokens, "stop": request.stop_sequences}
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


def _messages(request: CreateMessageRequestParams) -> list[dict[str, str]]:
    messages = []
    if request.system_prompt:
        messages.append({"role": "system", "content": request.system_prompt})
    for message in request.messages:
        texts = []
        for block in message.content_as_list:
            if block.type != "text":
                raise ToolError(f"expected messages of text alone: got {block.type}")
            texts.append(block.text)
        messages.append({"role": message.role, "content": "\n".join(texts)})
    return messages


async def _call(ask: Callable[[Elicitation], Any], question: Elicitation) -> Any:
    if inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(
        getattr(type(ask), "__call__", None)  # noqa: B004
    ):
        return await ask(question)
    answer_value = await in_thread(ask, question)
    return await answer_value if inspect.isawaitable(answer_value) else answer_value
