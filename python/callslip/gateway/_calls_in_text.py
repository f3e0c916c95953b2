"""Earlier calls that smolagents sends as text, in the form of a Python list."""

from __future__ import annotations

import ast
import json
from typing import Any, NamedTuple

__all__ = ["CallInText", "result_in"]

_CALLS = "Calling tools:\n"
_RESULT = "Observation:\n"
_MOST = 100_000
"""Characters of a list that is read: no other request is served meanwhile."""


class CallInText(NamedTuple):
    """A call with the text before it.

    Attributes:
        before: The text before it.
        id: Its id.
        tool: The name of the tool.
        arguments: The arguments as JSON.
    """

    before: str
    id: str
    tool: str
    arguments: str

    @classmethod
    def read(cls, text: str) -> CallInText | None:
        """Return the call at the end of a reply; `None` for any other text.

        Several calls stay text: their results follow in one text, with no mark between them.
        """
        before, mark, listed = text.rpartition(_CALLS)
        if not mark or (before and not before.endswith("\n")) or len(listed) > _MOST:
            return None
        try:
            match ast.literal_eval(listed):
                case [
                    {
                        "id": str(own),
                        "type": "function",
                        "function": {"name": str(tool), "arguments": dict(arguments)},
                    }
                ]:
                    return cls(before.strip(), own, tool, _json(arguments))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
        return None


def _json(arguments: dict[Any, Any]) -> str:
    """Return arguments as JSON.

    Raises:
        ValueError: JSON would change a key.
    """
    written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    if json.loads(written) != arguments:
        raise ValueError("expected arguments of JSON: got others")
    return written


def result_in(text: str, own: str) -> tuple[str, bool] | None:
    """Return the result of the call in a text of the user, and whether the call failed.

    Args:
        text: The text after the call.
        own: The id of the call.
    """
    if text.startswith(_RESULT):
        return text.removeprefix(_RESULT), False
    failed = f"Call id: {own}\n"
    return (text.removeprefix(failed), True) if text.startswith(failed) else None
