"""The face of OpenAI's responses."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
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
from callslip.gateway._openai import answer_schema, chosen, options_of
from callslip.gateway._parts import part_of_url
from callslip.gateway._refused import Refused
from callslip.gateway._tools import checked_form, tools_of
from callslip.models import ToolForm
from callslip.models._items import CallItem
from callslip.parts import File
from callslip.web._messages import message

__all__ = ["ResponsesExchange"]

_LEFT_OUT = {
    "previous_response_id": "send the whole conversation: nothing is kept",
    "conversation": "send the whole conversation: nothing is kept",
    "background": "leave it out: the answer comes with the request",
    "prompt": "send its text",
    "top_logprobs": "leave it out: a text protocol has none",
}
_ECHOED = ("instructions", "metadata", "tool_choice", "tools", "text", "reasoning", "temperature")


class ResponsesExchange:
    """A request for a response, and its answer.

    Args:
        body: The body of the request.

    Raises:
        Refused: It can't be served.
    """

    USED = frozenset(
        {
            "input",
            "instructions",
            "max_output_tokens",
            "model",
            "parallel_tool_calls",
            "seed",
            "stream",
            "text",
            "tool_choice",
            "tools",
        }
    )

    def __init__(self, body: Mapping[str, Any]) -> None:
        check_left_out(body, _LEFT_OUT, (None, False, 0))
        conversation = Conversation()
        conversation.system(text(body.get("instructions") or "", "instructions"))
        _add_input(conversation, body.get("input"))
        tools, choice = chosen(
            body.get("tool_choice"),
            tools_of(body.get("tools"), _form),
            body.get("parallel_tool_calls"),
            lambda given, _: given.get("name"),
        )
        form = mapping(body.get("text") or {}, "text").get("format")
        self.asked = Asked(
            text(body.get("model", ""), "model"),
            conversation.messages(),
            tools,
            choice,
            None if form is None else answer_schema(form, "text.format", None),
            options_of(body, whole(body.get("max_output_tokens"), "max_output_tokens", 1)),
            flag(body.get("stream"), "stream"),
            kinds_without(body, "function"),
        )
        self._head: dict[str, Any] = {
            "tool_choice": "auto",
            "tools": [],
            "metadata": {},
            **{key: body[key] for key in _ECHOED if body.get(key) is not None},
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "model": self.asked.model,
            "parallel_tool_calls": choice.parallel,
            "error": None,
        }
        self._number = -1
        self._done: list[dict[str, Any]] = []
        # The item that is being sent, and its text so far.
        self._item: dict[str, Any] | None = None
        self._text: list[str] = []

    def whole(self, answered: Answered) -> dict[str, Any]:
        """Return the response with its items."""
        output: list[dict[str, Any]] = []
        if answered.reasoning:
            output.append(_reasoning(answered.reasoning))
        if answered.text or not answered.calls:
            output.append(_message(answered.text, is_cut=answered.is_cut))
        return self._response(answered, [*output, *map(_call, answered.calls)])

    def begin(self) -> bytes:
        """Return the start of the response."""
        empty = {**self._head, "status": "in_progress", "output": [], "incomplete_details": None}
        created = self._event("response.created", response=empty)
        return created + self._event("response.in_progress", response=empty)

    def piece(self, piece: Piece) -> bytes:
        """Return the events for a piece."""
        found = b""
        if piece.reasoning:
            found += self._open(_reasoning(""))
            found += self._delta("reasoning_summary_text", piece.reasoning, summary_index=0)
        if piece.text:
            found += self._open(_message(""))
            found += self._delta("output_text", piece.text, content_index=0, logprobs=[])
        return found

    def end(self, answered: Answered) -> bytes:
        """Return the rest of the text or the calls, and the end of the response."""
        found = self.piece(Piece(answered.rest))
        if not answered.calls:
            found += self._open(_message(""))
        found += self._close(is_cut=answered.is_cut)
        for call in answered.calls:
            found += self._whole_call(_call(call))
        response = self._response(answered, self._done)
        kind = "response.incomplete" if answered.is_cut else "response.completed"
        return found + self._event(kind, response=response)

    def fail(self, refused: Refused) -> bytes:
        """Return the failed response, which ends the stream."""
        error = {"code": refused.code, "message": refused.message}
        failed = {**self._head, "status": "failed", "output": self._done, "error": error}
        return self._event("response.failed", response={**failed, "incomplete_details": None})

    def _response(self, answered: Answered, output: list[dict[str, Any]]) -> dict[str, Any]:
        details = {"reason": "max_output_tokens"} if answered.is_cut else None
        return {
            **self._head,
            "status": "incomplete" if answered.is_cut else "completed",
            "incomplete_details": details,
            "output": output,
            "usage": _usage(answered),
        }

    def _open(self, item: dict[str, Any]) -> bytes:
        """Return the start of an item, unless one of this kind is open."""
        if self._item is not None and self._item["type"] == item["type"]:
            return b""
        found = self._close()
        self._item, self._text = item, []
        content = "summary" if item["type"] == "reasoning" else "content"
        begun = {**item, "status": "in_progress", content: []}
        found += self._event("response.output_item.added", output_index=len(self._done), item=begun)
        return found + self._part("added", item[content][0])

    def _delta(self, kind: str, piece: str, **place: Any) -> bytes:
        assert self._item is not None
        self._text.append(piece)
        own = {"item_id": self._item["id"], "output_index": len(self._done)}
        return self._event(f"response.{kind}.delta", **own, **place, delta=piece)

    def _close(self, *, is_cut: bool = False) -> bytes:
        """Return the end of the open item."""
        if self._item is None:
            return b""
        whole_text = "".join(self._text)
        is_reasoning = self._item["type"] == "reasoning"
        own = {"item_id": self._item["id"], "output_index": len(self._done), "text": whole_text}
        if is_reasoning:
            done = {**_reasoning(whole_text), "id": self._item["id"]}
            found = self._event("response.reasoning_summary_text.done", **own, summary_index=0)
            found += self._part("done", done["summary"][0])
        else:
            done = {**_message(whole_text, is_cut=is_cut), "id": self._item["id"]}
            found = self._event("response.output_text.done", **own, content_index=0, logprobs=[])
            found += self._part("done", done["content"][0])
        found += self._event("response.output_item.done", output_index=len(self._done), item=done)
        self._done.append(done)
        self._item = None
        return found

    def _part(self, kind: str, part: dict[str, Any]) -> bytes:
        assert self._item is not None
        is_reasoning = self._item["type"] == "reasoning"
        name = "reasoning_summary_part" if is_reasoning else "content_part"
        index = {"summary_index" if is_reasoning else "content_index": 0}
        own = {"item_id": self._item["id"], "output_index": len(self._done)}
        return self._event(f"response.{name}.{kind}", **own, **index, part=part)

    def _whole_call(self, call: dict[str, Any]) -> bytes:
        at = len(self._done)
        own = {"item_id": call["id"], "output_index": at}
        begun = {**call, "arguments": "", "status": "in_progress"}
        arguments = call["arguments"]
        self._done.append(call)
        return b"".join(
            (
                self._event("response.output_item.added", output_index=at, item=begun),
                self._event("response.function_call_arguments.delta", **own, delta=arguments),
                self._event(
                    "response.function_call_arguments.done",
                    **own,
                    name=call["name"],
                    arguments=arguments,
                ),
                self._event("response.output_item.done", output_index=at, item=call),
            )
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        row = {"type": kind, "sequence_number": self._number, **fields}
        return message(kind, to_json(row))


def _message(written: str, *, is_cut: bool = False) -> dict[str, Any]:
    part = {"type": "output_text", "text": written, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": f"msg_{uuid.uuid4().hex}",
        "role": "assistant",
        "status": "incomplete" if is_cut else "completed",
        "content": [part],
    }


def _reasoning(written: str) -> dict[str, Any]:
    part = {"type": "summary_text", "text": written}
    return {"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": [part]}


def _call(call: CallItem) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{uuid.uuid4().hex}",
        "call_id": call.id,
        "name": call.tool,
        "arguments": call.arguments,
        "status": "completed",
    }


def _usage(answered: Answered) -> dict[str, Any]:
    read, written = answered.count("input_tokens"), answered.count("output_tokens")
    return {
        "input_tokens": read,
        "input_tokens_details": {
            "cached_tokens": answered.count("cached_tokens"),
            "cache_write_tokens": 0,
        },
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


def _form(tool: object, place: str) -> ToolForm | None:
    given = mapping(tool, place)
    if given.get("type") != "function":
        return None
    return checked_form(given, place, "parameters")


def _add_input(conversation: Conversation, items: object) -> None:
    if isinstance(items, str):
        conversation.user(Said(text(items, "input")))
        return
    for at, one in enumerate(listed(items, "input")):
        place = f"input[{at}]"
        item = mapping(one, place)
        kind = item.get("type", "message")
        if kind == "message":
            _add_message(conversation, item, place)
        elif kind == "function_call":
            conversation.call(
                text(item.get("call_id"), f"{place}.call_id"),
                text(item.get("name"), f"{place}.name"),
                text(item.get("arguments") or "", f"{place}.arguments"),
                place,
            )
        elif kind == "function_call_output":
            _add_result(conversation, item, place)
        elif kind != "reasoning":
            kinds = "'message', 'function_call', 'function_call_output' or 'reasoning'"
            hint = "pass these: tools of the service were not called, and nothing is kept"
            raise refusal(f"{place}.type", kinds, kind, hint)


def _add_result(conversation: Conversation, item: Mapping[str, Any], place: str) -> None:
    said = Said.read(item.get("output"), f"{place}.output", _piece)
    if item.get("call_id") is None:
        # Codex sends facts for the model as results without a call.
        name = text(item.get("name") or "result", f"{place}.name")
        conversation.user(Said(f"{name}: {said.text}", said.parts))
        return
    own = text(item.get("call_id"), f"{place}.call_id")
    conversation.result(own, said, f"{place}.call_id")


def _add_message(conversation: Conversation, item: Mapping[str, Any], place: str) -> None:
    role = item.get("role")
    said = Said.read(item.get("content"), f"{place}.content", _piece)
    if role in {"system", "developer"}:
        conversation.system(said.text)
    elif role == "user":
        conversation.user(said)
    elif role == "assistant":
        conversation.assistant(said.text)
    else:
        roles = "'system', 'developer', 'user' or 'assistant'"
        raise refusal(f"{place}.role", roles, role)


def _piece(given: Mapping[str, Any], here: str) -> str | File:
    kind = given.get("type")
    if kind in {"input_text", "output_text", "text", "refusal"}:
        key = "refusal" if kind == "refusal" else "text"
        return text(given.get(key), f"{here}.{key}")
    if kind == "input_image":
        return part_of_url(given.get("image_url"), f"{here}.image_url")
    if kind == "input_file":
        name = given.get("filename")
        known = None if name is None else text(name, f"{here}.filename")
        return part_of_url(given.get("file_data"), f"{here}.file_data", known)
    raise refusal(f"{here}.type", "'input_text', 'input_image' or 'input_file'", kind)
