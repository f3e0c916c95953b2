"""Calls that were in progress when a process ended: their tool looks up the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from callslip._base.failure import describe_failure, is_failure, log_failure
from callslip.tools import Context, Fail, NotDone, Outcome, Retry, Tool

__all__ = ["Reconciling"]


class Reconciling:
    """A tool for a call that may have been made before: its `reconcile` is called first.

    Args:
        tool: The tool.
    """

    is_async = False
    awaits_on_loop = False

    def __init__(self, tool: Tool[..., Any]) -> None:
        self._tool = tool
        self.gate = tool.gate

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Any:
        """Look up the outcome of the call, and make the call if there is none. As `Tool.call`."""
        assert context is not None
        assert self._tool.reconcile is not None
        try:
            result = self._tool.reconcile(context)
        except BaseException as error:
            if not is_failure(error):
                raise
            result = error
        if hasattr(result, "__await__"):
            return self._wait(result, arguments, context)
        return self._outcome(result, arguments, context)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Look up or make the call, and wait for the outcome. As `Tool.acall`."""
        outcome = self.call(arguments, context)
        return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)

    async def _wait(self, lookup: Any, arguments: Mapping[str, Any], context: Context) -> Outcome:
        try:
            result = await lookup
        except Exception as error:  # noqa: BLE001  # an exception of `reconcile` is an outcome too
            result = error
        outcome = self._outcome(result, arguments, context)
        return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)

    def _outcome(self, result: object, arguments: Mapping[str, Any], context: Context) -> Any:
        if isinstance(result, NotDone):
            return self._tool.call(arguments, context)
        if isinstance(result, (Retry, Fail)) or not isinstance(result, BaseException):
            return self._tool._outcome_of_result(result)
        log_failure(self._tool.name, result)
        return Outcome.InDoubt(
            f"Error calling tool '{self._tool.name}': InDoubt: the process ended while this call "
            f"was under way, and asking what came of it failed ({describe_failure(result)}). Check "
            "before you make it again."
        )
