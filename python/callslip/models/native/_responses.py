"""Requests with tools, and replies with tool calls, of OpenAI's responses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from callslip.errors import ModelError
from callslip.models._blocks import text_of
from callslip.models._events import read_event, response_end
from callslip.models._fields import field
from callslip.models._finish_reasons import quote_body, raise_reported, reported_in
from callslip.models._items import CallItem, Item, ReasoningItem, TextItem, ToolForm
from callslip.models._part_shapes import Shapes
from callslip.models._piece import Piece
from callslip.models.native._asking import refusal_of
from callslip.models.native._last_call import LastCall
from callslip.models.native._placed_parts import placed_parts
from callslip.models.native._reply import Offer
from callslip.models.native._turns import Call, Reasoning, Result, Text, Turn

__all__ = [
    "ENCRYPTED",
    "SERVICE",
    "ResponsesReader",
    "input_of",
    "refuses_encryption",
    "refuses_reasoning",
    "tool_fields",
]

SERVICE: Final = "responses"
ENCRYPTED: Final = "reasoning.encrypted_content"
_UNENCRYPTED = re.compile(r"encrypted content is not supported", re.IGNORECASE)
_STALE = re.compile(
    r"encrypted.content|without its required|item with id .{0,80} not found|duplicate item",
    re.IGNORECASE,
)


def tool_fields(offer: Offer) -> dict[str, object]:
    """Return the fields of a request that hold the tools."""
    if not offer.tools:
        return {}
    choice = offer.choice
    fields: dict[str, object] = {
        "tools": [_tool(form) for form in offer.tools],
        "tool_choice": {"type": "function", "name": choice.tool}
        if choice.mode == "required" and choice.tool
        else choice.mode,
    }
    if not choice.parallel:
        fields["parallel_tool_calls"] = False
    return fields


def refuses_encryption(error: Exception) -> bool:
    """Whether the model has no reasoning that could be sent back, and asking for it is refused."""
    return _UNENCRYPTED.search(refusal_of(error)) is not None


def refuses_reasoning(error: Exception) -> bool:
    """Whether the service refuses the reasoning of earlier turns, as after they were shortened."""
    return _STALE.search(refusal_of(error)) is not None


def _tool(form: ToolForm) -> dict[str, Any]:
    # The default of the service is true, and it would refuse schemas that are wider.
    return {
        "type": "function",
        "name": form.name,
        "description": form.description,
        "parameters": dict(form.parameters),
        "strict": form.strict is True,
    }


def input_of(turns: list[Turn], shapes: Shapes) -> list[dict[str, Any]]:
    """Return the items of a request's `input`.

    The service refuses the id of a call without the reasoning before it, and a repeated id. Both
    are left out.
    """
    items: list[dict[str, Any]] = []
    used: set[str] = set()
    for turn in turns:
        if turn.role == "assistant":
            items += _own_items(turn, used)
        else:
            items += _told_items(turn, shapes)
    return items


def _own_items(turn: Turn, used: set[str]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for item in turn.items:
        if isinstance(item, Text):
            items.append({"role": "assistant", "content": item.text})
        elif isinstance(item, Reasoning) and item.data is not None:
            if item.data["id"] not in used:
                used.add(item.data["id"])
                items.append(_reasoning(item))
        elif isinstance(item, Call):
            called = {"type": "function_call", "call_id": item.id, "name": item.tool}
            own = item.data or {}
            is_paired = own.get("after") is None or own["after"] in used
            if own.get("id") and is_paired and own["id"] not in used:
                used.add(own["id"])
                called["id"] = own["id"]
            items.append({**called, "arguments": item.arguments})
    # The service refuses reasoning at the end of a turn.
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _reasoning(item: Reasoning) -> dict[str, Any]:
    data = item.data
    sent: dict[str, Any] = {"type": "reasoning", "id": data["id"], "summary": []}
    for name, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        at, texts = 0, []
        for length in data.get(name, ()):
            texts.append({"type": kind, "text": item.text[at : at + length]})
            at += length
        if texts:
            sent[name] = texts
    if "encrypted_content" in data:
        sent["encrypted_content"] = data["encrypted_content"]
    return sent


def _told_items(turn: Turn, shapes: Shapes) -> list[dict[str, Any]]:
    inside, behind = placed_parts(turn, shapes, _input_text)
    items: list[dict[str, Any]] = []
    texts: list[str] = []
    for item in turn.items:
        if isinstance(item, Text):
            texts.append(item.text)
        elif isinstance(item, Result):
            told: Any = f"error: {item.content}" if item.error else item.content
            if item.id in inside:
                told = [_input_text(told), *inside[item.id]]
            items.append({"type": "function_call_output", "call_id": item.id, "output": told})
    if behind:
        blocks = [*map(_input_text, texts), *behind]
        items.append({"role": turn.role, "content": blocks})
    elif texts:
        items.append({"role": turn.role, "content": "\n\n".join(texts)})
    return items


def _input_text(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


@dataclass(slots=True)
class _Open:
    """An item of a reply that has begun.

    Attributes:
        call: Which call of the reply it is; -1 for another item.
        said: Its text or arguments so far.
        told: The kind of event with its reasoning. Events of another kind are not read.
    """

    call: int = -1
    said: str = ""
    told: str = ""


class ResponsesReader:
    """Reads one reply: a whole response, or the events of its stream."""

    __slots__ = ("_calls", "_last", "_last_reasoning", "_open", "_refused")

    def __init__(self) -> None:
        self._open: dict[object, _Open] = {}
        self._calls = 0
        self._last_reasoning: object = None
        self._refused = False
        self._last = LastCall()

    def take(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        """Read a response or an event. As of `NativeReader`."""
        piece, items = self._read(item, whole=whole)
        return piece, self._last.held(items, piece)

    def _read(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        kind = field(item, "type")
        if whole or (field(item, "object") == "response" and kind is None):
            return self._read_response(item)
        if not isinstance(kind, str):
            raise _no_response(item)
        index = field(item, "output_index")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            response = field(item, "response")
            # Some servers give the items only here.
            return (response_end(response), ()) if self._open else self._read_response(response)
        if kind == "response.output_item.added":
            return Piece(is_service=True), self._begin(index, field(item, "item"))
        if kind == "response.output_item.done":
            return self._finish(index, field(item, "item"))
        if kind == "response.function_call_arguments.delta":
            return Piece(is_service=True), self._more(index, text_of(field(item, "delta")))
        piece = read_event(item)
        if piece is None:
            return Piece(), ()
        self._refused = self._refused or bool(piece.refusal)
        return piece, self._items_in(index, kind, piece)

    def _begin(self, index: object, item: object) -> tuple[Item, ...]:
        begun = self._open[index] = _Open()
        if field(item, "type") != "function_call":
            return ()
        begun.call, begun.said = self._calls, text_of(field(item, "arguments"))
        self._calls += 1
        name, tool = text_of(field(item, "call_id")), text_of(field(item, "name"))
        return (CallItem(begun.call, name, tool, begun.said),)

    def _more(self, index: object, arguments: str) -> tuple[Item, ...]:
        begun = self._open.get(index)
        if begun is None or begun.call < 0 or not arguments:
            return ()
        begun.said += arguments
        return (CallItem(begun.call, arguments=arguments),)

    def _items_in(self, index: object, kind: str, piece: Piece) -> tuple[Item, ...]:
        if not (piece.reasoning or piece.text):
            return ()
        begun = self._open.setdefault(index, _Open())
        if piece.reasoning:
            begun.told = begun.told or kind
            if begun.told != kind:
                return ()
            begun.said += piece.reasoning
            return (ReasoningItem(piece.reasoning),)
        begun.said += piece.text
        return (TextItem(piece.text),)

    def _finish(self, index: object, item: object) -> tuple[Piece, tuple[Item, ...]]:
        """Read a whole item, and return the rest of it."""
        begun = self._open.get(index)
        first = () if begun is not None else self._begin(index, item)
        begun = self._open[index]
        piece, kind = Piece(is_service=True), field(item, "type")
        if kind == "function_call":
            rest = _rest(text_of(field(item, "arguments")), begun.said)
            own = {"id": field(item, "id"), "after": self._last_reasoning}
            data = {SERVICE: {name: value for name, value in own.items() if value}}
            is_whole = field(item, "status") != "incomplete"
            call = CallItem(begun.call, "", "", rest, data if data[SERVICE] else None, is_whole)
            return piece, (*first, call)
        if kind == "reasoning":
            self._last_reasoning = field(item, "id")
            return piece, _reasoning_end(item, begun)
        if kind == "message":
            content = field(item, "content")
            piece.text = _rest(text_of(content), begun.said)
            piece.refusal = "" if self._refused else text_of(content, kind="refusal")
        return piece, (TextItem(piece.text),) if piece.text else ()

    def _read_response(self, item: object) -> tuple[Piece, tuple[Item, ...]]:
        output = field(item, "output")
        if not isinstance(output, (list, tuple)):
            if error := reported_in(item):
                raise_reported(error)
            raise _no_response(item)
        piece, items = response_end(item), list[Item]()
        for index, one in enumerate(output):
            more, found = self._finish(index, one)
            piece.text, piece.refusal = piece.text + more.text, piece.refusal + more.refusal
            items += found
        return piece, tuple(items)


def _rest(whole: str, said: str) -> str:
    """Return the rest of a text after its beginning."""
    return whole[len(said) :] if whole.startswith(said) else ""


def _reasoning_end(item: object, begun: _Open) -> tuple[Item, ...]:
    """Return the end of an item of reasoning, with its data."""
    said, parts = begun.said, {name: _texts(field(item, name)) for name in ("content", "summary")}
    # Models that hide their reasoning return a summary instead.
    name = "content" if parts["content"] and "summary" not in begun.told else "summary"
    rest = _rest("".join(parts[name]), said)
    own: dict[str, Any] = {"id": field(item, "id")}
    encrypted = field(item, "encrypted_content")
    if encrypted:
        own["encrypted_content"] = encrypted
    if "".join(parts[name]) == said + rest and parts[name]:
        own[name] = [len(text) for text in parts[name]]
    # A service without stored replies cannot read the id alone.
    can_return = own["id"] and (encrypted or name == "content")
    if not (said or rest or can_return):
        return ()
    return (ReasoningItem(rest, {SERVICE: own} if can_return else {}),)


def _texts(blocks: object) -> list[str]:
    found: Sequence[object] = blocks if isinstance(blocks, (list, tuple)) else ()
    return [text_of(field(block, "text")) for block in found]


def _no_response(item: object) -> ModelError:
    return ModelError(
        "expected a response of OpenAI's API, or an event of one, from the client: got "
        f"{quote_body(item)}; pass client.responses.create to as_model"
    )
