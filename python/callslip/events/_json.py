"""The public JSON form of events, deltas and progress. The log has a form of its own."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from callslip._base.usage import Usage
from callslip._core import Delta
from callslip.origins import Origin, Place
from callslip.origins._traced import TracedOrigins

__all__ = ["fields_of", "fields_of_delta"]

_DELTAS: dict[type[Delta], str] = {
    Delta.Thoughts: "thoughts",
    Delta.Reasoning: "reasoning",
    Delta.Text: "text",
    Delta.Answer: "answer",
    Delta.CallId: "call_id",
    Delta.Tool: "tool",
    Delta.Arguments: "arguments",
    Delta.CallReady: "call_ready",
    Delta.TicketId: "ticket_id",
}


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of an object of a dataclass by their names, with its usage as a dict."""
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Usage | Origin | Place):
        return fields_of(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, TracedOrigins) or (
        isinstance(value, dict) and value and all(isinstance(one, Origin) for one in value.values())
    ):
        return {name: fields_of(one) for name, one in value.items()}
    return value


def fields_of_delta(delta: Delta) -> dict[str, Any]:
    """Return `kind`, the kind of delta, and its fields by their names."""
    kind = type(delta)
    own = {name: getattr(delta, name) for name in kind.__match_args__}  # type: ignore[attr-defined]
    return {"kind": "delta", "delta": _DELTAS[kind], **own}
