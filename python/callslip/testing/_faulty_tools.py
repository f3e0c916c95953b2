"""Tools that fail as a test plans it."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from callslip._base.options import shown
from callslip.errors import UsageError
from callslip.tools import Context, Tool, Tools
from callslip.tools._outcome import Outcome
from callslip.tools._toolbox import Toolbox

__all__ = ["FaultyTools", "ToolFault"]

ToolFault: TypeAlias = BaseException | type[BaseException] | Literal["ok"]
"""An exception that the tool raises, or `"ok"`: the tool is called."""


class FaultyTools(Toolbox):
    """Injects failures into tools, for the option `tools` of an agent.

    The model sees the same tools, and arguments are validated as before. Each attempt at a call,
    including the runtime's retries, uses the next item in the list for its tool. After the last
    item, calls work normally. In a `with` block, it calls `assert_done` at the end.

    Args:
        faults: By the name of the tool, what its calls lead to in their order; see `ToolFault`.
        tools: The tools, as for `Agent`.

    Raises:
        UsageError: There is no such tool, or an item is no exception and not `"ok"`; or `tools` are
            none.
        ToolError: As for `Agent`.
    """

    def __init__(self, faults: Mapping[str, Sequence[ToolFault]], tools: Tools) -> None:
        super().__init__(tools)
        made = dict(self._tools)
        if not isinstance(faults, Mapping):
            raise UsageError(
                f"expected faults as a dict of lists by the name of the tool: got {shown(faults)}"
            )
        self._left: dict[str, deque[ToolFault]] = {}
        for name, items in faults.items():
            if name not in made:
                known = ", ".join(map(repr, made))
                expected = (
                    f"the name of a tool, one of {known}" if known else "tools for the faults"
                )
                got = shown(name) if known else f"none, and faults of {shown(name)}"
                raise UsageError(f"expected {expected}: got {got}")
            self._left[name] = deque(_checked(name, items))
            made[name] = _with_faults(made[name], self._left[name])
        self._tools = made

    def assert_done(self) -> None:
        """Raise `AssertionError` if a tool was called less often than planned."""
        left = {name: list(items) for name, items in self._left.items() if items}
        if left:
            raise AssertionError(f"expected more calls of tools: got none for {left}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A failure of the test itself must not be replaced by that of the remaining faults.
        if kind is None:
            self.assert_done()


def _with_faults(tool: Tool[..., Any], left: deque[ToolFault]) -> Tool[..., Any]:
    """Return a tool that takes an item of `left` at each attempt at a call."""
    lock = threading.Lock()

    def failed() -> Outcome | None:
        with lock:
            item = left.popleft() if left else "ok"
        if isinstance(item, str):
            return None
        try:
            raise item  # noqa: TRY301  # the exception has a traceback, as that of a tool
        except Exception as error:  # noqa: BLE001  # the model reads every failure of a tool
            return tool._outcome_of_error(error)

    def call(arguments: Mapping[str, Any], context: Context | None) -> Any:
        return failed() or tool.call(arguments, context)

    async def acall(arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        return failed() or await tool.acall(arguments, context)

    # Not of a class of its own: the classes of tools make their calls in several ways.
    faulty = copy.copy(tool)
    vars(faulty).update(call=call, acall=acall, _direct=None)
    return faulty


def _checked(name: str, items: Sequence[ToolFault]) -> Sequence[ToolFault]:
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise UsageError(f"expected a list for the tool {name!r}: got {shown(items)}")
    for item in items:
        kind = item if isinstance(item, type) else type(item)
        if item != "ok" and not issubclass(kind, BaseException):
            raise UsageError(
                f"expected an exception, or 'ok', for the tool {name!r}: got {shown(item)}"
            )
    return items
