"""Requests with tools, and replies with tool calls, of Anthropic's messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from callslip.errors import ModelError
from callslip.models._events import read_event
from callslip.models._fields import field
from callslip.models._finish_reasons import quote_body, raise_reported, reported_in
from callslip.models._items import CallItem, Data, Item, ReasoningItem, TextItem, ToolForm
from callslip.models._part_shapes import Shapes, text_block
from callslip.models._piece import Piece, check_end
from callslip.models._token_counts import read_usage
from callslip.models._turns import OPENING
from callslip.models.native._asking import refusal_of
from callslip.models.native._last_call import LastCall
from callslip.models.native._placed_parts import placed_parts
from callslip.models.native._reply import Offer
from callslip.models.native._turns import Call, Reasoning, Result, Text, Turn, system_of

__all__ = ["SERVICE", "AnthropicReader", "messages_request", "refuses_thinking"]

SERVICE: Final = "anthropic"
_THINKING = ("thinking", "redacted_thinking")
_STALE = re.compile(
    r"signature|redacted_thinking|bound to a different|expected .?thinking|"
    r"thinking.? blocks?\b|cannot contain .?thinking",
    re.IGNORECASE,
)


def messages_request(
    turns: list[Turn], offer: Offer, shapes: Shapes, options: Mapping[str, object]
) -> dict[str, object]:
    """Return the fields of a request.

    Args:
        turns: The conversation.
        offer: The tools.
        shapes: The shapes of images and files.
        options: The other fields. With `thinking` of the type `enabled` the service wants the last
            turn of the model to begin with its thinking. A cut turn has lost it, and a turn of
            another service never had it. The request is then made without `thinking`.
    """
    fields = dict(options)
    system = system_of(turns)
    if system:
        fields["system"] = system
    messages = _messages(turns, shapes)
    is_forced = field(options.get("thinking"), "type") == "enabled"
    if is_forced and _has_lost_thinking(messages):
        del fields["thinking"]
        is_forced = False
    if offer.tools:
        fields["tools"] = [_tool(form) for form in offer.tools]
        fields["tool_choice"] = _choice(offer, is_free=is_forced)
    fields["messages"] = messages
    return fields


def refuses_thinking(error: Exception) -> bool:
    """Whether the service refuses the thinking of earlier turns, as after they were shortened."""
    return _STALE.search(refusal_of(error)) is not None


def _has_lost_thinking(messages: list[dict[str, Any]]) -> bool:
    own: list[list[Any]] = [one["content"] for one in messages if one["role"] == "assistant"]
    blocks = own[-1] if own else []
    has_calls = any(block["type"] == "tool_use" for block in blocks)
    return has_calls and blocks[0]["type"] not in _THINKING


def _tool(form: ToolForm) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": form.name, "input_schema": dict(form.parameters)}
    if form.description:
        tool["description"] = form.description
    if form.strict:
        tool["strict"] = True
    return tool


def _choice(offer: Offer, *, is_free: bool) -> dict[str, Any]:
    """Return the choice. With `is_free` no call is forced, because the service refuses that."""
    wanted = offer.choice
    if wanted.mode == "none":
        return {"type": "none"}
    choice: dict[str, Any] = {"type": "auto"}
    if wanted.mode == "required" and not is_free:
        choice = {"type": "tool", "name": wanted.tool} if wanted.tool else {"type": "any"}
    if not wanted.parallel:
        choice["disable_parallel_tool_use"] = True
    return choice


def _messages(turns: list[Turn], shapes: Shapes) -> list[dict[str, Any]]:
    """Return the messages: their roles alternate, and the user begins."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "system":
            continue
        blocks = _user_blocks(turn, shapes) if turn.role == "user" else _own_blocks(turn)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == turn.role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": turn.role, "content": blocks})
    if messages and messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [text_block(OPENING)]})
    return messages


def _user_blocks(turn: Turn, shapes: Shapes) -> list[Any]:
    inside, behind = placed_parts(turn, shapes, text_block)
    blocks: list[Any] = []
    for item in turn.items:
        if isinstance(item, Text):
            blocks.append(text_block(item.text))
        elif isinstance(item, Result):
            blocks.append(_result(item, inside.get(item.id, [])))
    return blocks + behind


def _result(item: Result, parts: list[Any]) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": item.id}
    if parts:
        block["content"] = [text_block(item.content), *parts]
    elif item.content.strip():
        # The service refuses blank texts.
        block["content"] = item.content
    if item.error:
        block["is_error"] = True
    return block


