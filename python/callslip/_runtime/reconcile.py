"""Calls that were under way when a process ended: what came of them is asked, if it can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from callslip._failure import in_one_line, is_failure, log_failure
from callslip.tools import Context, Fail, NotDone, Outcome, Retry, Tool

__all__ = ["Reconciling"]


class Reconciling:
    """A call that may have been made before: its tool's `reconcile` is asked first."""

    is_async = False
    awaits_on_loop = False

    def __init__(self, tool: Tool[..., Any]) -> None:
        self._tool = tool
        self.gate = tool.gate

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Any:
        """Ask what came of the call, and make it if nothing did. As `Tool.call`."""
        assert context is not None
        assert self._tool.reconcile is not None
        try:
            result = self._tool.reconcile(context)
        except BaseException as error:
            if not is_failure(error):
                raise
            result = error
        if hasattr(result, "__await__"):
            return self._awaited(result, arguments, context)
        return self._taken(result, arguments, context)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """As `call`, and wait for the outcome."""
        outcome = self.call(arguments, context)
        return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)

    async def _awaited(self, asked: Any, arguments: Mapping[str, Any], context: Context) -> Outcome:
        try:
            result = await asked
        except Exception as error:  # noqa: BLE001  # what it raises is an outcome
            result = error
        outcome = self._taken(result, arguments, context)
        return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)

    def _taken(self, result: object, arguments: Mapping[str, Any], context: Context) -> Any:
        if isinstance(result, NotDone):
            return self._tool.call(arguments, context)
        if isinstance(result, (Retry, Fail)) or not isinstance(result, BaseException):
            return self._tool._returned(result)
        log_failure(self._tool.name, result)
        return "in_doubt", (
            f"Error calling tool '{self._tool.name}': InDoubt: the process ended while this call "
            f"was under way, and asking what came of it failed ({in_one_line(result)}). Check "
            "before you make it again."
        )
