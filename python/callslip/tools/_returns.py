"""Types of answers and results: their JSON Schema, and the conversion from JSON to their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from callslip._base.failure import message_of
from callslip.errors import UsageError
from callslip.tools._annotation import shape_of
from callslip.tools._reads import without_reads

__all__ = ["Described", "Faults", "described"]

Faults: TypeAlias = Callable[[str, Any, ValueError], Iterable[str]]


class Described(NamedTuple):
    """A type: its JSON Schema, and the function from JSON to its values.

    Attributes:
        schema: The schema; `None` without a type.
        convert: The function; `None` if JSON and values are the same.
        faults: Yields each fault of JSON that the function refuses; `None` if it refuses none.
    """

    schema: dict[str, Any] | None = None
    convert: Callable[[Any], Any] | None = None
    faults: Faults | None = None


def described(returns: Any, names: Mapping[str, Any] = MappingProxyType({})) -> Described:
    """Return the description of a type.

    Args:
        returns: The type, as an annotation.
        names: Local names of the scope of a function that has it, for annotations that are text.

    Raises:
        UsageError: It cannot be described as JSON.
    """
    try:
        shape = shape_of(returns)
    except NameError:
        # A `TypedDict` of a function's own types.
        shape = None
    if shape is not None:
        return Described(dict(shape.schema), shape.convert)
    from callslip.tools._validation import (
        adapter_for,
        converter,
        describe_faults,
        schemas_of,
    )

    try:
        adapter = adapter_for(returns, names)
        (schemas, definitions), _ = without_reads([*schemas_of({"answer": adapter})])
    except Exception as error:
        reason = (message_of(error).strip().splitlines() or [type(error).__name__])[0]
        name = inspect.formatannotation(returns)
        raise UsageError(
            f"the type in returns ({name}) can't be used: {reason.split('. ')[0]}; pass a type "
            "that has JSON, such as str, list[int], a dataclass, a TypedDict or a pydantic model"
        ) from error
    schema = schemas["answer"]
    if definitions:
        schema = {**schema, "$defs": definitions}
    return Described(_without_titles(schema), converter(adapter), describe_faults)


def _without_titles(schema: Any) -> Any:
    """Return a schema without pydantic's titles, which repeat the names."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"properties", "$defs"} and isinstance(value, dict):
            kept[key] = {name: _without_titles(one) for name, one in value.items()}
        elif key in {"const", "enum", "default", "examples"}:
            kept[key] = value
        elif key != "title" or not isinstance(value, str):
            kept[key] = _without_titles(value)
    return kept
