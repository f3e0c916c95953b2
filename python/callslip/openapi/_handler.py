"""Python functions that handle operations of a document."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

from callslip._core import Document
from callslip.openapi._tool import retries_of
from callslip.tools import Context, NeedsApproval, Tool
from callslip.tools._approval import either

__all__ = ["HandlerTool"]


class HandlerTool(Tool[..., Any]):
    """A handler called with the arguments of its operation."""

    def __init__(
        self,
        name: str,
        handler: Tool[..., Any] | Callable[..., Any],
        document: Document,
        *,
        asks: NeedsApproval,
        retries: int,
    ) -> None:
        # A handler that is a tool has its own options; any other function those of the operation.
        self._document = None if isinstance(handler, Tool) else document
        self._most_retries = retries
        own = handler if isinstance(handler, Tool) else Tool(handler, name=name)
        super().__init__(
            own,
            name=name,
            readonly=own.readonly,
            effect=own.effect,
            repeatable=own.repeatable,
            untrusted=own.untrusted,
            retries=own._retry_rule.retries,
            retry_on=own._retry_rule.retry_on,
            timeout=own.timeout,
            needs_approval=either(own.needs_approval, asks),
            names=own._names,
        )
        self.gate = own.gate

    @property
    def retries(self) -> int:
        """How many further attempts a failed call gets."""
        if self._document is None:
            return super().retries
        return retries_of(json.loads(self._document.spec(self.name)), self._most_retries)

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        signature = self._signature
        known = signature.parameters.get("properties", {})
        further = signature.parameters.get("additionalProperties") is not False
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
