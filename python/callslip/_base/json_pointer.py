"""JSON pointers (RFC 6901): the places of values in JSON values."""

from __future__ import annotations

from typing import Any

__all__ = ["pointer_step", "pointer_steps", "value_at"]


def pointer_step(name: str) -> str:
    """Return the step of a pointer into a field, such as `/to`."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def pointer_steps(pointer: str) -> list[str]:
    """Return the names of the fields and the positions of the items on the way to a value."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def value_at(value: Any, pointer: str) -> Any:
    """Return the value at a pointer; `None` if there is none."""
    for step in pointer_steps(pointer):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and len(step) < 10:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value
