"""A call in one line, as people approve it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from callslip._base import _lazy
from callslip._base.unseen import replace_unseen

__all__ = ["call_line", "printable"]

_OPERATION = re.compile(r"[A-Z]+ /")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def call_line(tool: str, arguments: Mapping[str, Any] | None) -> str:
    """Return `tool {"name": value}`; for an operation, `METHOD /path/value {"name": value}`."""
    if arguments is None:
        return printable(tool)
    rest = dict(arguments)
    if _OPERATION.match(tool):

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            value = arguments.get(name)
            if not isinstance(value, str | int | float):
                return match[0]
            rest.pop(name, None)
            text = value if isinstance(value, str) else json.dumps(value)
            return _lazy.urllib_parse.quote(text, safe="")

        tool = _PLACEHOLDER.sub(fill, tool)
    return printable(f"{tool} {json.dumps(rest, ensure_ascii=False)}" if rest else tool)


def printable(text: str) -> str:
    """Return text in one line, which can't move a cursor, hide text or turn its direction."""
    if text.isprintable() and text.isascii():
        return text
    text = replace_unseen(text, _escaped)
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _escaped(one: str) -> str:
    return json.dumps(one)[1:-1]
