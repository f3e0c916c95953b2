"""Tools whose schema is given, not read from the hints of a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from callslip.tools import Context, Tool
from callslip.tools._signature import Signature

__all__ = ["Perform", "SchemaTool"]

Perform: TypeAlias = "Callable[[dict[str, Any], Context | None], Awaitable[Any] | Any]"
"""Makes a call of checked arguments."""


class SchemaTool(Tool[..., Any]):
    """A tool that gets its arguments as one dict, which a given JSON Schema describes.

    Args:
        perform: Called with the arguments and the call's `Context`. What it returns or raises is
            the outcome, as for any tool.
        name: As the model writes it.
        description: For the model.
        parameters: JSON Schema of the arguments, of an object.
        options: As for `tool`.
    """

    def __init__(
        self,
        perform: Perform,
        *,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        **options: Any,
    ) -> None:
        super().__init__(perform, name=name, description=description, **options)
        self._parameters = dict(parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as it was given."""
        return self._parameters

    @property
    def wants_context(self) -> bool:
        """Always."""
        return True

    @property
    def _signature(self) -> Signature:
        return Signature(self._parameters, (), None, {}, {})

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        return [dict(arguments), context], {}
