"""Anthropic's messages on this machine: their answers and refusals.

Sources: platform.claude.com/docs (messages, streaming, tool use, extended thinking), and the words
of refusals from forgecode#2107, llama_index#19641, claude-code#8210 and claude-code#63295.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from services.loopback import Event, Item, Loopback, RefusedError, Reply

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_BLOCKS = ("thinking", "redacted_thinking")
_USAGE = {"input_tokens": 8, "cache_read_input_tokens": 4, "output_tokens": 1}


def signature(text: str) -> str:
    """The signature of a thinking text: it fits no other one."""
    return "Er/+" + hashlib.sha256(text.encode()).hexdigest() + "=="


class AnthropicService(Loopback):
    """The service.

    Attributes:
        unbound: Whether it refuses all earlier thinking, as after the conversation has changed.
    """

    unbound = False

    def begin(self, *script: Reply, split: int = 3, mixed: bool = False) -> None:
        super().begin(*script, split=split, mixed=mixed)
        self.unbound = False

    def error(self, words: str) -> Event:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}

    def check(self, body: dict[str, Any]) -> None:
        _require("max_tokens" in body, "max_tokens: Field required")
        self._check_tools(body)
        messages = body["messages"]
        _require(messages[0]["role"] == "user", "messages: first message must use the user role")
        asked: list[str] = []
        for at, message in enumerate(messages):
            place = f"messages.{at}"
            content = message["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            _require(bool(blocks), f"{place}: content must not be empty")
            for block in blocks:
                self._check_block(block, place)
            if message["role"] == "user":
                _check_results(blocks, asked, place)
                asked = []
            else:
                _require(not asked, f"{place}: `tool_use` ids without `tool_result` blocks")
                self._check_own(blocks, place, is_last=at >= len(messages) - 2, body=body)
                asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        _require(not asked, "the final `tool_use` has no `tool_result`")

    def _check_tools(self, body: dict[str, Any]) -> None:
        tools = body.get("tools") or []
        for tool in tools:
            _require(bool(_NAME.fullmatch(tool["name"])), "tools.0.custom.name: pattern")
            is_object = tool["input_schema"].get("type") == "object"
            _require(is_object, "tools.0.custom.input_schema.type: Field required")
            known = {"name", "description", "input_schema", "strict", "cache_control"}
            _require(tool.keys() <= known, "tools.0: Extra inputs are not permitted")
        choice = body.get("tool_choice")
        if choice is None:
            return
        _require(bool(tools), "tool_choice may only be specified while providing tools")
        forced = choice["type"] in ("any", "tool")
        enabled = (body.get("thinking") or {}).get("type") == "enabled"
        _require(
            not (forced and enabled),
            "Thinking may not be enabled when tool_choice forces tool use.",
        )
        if choice["type"] == "tool":
            _require(choice["name"] in [tool["name"] for tool in tools], "Tool not found")
        is_odd = choice["type"] == "none" and "disable_parallel_tool_use" in choice
        _require(not is_odd, "tool_choice.none: Extra inputs are not permitted")

    def _check_block(self, block: dict[str, Any], place: str) -> None:
        kind = block["type"]
        if kind == "text":
            _require(bool(block["text"].strip()), "messages: text content blocks must be non-empty")
        if kind == "tool_use":
            _require(bool(_ID.fullmatch(block["id"])), f"{place}: tool_use.id: pattern")
            _require(bool(_NAME.fullmatch(block["name"])), f"{place}: tool_use.name: pattern")
            _require(isinstance(block["input"], dict), f"{place}: input: should be a dictionary")
        if kind == "tool_result":
            content = block.get("content", [])
            inner = [] if isinstance(content, str) else content
            for one in inner:
                self._check_block(one, place)
            is_text = all(one["type"] == "text" for one in inner)
            _require(
                is_text or not block.get("is_error"),
                f'{place}: all content must be type "text" if "is_error" is true',
            )
        if kind == "thinking":
            is_own = block["signature"] == signature(block["thinking"]) and not self.unbound
            _require(is_own, f"{place}: Invalid `signature` in `thinking` block")
        if kind == "redacted_thinking":
            is_own = block["data"].startswith("EmwK+") and not self.unbound
            _require(is_own, f"{place}: Invalid `data` in `redacted_thinking` block")

    def _check_own(
        self, blocks: list[dict[str, Any]], place: str, *, is_last: bool, body: dict[str, Any]
    ) -> None:
        kinds = [block["type"] for block in blocks]
        _require(
            kinds[-1] not in _BLOCKS,
            f"{place}: The final block in an assistant message cannot be `thinking`.",
        )
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        _require(len(set(ids)) == len(ids), "messages: `tool_use` ids must be unique")
        enabled = (body.get("thinking") or {}).get("type") == "enabled"
        if enabled and is_last and "tool_use" in kinds:
            _require(
                kinds[0] in _BLOCKS,
                f"{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{kinds[0]}`. When `thinking` is enabled, a final `assistant` message must start "
                "with a thinking block",
            )

    def whole(self, reply: Reply) -> Event:
        raise RefusedError("these tests ask for streams")

    def events(self, reply: Reply) -> list[Event]:
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _USAGE,
        }
        events: list[Event] = [{"type": "message_start", "message": message}, {"type": "ping"}]
        items = [item for item in reply if item[0] in ("text", "think", "redacted", "call")]
        calls: list[list[Event]] = []
        for at, item in enumerate(items):
            is_open = ("broken",) in reply and at == len(items) - 1
            track = self._block(at, item)[: -1 if is_open else None]
            if item[0] == "call":
                calls.append(track)
            else:
                events += self.in_turn(calls) + track
                calls = []
        events += self.in_turn(calls)
        if ("broken",) in reply:
            return events
        delta = {"stop_reason": _stop(reply), "stop_sequence": None}
        if delta["stop_reason"] == "refusal":
            told = next(item[1] for item in reply if item[0] == "refusal")
            delta["stop_details"] = {"type": "refusal", "category": None, "explanation": told}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
        return [*events, {"type": "message_stop"}]

    def _block(self, at: int, item: Item) -> list[Event]:
        begun: Event = {"type": "text", "text": ""}
        deltas: list[Event] = []
        if item[0] == "text":
            deltas = [{"type": "text_delta", "text": one} for one in self.pieces(item[1])]
        elif item[0] == "think":
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": one} for one in self.pieces(item[1])]
            deltas.append({"type": "signature_delta", "signature": signature(item[1])})
        elif item[0] == "redacted":
            begun = {"type": "redacted_thinking", "data": f"EmwK+{item[1]}"}
        else:
            begun = {"type": "tool_use", "id": item[1], "name": item[2], "input": {}}
            told = ["", *self.pieces(item[3])]
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in told]
        return [
            {"type": "content_block_start", "index": at, "content_block": begun},
            *({"type": "content_block_delta", "index": at, "delta": one} for one in deltas),
            {"type": "content_block_stop", "index": at},
        ]


def _stop(reply: Reply) -> str:
    kinds = {item[0] for item in reply}
    ends = {"cut": "max_tokens", "refusal": "refusal", "pause": "pause_turn", "call": "tool_use"}
    return next((end for kind, end in ends.items() if kind in kinds), "end_turn")


def _check_results(blocks: list[dict[str, Any]], asked: list[str], place: str) -> None:
    ids = [block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"]
    first = [block.get("tool_use_id") for block in blocks[: len(ids)]]
    _require(
        sorted(map(str, ids)) == sorted(asked) and first == ids,
        f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after, or "
        f"`tool_result` blocks without their `tool_use`: {asked} and {ids}",
    )


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise RefusedError(words)


def arguments_of(block: dict[str, Any]) -> str:
    """The arguments of a `tool_use` block that was sent back, as text."""
    return json.dumps(block["input"], ensure_ascii=False)
