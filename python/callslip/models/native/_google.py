"""Gemini's `generateContent` with tools: calls are objects, mostly without ids."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from callslip.errors import ModelError, UsageError
from callslip.models._fields import field, first_field
from callslip.models._finish_reasons import quote_body
from callslip.models._gemini_bedrock import candidate_of, parts_of, read_gemini, refused_call
from callslip.models._items import CallItem, Data, FaultItem, Item, ReasoningItem, TextItem
from callslip.models._part_shapes import GOOGLE, blocks_of
from callslip.models._piece import Piece
from callslip.models._reply import Messages
from callslip.models._turns import OPENING
from callslip.models.native._reply import Offer
from callslip.models.native._turns import Call, Reasoning, Result, Text, Turn, system_of, turns_of

__all__ = ["GoogleReader", "add_tools", "contents_of"]

_SERVICE = "gemini"
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_UNCHECKED = b"skip_thought_signature_validator"
"""The signature of a call that Gemini has not made: Gemini 3 refuses the first call of a step
without one. https://ai.google.dev/gemini-api/docs/thought-signatures"""
_MALFORMED = "Malformed function call: "


def add_tools(config: dict[str, Any], offer: Offer) -> None:
    """Add the tools of a run to the `config` of a request.

    Raises:
        UsageError: There are tools of the program's in it.
    """
    for name in ("tools", "tool_config"):
        if name in config:
            raise UsageError(
                f"expected no {name} beside the tools of the agent: got {name}=; leave it out"
            )
    if not offer.tools:
        return
    declared = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters_json_schema": tool.parameters,
        }
        for tool in offer.tools
    ]
    calling: dict[str, Any] = {"mode": _MODES[offer.choice.mode]}
    if offer.choice.mode == "required" and offer.choice.tool is not None:
        calling["allowed_function_names"] = [offer.choice.tool]
    config["tools"] = [{"function_declarations": declared}]
    config["tool_config"] = {"function_calling_config": calling}
    # The client would call functions itself.
    config.setdefault("automatic_function_calling", {"disable": True})


# ---- the conversation


def contents_of(messages: Messages) -> tuple[str, list[dict[str, Any]]]:
    """Return the system text and the contents of a request with tools."""
    contents: list[dict[str, Any]] = []
    # The ids from Gemini, by the ids in the turns.
    given: dict[str, str] = {}
    turns = turns_of(messages, _SERVICE)
    for turn in turns:
        if turn.role == "assistant":
            if not contents:
                contents.append({"role": "user", "parts": [{"text": OPENING}]})
            _add(contents, "model", _own_parts(turn, given))
        elif turn.role == "user":
            results = [item for item in turn.items if isinstance(item, Result)]
            _add(contents, "user", [_result_part(item, given) for item in results])
            _add(contents, "user", _user_parts(turn))
    return system_of(turns), contents


