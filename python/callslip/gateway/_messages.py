"""The face of Anthropic's messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from callslip._base.json import to_json
from callslip.gateway._asked import Answered, Asked, Piece
from callslip.gateway._conversation import Conversation, Said
from callslip.gateway._fields import (
    check_left_out,
    flag,
    kinds_without,
    listed,
    mapping,
    refusal,
    text,
    whole,
)
from callslip.gateway._parts import part_of_base64
from callslip.gateway._refused import Refused
from callslip.gateway._tools import checked_form, tools_of
from callslip.models import ToolChoice, ToolForm
from callslip.parts import File
from callslip.web._messages import message

__all__ = ["MessagesExchange", "error_body"]

_LEFT_OUT = {
    "mcp_servers": "leave it out: nothing is called for the client",
    "container": "leave it out: nothing is run for the client",
}
_CHOICES = {
    "auto": ToolChoice(),
    "any": ToolChoice("required"),
    "none": ToolChoice("none"),
}
_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "stop": "end_turn"}
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class MessagesExchange:
    """A request for a message, and its answer.

    Args:
        body: The body of the request.

    Raises:
        Refused: It can't be served.
    """

    USED = frozenset(
        {
            "max_tokens",
            "messages",
            "model",
            "output_config",
            "output_format",
            "stop_sequences",
            "stream",
            "system",
            "tool_choice",
            "tools",
        }
    )

    def __init__(self, body: Mapping[str, Any]) -> None:
        check_left_out(body, _LEFT_OUT, (None, [], {}))
        conversation = Conversation()
        conversation.system(Said.read(body.get("system"), "system", _piece).text)
        for at, one in enumerate(listed(body.get("messages"), "messages")):
            _add(conversation, mapping(one, f"messages[{at}]"), f"messages[{at}]")
        tools = tools_of(body.get("tools"), _form)
        options: dict[str, Any] = {}
        limit = whole(body.get("max_tokens"), "max_tokens", 1)
        if limit is not None:
            options["max_tokens"] = limit
        rows = listed(body.get("stop_sequences"), "stop_sequences")
        stop = [text(one, "stop_sequences") for one in rows]
        if any(stop):
            options["stop"] = [one for one in stop if one]
        self.asked = Asked(
            text(body.get("model", ""), "model"),
            conversation.messages(),
            tools,
            _choice(body.get("tool_choice"), tools),
            _schema(body),
            options,
            flag(body.get("stream"), "stream"),
            kinds_without(body, "custom"),
        )
        self._head = {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": self.asked.model,
            "stop_sequence": None,
        }
        # The block that is open, and its place.
        self._kind = ""
        self._at = -1

    def whole(self, answered: Answered) -> dict[str, Any]:
        """Return the message with its blocks."""
        blocks: list[dict[str, Any]] = []
        if answered.reasoning:
            blocks.append({"type": "thinking", "thinking": answered.reasoning, "signature": ""})
        if answered.text or not answered.calls:
            blocks.append({"type": "text", "text": answered.text})
        blocks += [
            {**_block(call.id, call.tool), "input": json.loads(call.arguments)}
            for call in answered.calls
        ]
        end = {**_end(answered), "usage": _usage(answered)}
        return {**self._head, "content": blocks, **end}

    def begin(self) -> bytes:
        """Return the start of the message."""
        usage = {"input_tokens": 0, "output_tokens": 0}
        end: dict[str, Any] = {"content": [], "stop_reason": None, "usage": usage}
        empty = {**self._head, **end}
        return _event("message_start", message=empty)

    def piece(self, piece: Piece) -> bytes:
        """Return the events for a piece."""
        found = b""
        if piece.reasoning:
            found += self._open("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            found += self._delta({"type": "thinking_delta", "thinking": piece.reasoning})
        if piece.text:
            found += self._open("text", {"type": "text", "text": ""})
            found += self._delta({"type": "text_delta", "text": piece.text})
        return found

    def end(self, answered: Answered) -> bytes:
        """Return the rest of the text or the calls, and the end of the message."""
        found = self.piece(Piece(answered.rest))
        if not answered.calls and self._kind != "text":
            found += self._open("text", {"type": "text", "text": ""})
        for call in answered.calls:
            found += self._open(call.id, {**_block(call.id, call.tool), "input": {}})
            found += self._delta({"type": "input_json_delta", "partial_json": call.arguments})
        found += self._close()
        found += _event("message_delta", delta=_end(answered), usage=_usage(answered))
        return found + _event("message_stop")

    def fail(self, refused: Refused) -> bytes:
        """Return the error as an event, which ends the stream."""
        return _event(**error_body(refused))

    def _open(self, kind: str, block: dict[str, Any]) -> bytes:
        """Return the start of a block, unless this kind of block is open."""
        if kind == self._kind:
            return b""
        found = self._close()
        self._kind = kind
        self._at += 1
        return found + _event("content_block_start", index=self._at, content_block=block)

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        self._kind = ""
        return _event("content_block_stop", index=self._at)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._at, delta=delta)


def error_body(refused: Refused) -> dict[str, Any]:
    """Return the body of an error."""
    kind = "api_error" if refused.status >= 500 else "invalid_request_error"
    error = {"type": _TYPES.get(refused.status, kind), "message": refused.message}
    return {"type": "error", "error": error}


def _event(type: str, **fields: Any) -> bytes:  # noqa: A002  # the name of the field
    return message(type, to_json({"type": type, **fields}))


def _block(own: str, tool: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": own, "name": tool}


def _end(answered: Answered) -> dict[str, Any]:
    reason = _REASONS[answered.finish_reason]
    if answered.stopped_at is not None:
        reason = "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": answered.stopped_at}


def _usage(answered: Answered) -> dict[str, Any]:
    cached = answered.count("cached_tokens")
    return {
        # Here the input without its cached part.
        "input_tokens": answered.count("input_tokens") - cached,
        "output_tokens": answered.count("output_tokens"),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
    }


def _form(tool: object, place: str) -> ToolForm | None:
    given = mapping(tool, place)
    if given.get("type", "custom") != "custom":
        return None
    mapping(given.get("input_schema"), f"{place}.input_schema")
    return checked_form(given, place, "input_schema")


def _choice(choice: object, tools: tuple[ToolForm, ...]) -> ToolChoice:
    if choice is None:
        return ToolChoice()
    given = mapping(choice, "tool_choice")
    several = not flag(given.get("disable_parallel_tool_use"), "disable_parallel_tool_use")
    kind = given.get("type")
    if kind == "tool":
        name = text(given.get("name"), "tool_choice.name")
        if all(one.name != name for one in tools):
            raise refusal("tool_choice.name", "the name of a tool of the request", name)
        return ToolChoice("required", name, several)
    if kind not in _CHOICES:
        raise refusal("tool_choice.type", "'auto', 'any', 'tool' or 'none'", kind)
    return replace(_CHOICES[kind], parallel=several)


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    config = mapping(body.get("output_config") or {}, "output_config")
    form = config.get("format") or body.get("output_format")
    if form is None:
        return None
    given = mapping(form, "output_config.format")
    if given.get("type") != "json_schema":
        raise refusal("output_config.format.type", "'json_schema'", given.get("type"))
    return mapping(given.get("schema"), "output_config.format.schema")


def _add(conversation: Conversation, given: Mapping[str, Any], place: str) -> None:
    role = given.get("role")
    place = f"{place}.content"
    if role == "system":
        conversation.system(Said.read(given.get("content"), place, _piece).text)
    elif role == "user":
        _add_user(conversation, given.get("content"), place)
    elif role == "assistant":
        _add_reply(conversation, given.get("content"), place)
    else:
        raise refusal(place.removesuffix("content") + "role", "'user' or 'assistant'", role)


def _add_user(conversation: Conversation, content: object, place: str) -> None:
    if isinstance(content, str):
        conversation.user(Said(text(content, place)))
        return
    rest: list[Any] = []
    for at, one in enumerate(listed(content, place)):
        here = f"{place}[{at}]"
        block = mapping(one, here)
        if block.get("type") != "tool_result":
            rest.append(block)
            continue
        own = text(block.get("tool_use_id"), f"{here}.tool_use_id")
        said = Said.read(block.get("content"), f"{here}.content", _piece)
        failed = flag(block.get("is_error"), f"{here}.is_error")
        conversation.result(own, said, f"{here}.tool_use_id", failed=failed)
    if rest:
        conversation.user(Said.read(rest, place, _piece))


def _add_reply(conversation: Conversation, content: object, place: str) -> None:
    if isinstance(content, str):
        conversation.assistant(text(content, place))
        return
    for at, one in enumerate(listed(content, place)):
        here = f"{place}[{at}]"
        block = mapping(one, here)
        kind = block.get("type")
        if kind == "text":
            conversation.assistant(text(block.get("text"), f"{here}.text"))
        elif kind == "tool_use":
            arguments = to_json(mapping(block.get("input"), f"{here}.input"))
            own = text(block.get("id"), f"{here}.id")
            conversation.call(own, text(block.get("name"), f"{here}.name"), arguments, here)
        elif kind not in {"thinking", "redacted_thinking"}:
            raise refusal(f"{here}.type", "'text', 'tool_use' or 'thinking'", kind)


def _piece(block: Mapping[str, Any], here: str) -> str | File:
    kind = block.get("type")
    if kind == "text":
        return text(block.get("text"), f"{here}.text")
    if kind in {"image", "document"}:
        return _source(mapping(block.get("source"), f"{here}.source"), f"{here}.source")
    raise refusal(f"{here}.type", "'text', 'image' or 'document'", kind)


def _source(source: Mapping[str, Any], place: str) -> File | str:
    kind = source.get("type")
    if kind == "text":
        return text(source.get("data"), f"{place}.data")
    if kind == "base64":
        return part_of_base64(source.get("data"), source.get("media_type"), f"{place}.data")
    hint = "pass the content: nothing is fetched"
    raise refusal(f"{place}.type", "'base64' or 'text'", kind, hint)
