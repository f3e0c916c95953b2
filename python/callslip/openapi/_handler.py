"""Python functions that handle operations of a document."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

from callslip.tools import Context, NeedsApproval, Tool
from callslip.tools._approval import either

__all__ = ["HandlerTool"]


class HandlerTool(Tool[..., Any]):
    """A handler called with the arguments of its operation."""

    def __init__(
        self, name: str, handler: Tool[..., Any] | Callable[..., Any], *, asks: NeedsApproval
    ) -> None:
        own = handler if isinstance(handler, Tool) else Tool(handler, name=name)
        super().__init__(
            own,
            name=name,
            readonly=own.readonly,
            effect=own.effect,
            repeatable=own.repeatable,
            timeout=own.timeout,
            needs_approval=either(own.needs_approval, asks),
            names=own._names,
        )
        self.gate = own.gate

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        signature = self._signature
        known = signature.parameters["properties"]
        further = signature.parameters["additionalProperties"] is not False
        renamed: dict[str, Any] = {}
        for name, value in arguments.items():
            python_name = name if name in known else _python_name(name)
            if python_name not in known:
                if not further:
                    raise TypeError(f"the handler takes no parameter '{python_name}'")
                python_name = name
            renamed[python_name] = value
        return signature.bind(renamed, context)


def _python_name(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) else plain
