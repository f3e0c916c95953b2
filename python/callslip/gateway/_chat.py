"""The face of OpenAI's chat completions."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from callslip._base.json import to_json
from callslip.gateway._asked import Answered, Asked, Piece
from callslip.gateway._conversation import Conversation, Said
from callslip.gateway._fields import check_left_out, flag, listed, mapping, refusal, text, whole
from callslip.gateway._openai import (
    answer_schema,
    chosen,
    error_body,
    options_of,
    reported_call,
)
from callslip.gateway._parts import part_of_base64, part_of_url
from callslip.gateway._refused import Refused
from callslip.gateway._tools import checked_form, tools_of
from callslip.models import ToolForm
from callslip.parts import File

__all__ = ["ChatExchange"]

_LEFT_OUT = {
    "functions": "pass them as tools",
    "function_call": "pass tool_choice",
    "logprobs": "leave it out: a text protocol has none",
    "top_logprobs": "leave it out: a text protocol has none",
    "audio": "leave it out: answers are text",
    "prediction": "leave it out",
    "web_search_options": "leave it out: nothing is searched",
}
_USED = frozenset(
    {
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "parallel_tool_calls",
        "response_format",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)


class ChatExchange:
    """A request for a chat completion, and its answer.

    Args:
        body: The body of the request.

    Raises:
        Refused: It can't be served.
    """

    USED = _USED

    def __init__(self, body: Mapping[str, Any]) -> None:
        check_left_out(body, _LEFT_OUT, (None, False, [], {}))
        if body.get("n") not in (None, 1):
            raise refusal("n", "1", body["n"], "send a request for each answer")
        conversation = Conversation()
        for at, message in enumerate(listed(body.get("messages"), "messages")):
            _add(conversation, mapping(message, f"messages[{at}]"), f"messages[{at}]")
        tools, choice = chosen(
            body.get("tool_choice"),
            tools_of(body.get("tools"), _form),
            body.get("parallel_tool_calls"),
            _named,
        )
        form = body.get("response_format")
        schema = None if form is None else answer_schema(form, "response_format", "json_schema")
        streamed = flag(body.get("stream"), "stream")
        limit = body.get("max_completion_tokens")
        if limit is None:
            limit = body.get("max_tokens")
        self.asked = Asked(
            text(body.get("model", ""), "model"),
            conversation.messages(),
            tools,
            choice,
            schema,
            options_of(body, whole(limit, "max_tokens", 1)),
            streamed,
        )
        stream_options = body.get("stream_options") or {}
        self._counts_too = flag(
            mapping(stream_options, "stream_options").get("include_usage"), "include_usage"
        )
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": self.asked.model,
        }

    def whole(self, answered: Answered) -> dict[str, Any]:
        """Return the chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": answered.text}
        if answered.calls:
            message["content"] = answered.text or None
            message["tool_calls"] = [reported_call(call) for call in answered.calls]
        if answered.reasoning:
            message["reasoning_content"] = answered.reasoning
        message["refusal"] = None
        choice = {"index": 0, "message": message, "finish_reason": answered.finish_reason}
        choice["logprobs"] = None
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": _usage(answered)}

    def begin(self) -> bytes:
        """Return the chunk with the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Piece) -> bytes:
        """Return the chunks for a piece."""
        found = b""
        if piece.reasoning:
            found += self._chunk({"reasoning_content": piece.reasoning})
        if piece.text:
            found += self._chunk({"content": piece.text})
        return found

    def end(self, answered: Answered) -> bytes:
        """Return the chunks of the calls or the rest of the text, and the end."""
        found = self.piece(Piece(answered.rest))
        for at, call in enumerate(answered.calls):
            found += self._chunk({"tool_calls": [{"index": at, **reported_call(call)}]})
        found += self._chunk({}, answered.finish_reason)
        if self._counts_too:
            head = {**self._head, "object": "chat.completion.chunk"}
            found += _data({**head, "choices": [], "usage": _usage(answered)})
        return found + b"data: [DONE]\n\n"

    def fail(self, refused: Refused) -> bytes:
        """Return the error as an event, which ends the stream."""
        return _data(error_body(refused))

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _data({**self._head, "object": "chat.completion.chunk", "choices": [choice]})


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {to_json(value)}\n\n".encode()


def _usage(answered: Answered) -> dict[str, Any]:
    read, written = answered.count("input_tokens"), answered.count("output_tokens")
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": answered.count("cached_tokens")},
    }


def _form(tool: object, place: str) -> ToolForm:
    given = mapping(tool, place)
    if given.get("type", "function") != "function":
        hint = "pass functions: others need their own service"
        raise refusal(f"{place}.type", "'function'", given.get("type"), hint)
    place = f"{place}.function"
    return checked_form(mapping(given.get("function"), place), place, "parameters")


def _named(choice: Mapping[str, Any], place: str) -> object:
    return mapping(choice.get("function"), f"{place}.function").get("name")


def _add(conversation: Conversation, message: Mapping[str, Any], place: str) -> None:
    role = message.get("role")
    said = Said.read(message.get("content"), f"{place}.content", _piece)
    if role in {"system", "developer"}:
        conversation.system(said.text)
    elif role == "user":
        conversation.user(said)
    elif role == "assistant":
        conversation.assistant(said.text)
        calls = listed(message.get("tool_calls"), f"{place}.tool_calls")
        for at, call in enumerate(calls):
            _add_call(conversation, call, f"{place}.tool_calls[{at}]")
    elif role == "tool":
        place = f"{place}.tool_call_id"
        conversation.result(text(message.get("tool_call_id"), place), said, place)
    else:
        roles = "'system', 'developer', 'user', 'assistant' or 'tool'"
        hint = "pass results with the role 'tool'" if role == "function" else ""
        raise refusal(f"{place}.role", roles, role, hint)


def _add_call(conversation: Conversation, call: object, place: str) -> None:
    given = mapping(call, place)
    function = mapping(given.get("function"), f"{place}.function")
    conversation.call(
        text(given.get("id"), f"{place}.id"),
        text(function.get("name"), f"{place}.function.name"),
        text(function.get("arguments") or "", f"{place}.function.arguments"),
        place,
    )


def _piece(given: Mapping[str, Any], here: str) -> str | File:
    kind = given.get("type")
    if kind in {"text", "refusal"}:
        return text(given.get(kind), f"{here}.{kind}")
    if kind == "image_url":
        image = mapping(given.get("image_url"), f"{here}.image_url")
        return part_of_url(image.get("url"), f"{here}.image_url.url")
    if kind == "file":
        file = mapping(given.get("file"), f"{here}.file")
        data, name = file.get("file_data"), file.get("filename")
        known = None if name is None else text(name, f"{here}.file.filename")
        return part_of_url(data, f"{here}.file.file_data", known)
    if kind == "input_audio":
        audio = mapping(given.get("input_audio"), f"{here}.input_audio")
        media = f"audio/{audio.get('format')}"
        return part_of_base64(audio.get("data"), media, f"{here}.input_audio.data")
    raise refusal(f"{here}.type", "'text', 'image_url', 'file' or 'input_audio'", kind)
