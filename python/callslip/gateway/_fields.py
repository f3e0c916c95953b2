"""Fields of a request's body, read with errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callslip._base.options import shown
from callslip.gateway._refused import Refused

__all__ = [
    "check_left_out",
    "flag",
    "kinds_without",
    "listed",
    "mapping",
    "refusal",
    "text",
    "whole",
]


def refusal(place: str, expected: str, value: object, hint: str = "") -> Refused:
    """Return the error for a field with a wrong value.

    Args:
        place: The field.
        expected: The values that it takes.
        value: Its value.
        hint: What to do. Default: to pass one of the expected values.
    """
    hint = hint or ("pass one of them" if "' or '" in expected else f"pass {expected}")
    message = f"expected {place} to be {expected}: got {shown(value)}; {hint}"
    return Refused(400, message, param=place)


def mapping(value: object, place: str) -> Mapping[str, Any]:
    """Return a field that is an object.

    Raises:
        Refused: It is something else.
    """
    if not isinstance(value, Mapping):
        raise refusal(place, "an object", value)
    return value


def listed(value: object, place: str) -> list[Any]:
    """Return a field that is a list; an empty one for `null`.

    Raises:
        Refused: It is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise refusal(place, "a list", value)
    return value


def text(value: object, place: str) -> str:
    """Return a field that is a string. Halves of surrogate pairs become U+FFFD.

    Raises:
        Refused: It is something else.
    """
    if not isinstance(value, str):
        raise refusal(place, "a string", value)
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def flag(value: object, place: str) -> bool:
    """Return a field that is `true` or `false`; false for `null`.

    Raises:
        Refused: It is something else.
    """
    if value is not None and not isinstance(value, bool):
        raise refusal(place, "true or false", value)
    return bool(value)


def whole(value: object, place: str, least: int) -> int | None:
    """Return a field that is a whole number or `null`.

    Raises:
        Refused: It is something else, or too small.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise refusal(place, f"a whole number from {least}", value)
    return value


def check_left_out(body: Mapping[str, Any], hints: Mapping[str, str], empty: Sequence[Any]) -> None:
    """Check that a request has no field with a meaning that can't be served.

    Args:
        body: The request.
        hints: The fields that can't be served, each with a hint.
        empty: The values that equal a missing field.

    Raises:
        Refused: It has one of them.
    """
    for name, hint in hints.items():
        value = body.get(name)
        if not any(value is one or value == one for one in empty):
            raise Refused(400, f"expected no {name}: got {shown(value)}; {hint}", param=name)


def kinds_without(body: Mapping[str, Any], own: str) -> tuple[str, ...]:
    """Return the kinds of tools of a request other than its client's own functions.

    They are tools of the service itself, which no model that writes text can call.

    Args:
        body: The request.
        own: The kind of the client's functions. Tools without a kind are functions too.
    """
    tools = listed(body.get("tools"), "tools")
    kinds = (mapping(one, "a tool").get("type", own) for one in tools)
    return tuple(dict.fromkeys(str(kind)[:_LONGEST_KIND] for kind in kinds if kind != own))


_LONGEST_KIND = 64
