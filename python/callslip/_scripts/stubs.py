"""Stubs of tools, against which a script is checked before it runs. No model reads them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callslip._scripts.engine import Function

__all__ = ["CALL", "stubs_for"]

CALL: Final = "call"
"""The function for tools without an identifier as their name."""

_TYPES: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "object": "dict[str, Any]",
    "null": "None",
}


def stubs_for(code: str, functions: Sequence[Function], *, is_async: bool) -> str:
    """Return the stubs of the tools that a script names.

    Args:
        code: The script.
        functions: The tools.
        is_async: Whether calls are awaited.
    """
    words = set(re.findall(r"\w+", code))
    named = [one for one in functions if one.name in words and _is_name(one.name)]
    define = "async def" if is_async else "def"
    lines = [f"{define} {one.name}({_parameters(one.schema)}) -> Any: ..." for one in named]
    general = f"{define} {CALL}(tool: str, /, **arguments: Any) -> Any: ..."
    return "\n".join(["from typing import Any", general, *lines, ""])


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _parameters(schema: Mapping[str, Any]) -> str:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    if not all(map(_is_name, properties)):
        return "*values: Any, **arguments: Any"
    written = [
        f"{name}: {_type(one)}{'' if name in required else ' = ...'}"
        for name, one in sorted(properties.items(), key=lambda item: item[0] not in required)
    ]
    if schema.get("additionalProperties", True) is not False:
        written.append("**arguments: Any")
    return ", ".join(written)


def _type(schema: object) -> str:
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not all(kind in _TYPES for kind in kinds):
        return "Any"
    return " | ".join(_TYPES[kind] for kind in kinds)
