"""Tool calls of LangChain's chat models."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from callslip._base.options import shown
from callslip.errors import ModelError, UsageError
from callslip.models._fields import field, first_field
from callslip.models._finish_reasons import is_tool_call, quote_body
from callslip.models._items import CallItem, FaultItem, Item, ReasoningItem, TextItem
from callslip.models._part_shapes import Shapes, text_block
from callslip.models._piece import Piece, check_end
from callslip.models._reply import Messages
from callslip.models._token_counts import read_usage
from callslip.models.native._chat import tool_form
from callslip.models.native._chat_messages import ANY_CHAT_ID, opened, told_result, user_content
from callslip.models.native._faults import fault_of
from callslip.models.native._reply import Offer
from callslip.models.native._thoughts import Thoughts, block_of
from callslip.models.native._tracks import CallTracks, arguments_text
from callslip.models.native._turns import Call, Reasoning, Result, Text, Turn, turns_of

__all__ = [
    "LangChainReader",
    "bound_call",
    "langchain_fault",
    "langchain_messages",
    "service_of",
    "takes_tools",
]

_KNOW_NONE = (
    "langchain_deepseek",
    "langchain_fireworks",
    "langchain_google_genai",
    "langchain_google_vertexai",
    "langchain_groq",
    "langchain_mistralai",
    "langchain_openai",
    "langchain_together",
    "langchain_xai",
)
"""The packages whose `tool_choice` may be `"none"`. Others read it as the name of a tool."""
_READ_APART = frozenset({"function_call", "reasoning_content", "refusal", "tool_calls"})
"""What is read of `additional_kwargs`, and does not go back as it came."""
_CALL_BLOCKS = frozenset(
    {"function_call", "input_json_delta", "tool_call", "tool_call_chunk", "tool_use"}
)
"""Blocks of a content that stand for a call, which the message has beside it."""


def _innermost(client: Any) -> Any:
    """Return the chat model inside of what LangChain binds to it."""
    while callable(getattr(inner := getattr(client, "bound", None), "invoke", None)):
        client = inner
    return client


def takes_tools(client: Any) -> bool:
    """Whether a chat model can be offered tools."""
    bind = getattr(_innermost(client), "bind_tools", None)
    # The method of the base class raises.
    return callable(bind) and getattr(bind, "__qualname__", "") != "BaseChatModel.bind_tools"


def service_of(client: Any) -> str:
    """Return the key of a chat model in `data`: each has fields of its own."""
    return f"langchain/{type(_innermost(client)).__name__}"


def bound_call(client: Any, name: str, offer: Offer) -> tuple[Any, dict[str, Any]]:
    """Return the method of a chat model with tools bound to it.

    Args:
        client: The chat model.
        name: The method: `"stream"` or `"astream"`.
        offer: The tools.

    Returns:
        The method, and the keywords to call it with.

    Raises:
        UsageError: The chat model has tools of its own.
    """
    own = (getattr(client, "kwargs", None) or {}).get("tools")
    if own:
        raise UsageError(
            "expected a chat model without tools for a native run, which offers its own: got "
            f"{shown(own)}; pass the chat model as it was before bind_tools"
        )
    if not offer.tools:
        return getattr(client, name), {}
    inner = _innermost(client)
    tools = [tool_form(tool) for tool in offer.tools]
    bound = inner.bind_tools(tools, **_choice_of(inner, offer))
    keywords = getattr(bound, "kwargs", None)
    if not isinstance(keywords, Mapping):
        return getattr(bound, name), {}
    # With the keywords alone, what was bound to the model before stays.
    return getattr(client, name), dict(keywords)


def _choice_of(model: Any, offer: Offer) -> dict[str, Any]:
    """Return the keywords of `bind_tools` for a choice, as far as the model has them."""
    choice = offer.choice
    told: dict[str, Any] = {}
    if choice.mode == "required":
        told["tool_choice"] = choice.tool or "any"
    elif choice.mode == "none":
        packages = {one.__module__.partition(".")[0] for one in type(model).__mro__}
        if not packages.isdisjoint(_KNOW_NONE):
            told["tool_choice"] = "none"
        elif "langchain_anthropic" in packages:
            told["tool_choice"] = {"type": "none"}
    names = inspect.signature(model.bind_tools).parameters
    if not choice.parallel and "parallel_tool_calls" in names:
        told["parallel_tool_calls"] = False
    return told


# ---- the conversation


def langchain_messages(messages: Messages, service: str, shapes: Shapes) -> list[dict[str, Any]]:
    """Return a conversation as the dicts that LangChain makes its messages of.

    Args:
        messages: The messages of a run.
        service: The key of the chat model in `data`.
        shapes: The shapes of images and files.
    """
    sent: list[dict[str, Any]] = []
    for turn in turns_of(opened(messages), service, ANY_CHAT_ID):
        if turn.role == "assistant":
            sent += _own_message(turn, is_answer=bool(sent) and sent[-1]["role"] == "tool")
            continue
        sent += [_result_message(item) for item in turn.items if isinstance(item, Result)]
        content = user_content(turn, shapes)
        if content:
            sent.append({"role": turn.role, "content": content})
    return sent


def _result_message(result: Result) -> dict[str, Any]:
    # Integrations without a mark for errors send the text alone.
    status = "error" if result.error else "success"
    content = told_result(result)
    return {"role": "tool", "tool_call_id": result.id, "content": content, "status": status}


def _own_message(turn: Turn, *, is_answer: bool) -> list[dict[str, Any]]:
    """Return a reply as it goes back; nothing for one of reasoning alone."""
    calls = [_call(item) for item in turn.items if isinstance(item, Call)]
    text = "".join(item.text for item in turn.items if isinstance(item, Text))
    if not text and not calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": text}
    kept: dict[str, Any] = {}
    content: list[Any] = []
    for item in turn.items if calls or is_answer else ():
        if isinstance(item, Text):
            content.append(text_block(item.text))
        elif isinstance(item, Reasoning) and item.data is not None:
            block = block_of(item, "block")
            content += [] if block is None else [block]
            kept |= item.data.get("additional_kwargs", {})
            if item.data.get("reasoning_content"):
                kept["reasoning_content"] = kept.get("reasoning_content", "") + item.text
    if any(block["type"] != "text" for block in content):
        message["content"] = content
    if calls:
        message["tool_calls"] = calls
    return [{**message, "additional_kwargs": kept} if kept else message]


def _call(call: Call) -> dict[str, Any]:
    return {"type": "tool_call", "id": call.id, "name": call.tool, "args": call.object}


# ---- the reply


def langchain_fault(error: Exception) -> FaultItem | None:
    """Return what an error says of a call that the server or LangChain could not read.

    A message with arguments that are no object, such as a list, is an error of pydantic.

    Args:
        error: The exception of the chat model.

    Returns:
        `None` if it is another error.
    """
    name = type(error).__name__
    if name != "ValidationError" or not str(getattr(error, "title", "")).startswith("AIMessage"):
        return fault_of(error)
    told: list[dict[str, Any]] = getattr(error, "errors", list)()
    raw = arguments_text(told[0].get("input")) if told else ""
    return FaultItem("LangChain could not read the arguments of the call", raw)


class LangChainReader:
    """Reads one reply of a chat model of LangChain.

    Args:
        service: The key of the chat model in `data`.
    """

    __slots__ = ("_kept", "_service", "_thoughts", "_tracks")

    def __init__(self, service: str) -> None:
        self._service = service
        self._tracks = CallTracks()
        self._thoughts = Thoughts(service)
        # What goes back of `additional_kwargs`.
        self._kept: dict[str, Any] = {}

    def take(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        """As of `NativeReader`."""
        if isinstance(item, str):
            return Piece(item), (TextItem(item),)
        content, kept = field(item, "content"), field(item, "additional_kwargs")
        if not isinstance(content, (str, list)):
            raise ModelError(
                "expected a message from the chat model: got another object: "
                f"{quote_body(item)}; pass the chat model itself to as_model"
            )
        usage = read_usage(first_field(item, "usage_metadata", "usage"))
        piece = Piece(usage=usage, is_service=field(item, "type") == "ai")
        items: list[Item] = []
        reasoning = field(kept, "reasoning_content")
        if isinstance(reasoning, str) and reasoning:
            piece.reasoning = reasoning
            items += self._thoughts.text(reasoning, field_name="reasoning_content")
        items += self._content(content, piece)
        calls = tuple(self._calls(item, kept))
        items += [*self._thoughts.end(), *calls] if calls else ()
        self._keep(kept)
        return piece, (*items, *self._end(item, piece, whole=whole or piece.is_service))

    def _content(self, content: str | list[Any], piece: Piece) -> Iterator[Item]:
        for block in [content] if isinstance(content, str) else content:
            kind = field(block, "type")
            text = block if isinstance(block, str) else field(block, "text")
            if kind in (None, "text", "output_text"):
                if isinstance(text, str) and text:
                    piece.text += text
                    yield from self._thoughts.end()
                    yield TextItem(text)
            elif kind == "refusal":
                piece.refusal += str(field(block, "refusal") or "")
            elif kind not in _CALL_BLOCKS:
                for item in self._thoughts.blocks("block", [block]):
                    piece.reasoning += item.text
                    yield item

    def _calls(self, message: object, kept: object) -> Iterator[CallItem]:
        """Yield the calls of a message, or the pieces of a chunk."""
        chunks = field(message, "tool_call_chunks")
        if isinstance(chunks, list):
            for at, chunk in enumerate(chunks):
                told = (field(chunk, "id") or "", field(chunk, "name") or "")
                index = field(chunk, "index")
                # Without an index it is a whole call.
                key, is_new = (at, any(map(str, told))) if index is None else (index, False)
                arguments = arguments_text(field(chunk, "args"))
                yield self._piece(key, told, arguments, is_new=is_new)
            return
        raw = field(kept, "tool_calls")
        if isinstance(raw, list) and raw:
            # As the model wrote them. `tool_calls` has what one reading made of it.
            for at, call in enumerate(raw):
                function = field(call, "function")
                told = (field(call, "id") or "", field(function, "name") or "")
                arguments = arguments_text(field(function, "arguments"))
                yield self._piece(at, told, arguments, is_new=True)
            return
        for name in ("tool_calls", "invalid_tool_calls"):
            calls = field(message, name)
            for call in calls if isinstance(calls, list) else ():
                told = (field(call, "id") or "", field(call, "name") or "")
                arguments = arguments_text(field(call, "args"))
                yield self._piece(self._tracks.count, told, arguments, is_new=True)

    def _piece(self, key: Any, told: tuple[Any, Any], arguments: str, *, is_new: bool) -> CallItem:
        name, tool = told
        return self._tracks.piece(key, (str(name), str(tool)), arguments, is_new=is_new)

    def _keep(self, kept: object) -> None:
        """Keep what the integration needs back."""
        for name, value in kept.items() if isinstance(kept, dict) else ():
            if name in _READ_APART or not value:
                continue
            before: Any = self._kept.get(name)
            is_joined = isinstance(before, dict) and isinstance(value, dict)
            self._kept[name] = {**before, **value} if is_joined else value

    def _end(self, item: object, piece: Piece, *, whole: bool) -> tuple[Item, ...]:
        """Return what ends the reply, if it ends."""
        metadata = field(item, "response_metadata")
        names = ("finish_reason", "stop_reason", "done_reason")
        reason = first_field(metadata, *names)
        if reason is None and not whole and field(item, "chunk_position") != "last":
            return ()
        if reason is not None:
            is_call = is_tool_call(reason.lower() if isinstance(reason, str) else reason)
            is_service = piece.is_service
            check_end(piece, "stop" if is_call else reason)
            piece.is_service = is_service
        ends = self._tracks.ends() if piece.finish_reason in (None, "stop") else ()
        kept, self._kept = self._kept, {}
        data = [ReasoningItem("", {self._service: {"additional_kwargs": kept}})] if kept else []
        return (*self._thoughts.end(), *ends, *data)
