"""Forms that both of OpenAI's faces share: tools, choices, schemas and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from callslip.gateway._fields import flag, listed, mapping, refusal, text, whole
from callslip.gateway._refused import Refused
from callslip.models import ToolChoice, ToolForm
from callslip.models._items import CallItem

__all__ = ["answer_schema", "chosen", "error_body", "options_of", "reported_call"]

Named = Callable[[Mapping[str, Any], str], object]
"""Returns the name in a choice of one tool."""

_ANY_OBJECT = {"type": "object"}


def chosen(
    choice: object, tools: tuple[ToolForm, ...], parallel: object, named: Named
) -> tuple[tuple[ToolForm, ...], ToolChoice]:
    """Return the allowed tools, and the choice among them.

    Raises:
        Refused: The choice has another form, or names no tool of the request.
    """
    several = parallel is None or flag(parallel, "parallel_tool_calls")
    if choice is None or isinstance(choice, str):
        return tools, ToolChoice(_mode(choice or "auto", "tool_choice"), parallel=several)
    given = mapping(choice, "tool_choice")
    kind = given.get("type")
    if kind == "function":
        name = _known(named(given, "tool_choice"), tools)
        return tools, ToolChoice("required", name, several)
    if kind == "allowed_tools":
        inner = given.get("allowed_tools", given)
        allowed = mapping(inner, "tool_choice.allowed_tools")
        rows = listed(allowed.get("tools"), "tool_choice.allowed_tools.tools")
        names = {_known(named(mapping(one, "tool"), "tool"), tools) for one in rows}
        mode = _mode(allowed.get("mode", "auto"), "tool_choice.allowed_tools.mode")
        return tuple(one for one in tools if one.name in names), ToolChoice(mode, parallel=several)
    raise refusal("tool_choice.type", "'function' or 'allowed_tools'", kind)


def _mode(mode: object, place: str) -> Literal["auto", "required", "none"]:
    if mode not in ("auto", "required", "none"):
        raise refusal(place, "'auto', 'required', 'none' or an object", mode)
    return mode


def _known(name: object, tools: tuple[ToolForm, ...]) -> str:
    known = text(name, "tool_choice")
    if all(one.name != known for one in tools):
        raise refusal("tool_choice", "the name of a tool of the request", known)
    return known


def answer_schema(form: object, place: str, key: str | None) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer; `None` for text.

    Args:
        form: The field.
        place: Its name.
        key: The key in which the schema has its name; `None` if they are side by side.

    Raises:
        Refused: It has another form.
    """
    given = mapping(form, place)
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return _ANY_OBJECT
    if kind != "json_schema":
        raise refusal(f"{place}.type", "'text', 'json_object' or 'json_schema'", kind)
    if key is not None:
        place = f"{place}.{key}"
        given = mapping(given.get(key), place)
    schema = given.get("schema")
    return _ANY_OBJECT if schema is None else mapping(schema, f"{place}.schema")


def options_of(body: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
    """Return the options for the model.

    Raises:
        Refused: One of them has a wrong value.
    """
    found: dict[str, Any] = {}
    if limit is not None:
        found["max_tokens"] = limit
    seed = whole(body.get("seed"), "seed", -(2**63))
    if seed is not None:
        # Models take 32 bits.
        found["seed"] = seed % 2**32
    stop = body.get("stop")
    rows = [stop] if isinstance(stop, str) else listed(stop, "stop")
    texts = [text(one, "stop") for one in rows]
    if any(texts):
        found["stop"] = [one for one in texts if one]
    return found


def reported_call(call: CallItem) -> dict[str, Any]:
    """Return a call as chat completions have it."""
    function = {"name": call.tool, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_body(refused: Refused) -> dict[str, Any]:
    """Return the body of an error."""
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    error = {
        "message": refused.message,
        "type": _TYPES.get(refused.status, kind),
        "param": refused.param,
        "code": refused.code,
    }
    return {"error": error}
