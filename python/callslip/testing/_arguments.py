"""Arguments that the schema of a tool allows, as a strategy of hypothesis."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from callslip._base.json import from_json, to_json
from callslip._base.json_pointer import pointer_steps
from callslip._core import ToolSet
from callslip.tools import Tool

__all__ = ["arguments_of"]

_Schema = Mapping[str, Any]

# Whole numbers beyond are not told apart by a reader that has floats alone.
_LARGEST = 2**53
_ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-_LARGEST, _LARGEST) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def arguments_of(tool: Tool[..., Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for all arguments of a call.

    Args:
        tool: The tool. Values for the rarer words of its schema are found by trying.
    """
    known = ToolSet([tool._spec()])

    def is_allowed(arguments: object) -> bool:
        try:
            known.check(tool.name, to_json(arguments))
        except ValueError:
            return False
        return True

    drawn = _Values(tool.parameters).of({"type": "object", **tool.parameters}).filter(is_allowed)
    sample = known.sample_arguments(tool.name)
    return drawn if sample is None else st.just(from_json(sample)) | drawn


class _Values:
    """Makes values of the parts of one schema.

    Args:
        root: The whole schema, for references within it.
    """

    def __init__(self, root: _Schema) -> None:
        self._root = root

    def of(self, schema: object) -> st.SearchStrategy[Any]:
        """Return a strategy for a value of a schema; most of them are allowed by it."""
        if not isinstance(schema, Mapping):
            return _ANYTHING
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "$ref" in schema:
            reference = str(schema["$ref"])
            return st.deferred(lambda: self.of(self._resolved(reference)))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return st.one_of([self.of(one) for one in schema[word]])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return st.one_of([self._of_kind(kind, schema) for kind in kinds]) if kinds else _ANYTHING

    def _resolved(self, reference: str) -> object:
        found: Any = self._root
        for name in pointer_steps(reference.removeprefix("#")):
            found = found[name]
        return found

    def _of_kind(self, kind: str, schema: _Schema) -> st.SearchStrategy[Any]:
        match kind:
            case "string":
                return _texts(schema)
            case "integer":
                low, high = schema.get("minimum", -_LARGEST), schema.get("maximum", _LARGEST)
                return st.integers(int(low), int(high))
            case "number":
                low, high = schema.get("minimum"), schema.get("maximum")
                return st.floats(low, high, allow_nan=False, allow_infinity=False)
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
            case "array":
                return self._lists(schema)
            case _:
                return self._objects(schema)

    def _lists(self, schema: _Schema) -> st.SearchStrategy[Any]:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        return st.lists(self.of(schema.get("items")), min_size=least, max_size=most)

    def _objects(self, schema: _Schema) -> st.SearchStrategy[Any]:
        fields = {name: self.of(one) for name, one in schema.get("properties", {}).items()}
        required = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: one for name, one in fields.items() if name in required},
            optional={name: one for name, one in fields.items() if name not in required},
        )


def _texts(schema: _Schema) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(re.compile(schema["pattern"]))
    match schema.get("format"):
        case "date":
            return st.dates().map(lambda date: date.isoformat())
        case "date-time":
            return st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat())
        case "uuid":
            return st.uuids().map(str)
        case _:
            return st.text(min_size=schema.get("minLength", 0), max_size=schema.get("maxLength"))
