"""JSON Schemas of answers, as programs write them: checked, and with references that survive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from callslip._base.json_pointer import pointer_step, pointer_steps
from callslip.errors import UsageError
from callslip.tools._callable import json_schema

__all__ = ["answer_schema"]

_OF_ONE = "not if then else items contains additionalProperties propertyNames unevaluatedItems"
_OF_ONE += " unevaluatedProperties additionalItems contentSchema"
_OF_LIST = "allOf anyOf oneOf prefixItems items"
_OF_NAMED = "properties patternProperties dependentSchemas $defs definitions dependencies"
_IN_ONE, _IN_LIST = frozenset(_OF_ONE.split()), frozenset(_OF_LIST.split())
_IN_NAMED = frozenset(_OF_NAMED.split())

_DEFINITIONS = ("$defs", "definitions")

_DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SAY_NOTHING = ("title", "$comment")
"""Words that repeat names, or are for authors. Services that take a schema may refuse them."""

_OWN = "answer"
"""The name of the whole schema among its definitions, if it refers to other places in itself."""


def answer_schema(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of answers that a program has passed, as the core takes it.

    References lead to its definitions, as the core puts the schema into others.

    Raises:
        UsageError: The mapping is not JSON, or one of its references cannot be followed in it.
    """
    schema = json_schema("returns", given)
    _check_references(schema)
    schema.pop("$id", None)
    if str(schema.get("$schema", "")).rstrip("#") == _DEFAULT_DIALECT:
        del schema["$schema"]
    for _, part in _parts(schema):
        for key in _SAY_NOTHING:
            if isinstance(part.get(key), str):
                del part[key]
    return _with_definitions(schema)


def _parts(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema in a schema with its JSON pointer, itself first."""
    found: list[tuple[str, Any]] = [("", schema)]
    while found:
        place, one = found.pop()
        if not isinstance(one, dict):
            continue
        yield place, one
        for key, value in one.items():
            inside = place + pointer_step(key)
            if key in _IN_LIST and isinstance(value, list):
                found.extend((f"{inside}/{at}", part) for at, part in enumerate(value))
            elif key in _IN_ONE:
                found.append((inside, value))
            elif key in _IN_NAMED and isinstance(value, dict):
                found.extend((inside + pointer_step(name), part) for name, part in value.items())


def _check_references(schema: dict[str, Any]) -> None:
    """Raise `UsageError` for a reference that cannot be followed in the schema alone."""
    for place, part in _parts(schema):
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in part:
                raise UsageError(
                    f"expected returns without {keyword}: got one at '{place}/{keyword}'; use $ref"
                )
        if place and "$id" in part:
            raise UsageError(
                f"expected returns as one schema: got another one with an $id at '{place}/$id'; "
                "leave the $id out, and refer to it by its place, such as '#/$defs/Name'"
            )
        if "$ref" in part:
            _check_reference(schema, part["$ref"], f"{place}/$ref")


def _check_reference(schema: dict[str, Any], reference: object, place: str) -> None:
    if not isinstance(reference, str) or not re.fullmatch(r"#(/.*)?", reference, re.DOTALL):
        raise UsageError(
            f"expected references inside of returns, such as '#/$defs/Name': got {reference!r} at "
            f"'{place}'; put the schema that is meant into $defs"
        )
    target: Any = schema
    for key in pointer_steps(unquote(reference[1:])):
        if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        elif isinstance(target, dict) and key in target:
            target = target[key]
        else:
            raise UsageError(
                f"expected references to a part of returns: got {reference!r} at '{place}', which "
                "leads to nothing"
            )


def _with_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with references to its definitions alone.

    A schema with references to other places becomes a definition itself.
    """
    is_moved = False

    def moved(reference: str) -> str:
        nonlocal is_moved
        if any(unquote(reference).startswith(f"#/{key}/") for key in _DEFINITIONS):
            return reference
        is_moved = True
        return f"#/$defs/{name}{reference[1:]}"

    known = schema.get("$defs", {})
    if not isinstance(known, dict):
        return schema  # which the core refuses
    name = _OWN
    while name in known:
        name += "_"
    _change_references(schema, moved)
    if not is_moved:
        return schema
    top = {key: schema.pop(key) for key in (*_DEFINITIONS, "$schema") if key in schema}
    return {"$ref": f"#/$defs/{name}", **top, "$defs": {**known, name: schema}}


def _change_references(schema: dict[str, Any], changed: Callable[[str], str]) -> None:
    for _, part in _parts(schema):
        if "$ref" in part:
            part["$ref"] = changed(part["$ref"])
