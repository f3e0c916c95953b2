"""What a strict service of chat completions refuses in the history of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["why_refused"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def why_refused(request: Mapping[str, Any]) -> str | None:
    """Return the words with which a request is refused; `None` for one that is admitted."""
    expected: list[str] = []
    for place, message in enumerate(request["messages"]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in expected:
                return "messages with role 'tool' must follow a message with 'tool_calls'"
            expected.remove(message["tool_call_id"])
            continue
        if expected:
            return f"these tool_call_ids did not have response messages: {expected}"
        calls = message.get("tool_calls") or ()
        for call in calls:
            if (wrong := _why_call(call, place)) is not None:
                return wrong
        expected = [call["id"] for call in calls]
        if len(set(expected)) < len(expected):
            return "each of the 'tool_calls' of a message must have an id of its own"
    return f"these tool_call_ids did not have response messages: {expected}" if expected else None


def _why_call(call: Mapping[str, Any], place: int) -> str | None:
    function = call["function"]
    if not _NAME.fullmatch(function["name"]):
        return f"Invalid 'messages[{place}].tool_calls[0].function.name'"
    if not call.get("id"):
        return f"Invalid 'messages[{place}].tool_calls[0].id'"
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = None
    # As servers of open models do, and gateways to services that take an object.
    return None if isinstance(arguments, dict) else "Failed to parse tool call arguments as JSON"
