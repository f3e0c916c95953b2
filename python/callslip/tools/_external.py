"""Tools that are never called: their results come from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from callslip._base.json import to_json
from callslip._core import Outcome, ToolSet
from callslip.errors import ToolError, UsageError
from callslip.tools._callable import json_schema
from callslip.tools._returns import described
from callslip.tools._signature import read_return
from callslip.tools._tool import Tool

__all__ = ["ExternalTool", "external_tool"]

P = ParamSpec("P")
R = TypeVar("R")

_OF_CALLS = {
    "effect": None,
    "reconcile": None,
    "retries": None,
    "retry_on": None,
    "concurrency": None,
    "queue": None,
}
"""The options of `tool` that say how calls are made, with their defaults."""

_EFFECT = {"effect": "once"}
"""That of every external tool: what others do is not repeated here."""


class ExternalTool(Tool[P, R]):
    """A declared tool: a call waits for `Run.answer`, and the function is not called.

    Args:
        function: Its parameters are those of the tool, and what it returns is the type of results.
        returns: JSON Schema of the results, in place of that type. Default: the type.
        asks: Whether results are chosen from the argument `choices`; see `ask_user`.
        options: The options of `tool`.

    Raises:
        UsageError: An option is about how calls are made, or has a wrong value.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        returns: Mapping[str, Any] | None = None,
        asks: bool = False,
        **options: Any,
    ) -> None:
        for name, default in _OF_CALLS.items():
            if options.get(name, default) not in (default, _EFFECT.get(name)):
                raise UsageError(
                    f"expected no {name} with external=True: got {options[name]!r}, and nothing is "
                    f"called; pass an ordinary tool, or no {name}"
                )
        super().__init__(function, **{**options, **_EFFECT})
        self._own_returns = None if returns is None else _usable(returns)
        self._asks = asks
        # `Tool` drops its own once the signature is read.
        self._return_names: Mapping[str, Any] = options.get("names") or {}

    def _options(self) -> dict[str, Any]:
        own = {"returns": self._own_returns, "asks": self._asks}
        return {**super()._options(), **own, "retries": None, "retry_on": None}

    @property
    def external(self) -> bool:
        """Whether the tool is never called: always."""
        return True

    @functools.cached_property
    def _returns(self) -> dict[str, Any] | None:
        """JSON Schema of the results; `None` for any JSON value."""
        if self._own_returns is not None:
            return self._own_returns
        if self._schema is not None or self._asks:
            return None
        hint, names = read_return(self._function, self.name, self._return_names)
        try:
            return described(hint, names).schema or None
        except UsageError as error:
            raise ToolError(f"tool '{self.name}': {error}") from error

    def _external_traits(self) -> dict[str, Any]:
        traits: dict[str, Any] = {}
        if self._returns is not None:
            traits["returns"] = self._returns
        if self._asks:
            traits["asks"] = True
        if self.timeout is not None and self.timeout != float("inf"):
            traits["timeout"] = self.timeout
        return {"external": traits}

    def _like(self, function: Callable[..., R]) -> Tool[..., R]:
        """Return a tool of another function with the same options."""
        return ExternalTool(
            function,
            returns=self._own_returns,
            asks=self._asks,
            name=self._own_texts[0],
            description=self._own_texts[1],
            readonly=self.readonly,
            repeatable=self.repeatable,
            timeout=self.timeout,
            needs_approval=self.needs_approval,
            untrusted=self.untrusted,
            values=self.values,
            names=self._return_names,
        )

    def call(self, arguments: Mapping[str, Any], context: object) -> Outcome:  # noqa: ARG002
        """Return a failure: a run that began before the tool was external may make calls of it."""
        return Outcome.Error(
            f"Error calling tool '{self.name}': its results come from outside now, and this call "
            "was made before that."
        )

    async def acall(self, arguments: Mapping[str, Any], context: object) -> Outcome:
        """Return a failure. As `call`."""
        return self.call(arguments, context)


def _usable(returns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the JSON Schema of results, by which they can be checked.

    Raises:
        UsageError: It is none.
    """
    schema = json_schema("returns", returns)
    try:
        ToolSet.check_returns(to_json(schema))
    except UsageError as error:
        raise UsageError(f"expected returns as a JSON Schema: {error}") from error
    return schema


def external_tool(function: Callable[..., Any] | None, **options: Any) -> ExternalTool[..., Any]:
    """Make a tool whose results come from outside, of a function or of a name alone.

    Raises:
        UsageError: There is neither, or as for `ExternalTool`.
    """
    if function is None:
        name = options.get("name")
        if name is None:
            raise UsageError("expected a name for a tool without a function: pass name='…'")

        def function() -> None:
            raise UsageError(f"the tool '{name}' is not called: call run.answer(ticket, value)")

    return ExternalTool(function, **options)
