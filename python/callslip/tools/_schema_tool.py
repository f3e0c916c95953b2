"""Tools with a given schema, instead of the hints of a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from callslip.tools import Context, Tool
from callslip.tools._signature import Signature

__all__ = ["Perform", "SchemaTool"]

Perform: TypeAlias = "Callable[[dict[str, Any], Context | None], Awaitable[Any] | Any]"
"""A function of checked arguments and the context of the call."""


class SchemaTool(Tool[..., Any]):
    """A tool that receives its arguments as one dict, described by a given JSON Schema.

    Args:
        perform: A function of the arguments and the `Context` of the call. Its return value or
            exception is the outcome, as for any tool.
        name: The name that the model writes.
        description: The description for the model.
        parameters: JSON Schema of the arguments: of an object.
        options: The other options of `tool`.
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
        """JSON Schema of the arguments."""
        return self._parameters

    @property
    def wants_context(self) -> bool:
        """Whether `perform` receives the context: always."""
        return True

    @property
    def _signature(self) -> Signature:
        return Signature(self._parameters, (), None, {}, {})

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        return [dict(arguments), context], {}
