"""Defaults of a call: values that the tool gets although nobody has written them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from callslip._base.json import to_json

__all__ = ["defaults_inside", "is_default"]

_DEEPEST = 6
_MOST = 50


def is_default(schema: Any, value: Any) -> bool:
    """Whether a value is the default that its schema tells."""
    if not isinstance(schema, dict) or "default" not in schema:
        return False
    # In Python, 1 is equal to 1.0 and True.
    return to_json(schema["default"]) == to_json(value)


def defaults_inside(
    name: str, value: Any, schema: Any, root: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Return the defaults of fields that are missing inside of an argument, by their places.

    Args:
        name: The name of the argument.
        value: Its value.
        schema: Its schema.
        root: The schema of all arguments, with the definitions that others refer to.
    """
    found = []
    for place in _inside(name, value, schema, root, 0):
        found.append(place)
        if len(found) == _MOST:
            break
    return found


def _inside(
    name: str, value: Any, schema: Any, root: Mapping[str, Any], depth: int
) -> Iterator[tuple[str, Any]]:
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _inside(f"{name}.{at}", item, schema.get("items"), root, depth + 1)
    if not isinstance(value, dict):
        return
    properties = schema.get("properties")
    for key, own in properties.items() if isinstance(properties, dict) else ():
        if key in value:
            yield from _inside(f"{name}.{key}", value[key], own, root, depth + 1)
        elif isinstance(own, dict) and "default" in own:
            yield f"{name}.{key}", own["default"]


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a schema without references, and without the `null` of an optional value."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return None
        if isinstance(place := schema.get("$ref"), str) and place.startswith("#/"):
            target: Any = root
            for key in place[2:].split("/"):
                target = target.get(key) if isinstance(target, dict) else None
            schema = target
            continue
        others = [
            one
            for key in ("anyOf", "oneOf", "allOf")
            for one in schema.get(key) or ()
            if isinstance(one, dict) and one.get("type") != "null"
        ]
        if len(others) != 1 or "properties" in schema:
            return schema
        schema = others[0]
    return schema