def _own_blocks(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for item in turn.items:
        if isinstance(item, Text):
            blocks.append(text_block(item.text))
        elif isinstance(item, Call):
            call = {"type": "tool_use", "id": item.id, "name": item.tool, "input": item.object}
            blocks.append(call)
        elif isinstance(item, Reasoning) and item.data is not None:
            blocks.append(_thinking(item))
    # The service refuses a message that ends with thinking.
    while blocks and blocks[-1]["type"] in _THINKING:
        blocks.pop()
    return blocks


def _thinking(item: Reasoning) -> dict[str, Any]:
    if "redacted" in item.data:
        return {"type": "redacted_thinking", "data": item.data["redacted"]}
    return {"type": "thinking", "thinking": item.text, "signature": item.data["signature"]}


@dataclass(slots=True)
class _Block:
    """A block of a reply that has begun."""

    kind: object
    call: int = -1
    input: object = None
    signature: object = None


class AnthropicReader:
    """Reads one reply: its raw events, or a whole message of a client that does not stream."""

    __slots__ = ("_blocks", "_calls", "_last")

    def __init__(self) -> None:
        self._blocks: dict[object, _Block] = {}
        self._calls = 0
        self._last = LastCall()

    def take(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        """Read an event or a message. As of `NativeReader`."""
        piece, items = self._read(item, whole=whole)
        return piece, self._last.held(items, piece)

    def _read(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        kind, delta = field(item, "type"), field(item, "delta")
        if whole or kind == "message":
            return self._read_message(item)
        if kind == "message_delta":
            why = field(field(delta, "stop_details"), "explanation")
            return _end(item, field(delta, "stop_reason"), why), ()
        if kind == "content_block_start":
            return self._begin(item)
        if kind == "content_block_stop":
            return Piece(is_service=True), self._finish(field(item, "index"))
        if kind == "content_block_delta" and field(delta, "type") in _OF_BLOCKS:
            return Piece(is_service=True), self._more(self._blocks.get(field(item, "index")), delta)
        piece = read_event(item)
        if piece is None and not isinstance(kind, str):
            raise _not_of_messages(item)
        # Services add kinds of events, which clients pass on.
        return (Piece(), ()) if piece is None else (piece, _items_in(piece))

    def _begin(self, item: object) -> tuple[Piece, tuple[Item, ...]]:
        content = field(item, "content_block")
        kind = field(content, "type")
        block = self._blocks[field(item, "index")] = _Block(kind)
        if kind == "tool_use":
            block.call, block.input = self._calls, field(content, "input")
            self._calls += 1
            name, tool = _text(field(content, "id")), _text(field(content, "name"))
            return Piece(is_service=True), (CallItem(block.call, name, tool),)
        if kind == "redacted_thinking":
            return Piece(is_service=True), (_reasoning_end("redacted", field(content, "data")),)
        block.signature = field(content, "signature")
        piece = read_event(item) or Piece()
        return piece, _items_in(piece)

    def _more(self, block: _Block | None, delta: object) -> tuple[Item, ...]:
        if block is None:
            return ()
        if field(delta, "type") == "signature_delta":
            block.signature = field(delta, "signature")
            return ()
        more = _text(field(delta, "partial_json"))
        if not more or block.call < 0:
            return ()
        # Some servers give the whole input with the block, and none in deltas.
        block.input = None
        return (CallItem(block.call, arguments=more),)

    def _finish(self, index: object) -> tuple[Item, ...]:
        block = self._blocks.pop(index, None)
        if block is None:
            return ()
        if block.call >= 0:
            arguments = json.dumps(block.input, ensure_ascii=False) if block.input else ""
            return (CallItem(block.call, arguments=arguments, is_whole=True),)
        if block.kind != "thinking":
            return ()
        # The service refuses one without a signature. It ends all the same.
        is_signed = bool(block.signature)
        return (_reasoning_end("signature", block.signature) if is_signed else _UNSIGNED,)

    def _read_message(self, item: object) -> tuple[Piece, tuple[Item, ...]]:
        content = field(item, "content")
        if not isinstance(content, (list, tuple)):
            if error := reported_in(item):
                raise_reported(error)
            raise _not_of_messages(item)
        why = field(field(item, "stop_details"), "explanation")
        piece = _end(item, field(item, "stop_reason"), why)
        items: list[Item] = []
        for index, block in enumerate(content):
            more, begun = self._begin({**_START, "index": index, "content_block": block})
            piece.text, piece.reasoning = piece.text + more.text, piece.reasoning + more.reasoning
            items += (*begun, *self._finish(index))
        return piece, tuple(items)


_UNSIGNED = ReasoningItem("", {})
_START = {"type": "content_block_start"}
_OF_BLOCKS = ("input_json_delta", "signature_delta")


def _end(item: object, reason: object, why: object) -> Piece:
    if reason == "pause_turn":
        raise ModelError(
            "expected a whole reply from the model: got one that its service has paused for tools "
            "of its own; pass no such tools to as_model"
        )
    piece = Piece(usage=read_usage(field(item, "usage")))
    return check_end(piece, "end_turn" if reason == "tool_use" else reason, why)


def _items_in(piece: Piece) -> tuple[Item, ...]:
    items: list[Item] = [ReasoningItem(piece.reasoning)] if piece.reasoning else []
    return (*items, TextItem(piece.text)) if piece.text else tuple(items)


def _reasoning_end(name: str, value: object) -> ReasoningItem:
    data: Data = {SERVICE: {name: value}}
    return ReasoningItem("", data)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _not_of_messages(item: object) -> ModelError:
    return ModelError(
        "expected a message of Anthropic's API, or an event of one, from the client: got "
        f"{quote_body(item)}; pass client.messages.create to as_model"
    )
