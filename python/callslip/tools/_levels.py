"""How well the origins of the values of a call must be known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from callslip._base.options import check_one_of
from callslip.errors import UsageError

__all__ = [
    "ToolValues",
    "ValueLevel",
    "Values",
    "check_level",
    "checked_level",
    "level_traits",
    "without_levels",
]

ValueLevel: TypeAlias = Literal["any", "stated", "strict", "trusted"]
"""The origin that the values of a call need; see `Origin`.

- `"any"`: none. They are not traced.
- `"stated"`: a value stands in a message of the user, a result, the instructions or the schema, or
  follows from one by a rule. A call with a value from nowhere is refused once. The same call again
  is made if the tool is `readonly`, and needs approval otherwise; without anybody to ask, it is
  refused again.
- `"strict"`: as `"stated"`, and an example in the schema is no origin. A call with a value from
  nowhere is never made. After two such calls in a row, only an answer may come.
- `"trusted"`: a call needs approval unless each value stands in a trusted text.
"""

ToolValues: TypeAlias = "ValueLevel | Mapping[str, ValueLevel] | None"
"""One level for all arguments of a tool, or levels by the names of arguments."""

_MARK: Final = "x-callslip-values"
_LEVELS: Final = ("any", "stated", "strict", "trusted")


@dataclass(frozen=True, slots=True)
class Values:
    """The level of a parameter, in its hint: `to: Annotated[str, Values("trusted")]`.

    The member `"x-callslip-values": "trusted"` in the JSON Schema of an argument says the same.
    Models do not see it. `tool(values={"to": …})` has precedence.

    Attributes:
        level: The level; see `ValueLevel`.

    Raises:
        UsageError: The level is unknown.
    """

    level: ValueLevel

    def __post_init__(self) -> None:
        check_level("Values", self.level)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), **self.mark}

    @property
    def mark(self) -> dict[str, Any]:
        """The member of the JSON Schema."""
        return {_MARK: self.level}


def without_levels(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments that somebody else has written, who may not set levels."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(schema)
    without = {
        name: {key: one for key, one in own.items() if key != _MARK}
        if isinstance(own, Mapping)
        else own
        for name, own in properties.items()
    }
    return {**schema, "properties": without}


def check_level(name: str, level: object) -> None:
    """Raise `UsageError` if an option is no level."""
    check_one_of(name, level, _LEVELS)


def checked_level(level: ValueLevel | None) -> ValueLevel | None:
    """Return the level of an agent; `None` if its model decides.

    Raises:
        UsageError: It is unknown.
    """
    if level is not None:
        check_level("values", level)
    return level


def level_traits(tool: str, values: object, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the member of a tool's specification that has the levels of its arguments.

    Raises:
        UsageError: A level is unknown, or the tool has no such argument.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        check_level("values", values)
        return {"values": {"": values}}
    properties = parameters.get("properties", {})
    for name, level in values.items():
        check_level(f"values[{name!r}]", level)
        if name not in properties:
            known = ", ".join(map(repr, properties)) or "none"
            raise UsageError(
                f"expected the arguments of '{tool}' in values: got {name!r}; it has {known}"
            )
    return {"values": dict(values)} if values else {}