def _add(contents: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> None:
    """Add the parts of a turn, to the content before if that is of the same role.

    Function responses stay in a content of their own.
    """
    last: dict[str, Any] = contents[-1] if contents else {"role": None, "parts": ()}
    is_open = not any("function_response" in part for part in (*last["parts"], *parts))
    if last["role"] == role and is_open:
        last["parts"] += parts
    elif parts:
        contents.append({"role": role, "parts": parts})


def _result_part(result: Result, given: dict[str, str]) -> dict[str, Any]:
    told = {"error" if result.error else "result": result.content}
    answer: dict[str, Any] = {"name": result.tool, "response": told}
    if result.id in given:
        answer["id"] = given[result.id]
    return {"function_response": answer}


def _user_parts(turn: Turn) -> list[dict[str, Any]]:
    """Return the texts of the user, then the images and files."""
    texts = [{"text": item.text} for item in turn.items if isinstance(item, Text)]
    return texts + blocks_of({**turn.message, "content": ""}, GOOGLE, lambda text: {"text": text})


def _own_parts(turn: Turn, given: dict[str, str]) -> list[dict[str, Any]]:
    """Return the parts of the model. Reasoning without a signature is not sent back."""
    parts: list[dict[str, Any]] = []
    is_first = True
    for item in turn.items:
        if isinstance(item, Text):
            parts.append({"text": item.text})
        elif isinstance(item, Reasoning) and item.data:
            _add_signed(parts, item)
        elif isinstance(item, Call):
            parts.append(_call_part(item, given, is_first=is_first))
            is_first = False
    return parts


def _add_signed(parts: list[dict[str, Any]], item: Reasoning) -> None:
    """Add a thought with its signature, or give the text before it its signature.

    Gemini refuses signatures on joined parts. The signature is put on as many of the last
    characters as it came with: in a stream, mostly on an empty part.
    """
    signature = base64.b64decode(item.data["thoughtSignature"])
    mark = {"thought": True} if item.data.get("thought") else {}
    words = item.text if mark else ""
    if not mark and parts and parts[-1].keys() == {"text"}:
        words = parts.pop()["text"]
    at = max(len(words) - item.data["length"], 0)
    if at:
        parts.append({"text": words[:at], **mark})
    parts.append({"text": words[at:], **mark, "thought_signature": signature})


def _call_part(call: Call, given: dict[str, str], *, is_first: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"name": call.tool, "args": call.object}
    part: dict[str, Any] = {"function_call": made}
    if call.data is None:
        # Another service made the call, or its signature is lost.
        return {**part, "thought_signature": _UNCHECKED} if is_first else part
    if "id" in call.data:
        made["id"] = given[call.id] = call.data["id"]
    if "thoughtSignature" in call.data:
        part["thought_signature"] = base64.b64decode(call.data["thoughtSignature"])
    return part


# ---- the reply


class GoogleReader:
    """Reads the responses or chunks of one reply."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls = 0

    def take(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        """Read a response or a chunk, which have the same shape.

        Raises:
            ModelError: It is neither, or Gemini lacks a signature.
        """
        del whole
        piece = read_gemini(item, takes_calls=True)
        if piece is None:
            raise ModelError(
                f"expected a response of Gemini: got {quote_body(item)}; pass the client of "
                "google-genai"
            )
        return piece, tuple(self._items(item))

    def _items(self, item: object) -> Iterator[Item]:
        for part in parts_of(item):
            call = first_field(part, "function_call", "functionCall")
            data: dict[str, Any] = _signature_of(part)
            if call is not None:
                yield self._call(call, data)
                continue
            words = field(part, "text")
            text = words if isinstance(words, str) else ""
            is_thought = field(part, "thought") is True
            if data:
                data |= {"length": len(text), **({"thought": True} if is_thought else {})}
            if text and not is_thought:
                yield TextItem(text)
            if data or is_thought:
                yield ReasoningItem(text if is_thought else "", {_SERVICE: data} if data else None)
        fault = refused_call(candidate_of(item))
        if fault is not None:
            yield _fault(*fault)

    def _call(self, call: object, signature: dict[str, str]) -> CallItem:
        args, name, given = field(call, "args"), field(call, "name"), field(call, "id")
        made = {} if args is None else args
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
        # An empty object still says that Gemini made the call.
        data: Data = {_SERVICE: {**({"id": given} if given else {}), **signature}}
        index, self._calls = self._calls, self._calls + 1
        tool = name if isinstance(name, str) else ""
        return CallItem(index, "", tool, text, data, is_whole=True)


def _signature_of(part: object) -> dict[str, str]:
    """Return the signature of a part as the service writes it; empty if it has none."""
    signature = first_field(part, "thought_signature", "thoughtSignature")
    if isinstance(signature, bytes):
        signature = base64.b64encode(signature).decode()
    return {"thoughtSignature": signature} if isinstance(signature, str) and signature else {}


def _fault(reason: str, told: str) -> FaultItem:
    if told.startswith(_MALFORMED):
        return FaultItem(reason, told.removeprefix(_MALFORMED))
    return FaultItem(f"{reason}: {told}" if told else reason)
