"""OpenAI's responses on this machine: their answers and refusals.

Sources: platform.openai.com/docs (responses, function calling, reasoning), and the words of
refusals from pydantic-ai#2861 and #3230, vercel/ai#7543, hermes-agent#24234 and codex#8128.
"""

from __future__ import annotations

import json
import re
from typing import Any

from services.loopback import Event, Item, Loopback, RefusedError, Reply

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SHAPES: dict[str, tuple[set[str], set[str]]] = {
    # The fields that each kind of item needs, and those that it may have.
    "function_call": ({"type", "call_id", "name", "arguments"}, {"id", "status"}),
    "function_call_output": ({"type", "call_id", "output"}, {"id", "status"}),
    "reasoning": ({"type", "summary"}, {"id", "encrypted_content", "content", "status"}),
    "message": ({"role", "content"}, {"type"}),
}


class ResponsesService(Loopback):
    """The service.

    Attributes:
        unbound: Whether it refuses all earlier reasoning, as after a change of the key.
        reasons: Whether the model has reasoning that can be encrypted.
    """

    unbound = False
    reasons = True

    def begin(self, *script: Reply, split: int = 3, mixed: bool = False) -> None:
        super().begin(*script, split=split, mixed=mixed)
        self.unbound, self.reasons = False, True
        # The reasoning before each call.
        self._behind: dict[str, str] = {}
        self._made = 0

    def error(self, words: str) -> Event:
        told = {"message": words, "type": "invalid_request_error", "param": None, "code": None}
        return {"error": told}

    def check(self, body: dict[str, Any]) -> None:
        if not self.reasons and "reasoning.encrypted_content" in body.get("include", []):
            raise RefusedError("Encrypted content is not supported with this model.")
        names = []
        for tool in body.get("tools") or []:
            wanted = {"type", "name", "description", "parameters", "strict"}
            _require(tool.keys() == wanted, "Missing required parameter: 'tools[0]'.")
            _require(bool(_NAME.fullmatch(tool["name"])), "Invalid 'tools[0].name'")
            if tool["strict"]:
                is_closed = tool["parameters"].get("additionalProperties") is False
                _require(is_closed, "Invalid schema: 'additionalProperties' must be false.")
            names.append(tool["name"])
        choice = body.get("tool_choice")
        if isinstance(choice, dict):
            _require(choice.get("name") in names, "Tool choice 'function' not found in 'tools'")
        self._check_input(body)

    def _check_input(self, body: dict[str, Any]) -> None:
        asked: list[str] = []
        answered: list[str] = []
        ids: list[str] = []
        last = None
        for item in body["input"]:
            kind = item.get("type", "message")
            needed, also = _SHAPES[kind]
            _require(needed <= item.keys() <= needed | also, f"Unknown parameter in {kind}")
            own = item.get("id")
            if last == "reasoning":
                follows = kind in ("function_call", "reasoning") or item.get("role") == "assistant"
                _require(
                    follows,
                    f"Item '{ids[-1]}' of type 'reasoning' was provided without its required "
                    "following item.",
                )
            if kind == "reasoning":
                self._check_reasoning(item, body)
            elif kind == "function_call":
                self._check_call(item, ids)
                asked.append(item["call_id"])
            elif kind == "function_call_output":
                known = item["call_id"] in asked and item["call_id"] not in answered
                _require(known, f"No tool call found for call_id {item['call_id']}.")
                answered.append(item["call_id"])
            if own is not None:
                _require(own not in ids, f"Duplicate item found with id {own}.")
                ids.append(own)
            last = kind
        _require(last != "reasoning", "reasoning without its required following item.")
        _require(sorted(asked) == sorted(answered), "No tool output found for function call.")
        _require(len(set(asked)) == len(asked), "Duplicate call_id.")

    def _check_reasoning(self, item: dict[str, Any], body: dict[str, Any]) -> None:
        content = item.get("encrypted_content")
        if content is None:
            _require(
                bool(body.get("store")),
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` "
                "is set to false.",
            )
            return
        text = "".join(part["text"] for part in item["summary"])
        _require(
            content == encrypted(text) and not self.unbound,
            f"The encrypted content {content[:4]}... could not be verified.",
        )
        _require([part["text"] for part in item["summary"]] == parts_of(text), "another summary")

    def _check_call(self, item: dict[str, Any], ids: list[str]) -> None:
        _require(bool(_NAME.fullmatch(item["name"])), "Invalid 'input[0].name'")
        _require(1 <= len(item["call_id"]) <= 64, "Invalid 'input[0].call_id'")
        _require(isinstance(json.loads(item["arguments"]), dict), "arguments: not an object")
        behind = self._behind.get(item.get("id", ""))
        _require(
            behind is None or behind in ids,
            f"Item '{item.get('id')}' of type 'function_call' was provided without its required "
            f"'reasoning' item: '{behind}'.",
        )

    def _items(self, reply: Reply) -> list[Event]:
        self._made += 1
        items: list[Event] = []
        behind = None
        for at, item in enumerate(reply):
            own = f"{self._made}_{at}"
            if item[0] == "think":
                behind = f"rs_{own}"
                items.append(_reasoning(behind, item, encrypts=self.reasons))
            elif item[0] in ("text", "refusal"):
                items.append(_message(f"msg_{own}", item))
            elif item[0] == "call":
                ends = ("cut",) in reply and at == len(reply) - 2
                call = {"type": "function_call", "id": f"fc_{own}", "call_id": item[1]}
                call |= {"name": item[2], "arguments": item[3]}
                items.append({**call, "status": "incomplete" if ends else "completed"})
                if behind is not None:
                    self._behind[f"fc_{own}"] = behind
        return items

    def whole(self, reply: Reply) -> Event:
        return _response(reply, self._items(reply))

    def events(self, reply: Reply) -> list[Event]:
        items = self._items(reply)
        begun = {**_response(reply, []), "status": "in_progress", "usage": None}
        events: list[Event] = [{"type": "response.created", "response": begun}]
        calls: list[list[Event]] = []
        for at, item in enumerate(items):
            track = self._item_events(at, item)
            if item["type"] == "function_call":
                calls.append(track)
            else:
                events += self.in_turn(calls) + track
                calls = []
        events += self.in_turn(calls)
        if ("broken",) not in reply:
            end = "incomplete" if ("cut",) in reply else "completed"
            events.append({"type": f"response.{end}", "response": _response(reply, items)})
        return [{**event, "sequence_number": at} for at, event in enumerate(events)]

    def _item_events(self, at: int, item: Event) -> list[Event]:
        place: Event = {"output_index": at, "item_id": item["id"]}
        deltas: list[Event] = []
        begun = dict(item)
        if item["type"] == "function_call":
            begun |= {"arguments": "", "status": "in_progress"}
            kind = "response.function_call_arguments"
            deltas = [{"type": f"{kind}.delta", "delta": one} for one in self._of(item)]
            deltas.append({"type": f"{kind}.done", "arguments": item["arguments"]})
        elif item["type"] == "reasoning":
            begun |= {"summary": [], "encrypted_content": "gAAAunfinished"}
            kind = "response.reasoning_summary_text"
            for index, part in enumerate(item["summary"]):
                told = {"summary_index": index}
                deltas += [
                    {"type": f"{kind}.delta", "delta": one, **told}
                    for one in self.pieces(part["text"])
                ]
                deltas.append({"type": f"{kind}.done", "text": part["text"], **told})
        else:
            begun |= {"content": [], "status": "in_progress"}
            part = item["content"][0]
            kind = part["type"]
            told = {"content_index": 0} | ({"logprobs": []} if kind == "output_text" else {})
            deltas = [
                {"type": f"response.{kind}.delta", "delta": one, **told} for one in self._of(part)
            ]
        return [
            {"type": "response.output_item.added", "output_index": at, "item": begun},
            *({**place, **one} for one in deltas),
            {"type": "response.output_item.done", "output_index": at, "item": item},
        ]

    def _of(self, part: Event) -> list[str]:
        names = ("arguments", "text", "refusal")
        return self.pieces(next(part[name] for name in names if name in part))


def encrypted(text: str) -> str:
    """The encrypted content of a reasoning with this summary."""
    return "gAAA+/" + text.encode().hex() + "=="


def parts_of(text: str) -> list[str]:
    """A summary comes in parts, each of one line."""
    return text.splitlines(keepends=True)


def _reasoning(own: str, item: Item, *, encrypts: bool) -> Event:
    summary = [{"type": "summary_text", "text": part} for part in parts_of(item[1])]
    content = encrypted(item[1]) if encrypts else None
    return {"type": "reasoning", "id": own, "summary": summary, "encrypted_content": content}


def _message(own: str, item: Item) -> Event:
    part: Event = {"type": "refusal", "refusal": item[1]}
    if item[0] == "text":
        part = {"type": "output_text", "text": item[1], "annotations": [], "logprobs": []}
    message = {"type": "message", "id": own, "role": "assistant", "status": "completed"}
    return {**message, "content": [part]}


def _response(reply: Reply, items: list[Event]) -> Event:
    is_cut = ("cut",) in reply
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1,
        "top_p": 1,
        "usage": {
            "input_tokens": 12,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 17,
        },
    }


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise RefusedError(words)
