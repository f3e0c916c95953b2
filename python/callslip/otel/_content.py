"""The texts of a run as attributes, where they are wanted: they are those of users and tools."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from callslip._base.json import to_json
from callslip._base.redaction import Secrets, redact_credentials
from callslip.models._envelope_lines import lines_of

__all__ = [
    "clean",
    "clean_json",
    "instructions_json",
    "is_wanted",
    "messages_json",
    "reply_json",
]

_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = {"true", "1", "span_only", "span_and_event"}


def is_wanted(*, content: bool | None) -> bool:
    """Whether texts are recorded: as the program says, or else the environment."""
    if content is not None:
        return content
    return os.environ.get(_VARIABLE, "").strip().lower() in _ON_SPANS


def clean(text: str) -> str:
    """Return a text with the credentials masked that can be recognised."""
    known = Secrets.of_this_context()
    return redact_credentials(text if known is None else known.redact(text))


def clean_json(value: Any) -> str:
    """Return a JSON value as text with the credentials masked that can be recognised."""
    return clean(value if isinstance(value, str) else to_json(value))


def messages_json(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return messages as the convention has them: a role, and parts.

    The parts are text; in a native run, the items of the messages.
    """
    return _json([told for one in messages for told in _messages_of(one)])


def reply_json(text: str, finish_reason: str, *, has_items: bool = False) -> str:
    """Return the reply of a model as the convention has it.

    Args:
        text: The reply, as the log has it.
        finish_reason: As of a `ModelReply`.
        has_items: Whether `text` is the lines of a native reply.
    """
    parts = _parts_of(lines_of(text)) if has_items else _parts(text)
    return _json([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def instructions_json(text: str) -> str:
    """Return the system message as the convention has it: parts without a role."""
    return _json(_parts(text))


def _messages_of(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message; results of calls are a message of their own, before the text."""
    items = message.get("items")
    if items is None:
        yield {"role": message["role"], "parts": _parts(message["content"])}
        return
    results = [item for item in items if "result" in item]
    others = [item for item in items if "result" not in item]
    if results:
        yield {"role": "tool", "parts": _parts_of(results)}
    if others or not results:
        yield {"role": message["role"], "parts": _parts_of(others)}


def _parts_of(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a message or a reply as parts. What a service gets back is left out."""
    return [_part(item) for item in items]


def _part(item: Mapping[str, Any]) -> dict[str, Any]:
    match item:
        case {"call": call, "tool": tool, "arguments": arguments}:
            given = _arguments(arguments)
            return {"type": "tool_call", "id": call or None, "name": tool, "arguments": given}
        case {"result": call, "content": content}:
            return {"type": "tool_call_response", "id": call or None, "result": clean(content)}
        case {"reasoning": text}:
            return {"type": "reasoning", "content": clean(text)}
        case {"fault": message, "raw": raw}:
            return {"type": "text", "content": clean(f"{message}\n{raw}".strip())}
        case _:
            return {"type": "text", "content": clean(str(item.get("text", "")))}


def _arguments(text: str) -> Any:
    """Return arguments as an object if they are one, else as text."""
    cleaned = clean(text)
    try:
        given = json.loads(cleaned)
    except ValueError:
        return cleaned
    return given if isinstance(given, dict) else cleaned


def _parts(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": clean(text)}]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
