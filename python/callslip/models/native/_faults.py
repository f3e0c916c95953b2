"""Errors of servers that could not read a call of their own model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from callslip._base.backoff import raised_from, safe_field
from callslip._base.failure import message_of
from callslip.models._fields import first_field
from callslip.models._items import FaultItem

__all__ = ["fault_of"]

_UNPARSED = re.compile(r"Failed to parse input(?: at pos \d+)?:?\s*(.*)", re.DOTALL)
"""llama.cpp, with what the model wrote."""


def fault_of(error: BaseException) -> FaultItem | None:
    """Return what an error says of a call that the server could not read.

    Groq refuses such a call with `tool_use_failed`, and llama.cpp with a status of 500.

    Args:
        error: The exception of the client.

    Returns:
        `None` if it is another error.
    """
    for one in raised_from(error):
        for body in _bodies(one):
            told = body.get("error")
            inner = told if isinstance(told, Mapping) else body
            code = inner.get("code")
            raw = inner.get("failed_generation")
            if code == "tool_use_failed" or isinstance(raw, str):
                words = first_field(inner, "message") or message_of(one)
                name = code if isinstance(code, str) else "tool_use_failed"
                return FaultItem(f"{name}: {words}", raw if isinstance(raw, str) else "")
            found = _UNPARSED.search(str(inner.get("message") or ""))
            if found:
                return FaultItem("the server could not parse the reply", found[1].strip())
        found = _UNPARSED.search(message_of(one))
        if found:
            return FaultItem("the server could not parse the reply", found[1].strip())
    return None


def _bodies(error: BaseException) -> Iterator[Mapping[str, object]]:
    """Yield the JSON of an error: from its client, or in its words, where LiteLLM has it."""
    body = safe_field(error, "body")
    if isinstance(body, Mapping):
        yield body
    words = message_of(error)
    start = words.find("{")
    if start < 0 or "failed_generation" not in words:
        return
    try:
        found = json.JSONDecoder().raw_decode(words[start:])[0]
    except ValueError:
        return
    if isinstance(found, Mapping):
        yield found
