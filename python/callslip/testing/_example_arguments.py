"""Arguments that fit the schema of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callslip._core import ToolSet
from callslip._json import to_json
from callslip.errors import UsageError
from callslip.tools import Tool

__all__ = ["example_arguments"]

_DEEPEST = 20


def example_arguments(tool: Tool[..., Any]) -> dict[str, Any]:
    """Return the required arguments of a tool, with values that its schema allows.

    Raises:
        UsageError: No such values were found.
    """
    schema = tool.parameters
    found: dict[str, Any] = _Examples(schema).of(schema)
    try:
        ToolSet([tool._spec()]).check(tool.name, to_json(found))
    except ValueError as error:
        raise UsageError(
            f"expected arguments for the tool {tool.name!r} from its schema: got {error}: add "
            "`examples` to the schema, or use say.call(…)"
        ) from None
    return found


class _Examples:
    """Values for the parts of one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def of(self, schema: Any, depth: int = 0) -> Any:
        """Return a value that a schema allows, as far as its simple words say."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return "text"
        for name in ("const", "default", "example"):
            if name in schema:
                return schema[name]
        for name in ("examples", "enum"):
            if schema.get(name):
                return schema[name][0]
        if "$ref" in schema:
            return self.of(self._referred(schema["$ref"]), depth + 1)
        for name in ("anyOf", "oneOf", "allOf"):
            if schema.get(name):
                return self.of(schema[name][0], depth + 1)
        return self._of_type(schema, depth)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            fields = schema.get("properties", {})
            return {
                name: self.of(fields.get(name, {}), depth + 1)
                for name in schema.get("required", ())
            }
        if kind == "array":
            first = schema.get("prefixItems", ())
            count = max(schema.get("minItems", 0), len(first))
            items = [*first, *[schema.get("items", {})] * count][:count]
            return [self.of(item, depth + 1) for item in items]
        if kind in ("integer", "number"):
            return _number(schema, is_whole=kind == "integer")
        if kind == "string":
            text = "text" * (schema.get("minLength", 0) // 4 + 1)
            return text[: schema.get("maxLength", len(text))]
        return True if kind == "boolean" else None

    def _referred(self, reference: str) -> Any:
        found: Any = self._root
        for name in reference.removeprefix("#/").split("/"):
            found = found.get(name, {}) if isinstance(found, Mapping) else {}
        return found


def _number(schema: Mapping[str, Any], *, is_whole: bool) -> float:
    step: float = schema.get("multipleOf", 1 if is_whole else 0.5)
    lowest: float | None = schema.get("minimum", schema.get("exclusiveMinimum"))
    highest: float | None = schema.get("maximum", schema.get("exclusiveMaximum"))
    if lowest is not None:
        value = -(-lowest // step) * step
        return value + step if value == schema.get("exclusiveMinimum") else value
    if highest is not None and highest <= step:
        value = highest // step * step
        return value - step if value == schema.get("exclusiveMaximum") else value
    return step
