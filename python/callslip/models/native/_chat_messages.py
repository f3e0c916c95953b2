"""A conversation with tool calls, as messages of chat completions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from callslip.models._part_shapes import Shapes, blocks_of, text_block
from callslip.models._reply import Message, Messages
from callslip.models._turns import alternating
from callslip.models.native._thoughts import block_of
from callslip.models.native._turns import Call, Reasoning, Result, Text, Turn, turns_of

__all__ = [
    "ANY_CHAT_ID",
    "BLOCKS",
    "Dialect",
    "chat_messages",
    "dialect_of",
    "opened",
    "told_result",
    "user_content",
]

ANY_CHAT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""The ids that servers of chat completions write, such as `functions.weather:0` of Kimi."""
_LITELLM_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}(?:__thought__\S+)?")
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")

BLOCKS = ("thinking_blocks", "reasoning_details")
"""The fields in which LiteLLM and OpenRouter have reasoning that goes back as it came."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between servers.

    Attributes:
        service: The key of the server in `data`. Reasoning goes back to the server it is from.
        ids: The ids that it takes.
        needs_bridge: Whether a message of the user may not follow a result.
    """

    service: str
    ids: re.Pattern[str] = ANY_CHAT_ID
    needs_bridge: bool = False


def dialect_of(create: object, host: str, model: str | None) -> Dialect:
    """Return the dialect of a client's method.

    Args:
        create: The method.
        host: The host of its server; may be empty.
        model: The name of the model.
    """
    module = getattr(create, "__module__", None) or ""
    name = model or ""
    if module.partition(".")[0] == "litellm":
        # It has a model for each provider: `anthropic/claude-…`.
        maker = name.rpartition("/")[0] or name
        return Dialect(f"litellm/{maker}", _LITELLM_ID, needs_bridge=maker == "mistral")
    if host == "api.mistral.ai":
        return Dialect(f"chat/{host}", _MISTRAL_ID, needs_bridge=True)
    return Dialect(f"chat/{host}" if host else "chat")


def opened(messages: Messages) -> list[Message]:
    """Return messages with those before the first reply of the run in alternating roles."""
    listed = list(messages)
    has_items = ("items" in message for message in listed)
    at = next((at for at, one in enumerate(has_items) if one), len(listed))
    return [*alternating(listed[:at]), *listed[at:]]


def chat_messages(messages: Messages, dialect: Dialect, shapes: Shapes) -> list[dict[str, Any]]:
    """Return a conversation as messages of chat completions.

    The results of a reply stand before all else. Images and files follow with the user's text.

    Args:
        messages: The messages of a run.
        dialect: What the server takes.
        shapes: The shapes of images and files.
    """
    sent: list[dict[str, Any]] = []
    for turn in turns_of(opened(messages), dialect.service, dialect.ids):
        if turn.role == "assistant":
            is_answer = bool(sent) and sent[-1]["role"] == "tool"
            sent += _own_message(turn, is_answer=is_answer)
            continue
        results = [item for item in turn.items if isinstance(item, Result)]
        sent += [_result_message(item) for item in results]
        content = user_content(turn, shapes)
        if not content:
            continue
        if results and dialect.needs_bridge:
            sent.append({"role": "assistant", "content": "OK"})
        last = sent[-1] if sent else {}
        if last.get("role") == turn.role and isinstance(last["content"], str):
            # The reply between them had neither text nor calls.
            content = _joined(last["content"], content)
            sent.pop()
        sent.append({"role": turn.role, "content": content})
    return sent


def _own_message(turn: Turn, *, is_answer: bool) -> list[dict[str, Any]]:
    """Return a reply as it goes back; nothing for one of reasoning alone, which servers refuse."""
    text = "".join(item.text for item in turn.items if isinstance(item, Text))
    calls = [_call(item) for item in turn.items if isinstance(item, Call)]
    if not text and not calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls or is_answer:
        for item in turn.items:
            if isinstance(item, Reasoning):
                _add_reasoning(message, item)
    if calls:
        message["tool_calls"] = calls
    return [message]


def _add_reasoning(message: dict[str, Any], item: Reasoning) -> None:
    for name in BLOCKS:
        block = block_of(item, name)
        if block is not None:
            message.setdefault(name, []).append(block)
            return
    if item.data and item.data.get("reasoning_content"):
        said = message.get("reasoning_content", "")
        message["reasoning_content"] = f"{said}{item.text}"


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function, **(call.data or {})}


def _result_message(result: Result) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": result.id, "content": told_result(result)}


def told_result(result: Result) -> str:
    """Return the text of a result, for services without a mark for errors."""
    return f"error: {result.content}" if result.error else result.content


def user_content(turn: Turn, shapes: Shapes) -> str | list[Any]:
    """Return the texts of a turn, with its images and files as blocks."""
    text = "\n\n".join(item.text for item in turn.items if isinstance(item, Text))
    parts = turn.message.get("parts")
    if not parts:
        return text
    message = {"role": turn.role, "content": text, "parts": parts}
    return blocks_of(message, shapes, text_block) or text


def _joined(said: str, content: str | list[Any]) -> str | list[Any]:
    if isinstance(content, str):
        return f"{said}\n\n{content}"
    return [text_block(said), *content]
