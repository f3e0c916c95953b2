"""The texts of a run as attributes, where they are wanted: they are those of users and tools."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from callslip._base.json import to_json
from callslip._base.redaction import Secrets, redact_credentials

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
    """Return messages as the convention has them: a role, and parts that are text here."""
    return _json([_message(one["role"], one["content"]) for one in messages])


def reply_json(text: str, finish_reason: str) -> str:
    """Return the reply of a model as the convention has it."""
    return _json([{**_message("assistant", text), "finish_reason": finish_reason}])


def instructions_json(text: str) -> str:
    """Return the system message as the convention has it: parts without a role."""
    return _json(_parts(text))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": _parts(text)}


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "content": clean(text)}]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
