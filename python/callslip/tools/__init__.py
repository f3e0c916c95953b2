"""Tools: typed functions that a model may call.

    @tool(readonly=True)
    def calculator(expression: str) -> float:
        ...

The schema of the arguments comes from the hints, the descriptions from the docstring. Both are read
when an agent first needs them. A tool's outcome is the value it returns, `Retry` or `Fail` (raised
or returned), or any other exception it raises.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, overload

from callslip.tools._callable import scope
from callslip.tools._context import Context
from callslip.tools._outcome import Fail, NotDone, Outcome, Retry
from callslip.tools._tool import Effect, Reconcile, Tool

if TYPE_CHECKING:
    from callslip._core import Document

__all__ = [
    "Context",
    "Effect",
    "Fail",
    "NotDone",
    "Outcome",
    "Retry",
    "Tool",
    "ToolLike",
    "ToolSource",
    "Tools",
    "tool",
]

P = ParamSpec("P")
R = TypeVar("R")


class ToolSource(ABC):
    """Where several tools come from: a document, or a server that offers them.

    Attributes:
        document: The OpenAPI document whose operations they are; `None` for tools that describe
            themselves.
        on_same_name: What to do where one of its tools has the name of another tool, for the error.
    """

    document: Document | None = None
    on_same_name: str = ""

    @abstractmethod
    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the tools. Asked once for each agent that is made with it."""


ToolLike: TypeAlias = "Tool[..., Any] | Callable[..., Any]"

Tools: TypeAlias = "Sequence[ToolLike | ToolSource] | ToolSource"
"""What an agent is given: functions, tools and sources of tools; or one source alone."""


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    readonly: bool = False,
    effect: Effect = "once",
    reconcile: Reconcile | None = None,
    repeatable: bool = False,
    timeout: float | None = None,
    concurrency: int | None = None,
    needs_approval: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    readonly: bool = False,
    effect: Effect = "once",
    reconcile: Reconcile | None = None,
    repeatable: bool = False,
    timeout: float | None = None,
    concurrency: int | None = None,
    needs_approval: bool = False,
) -> Any:
    """Make a tool of a function: `@tool`, or `@tool(name=…, …)`.

    Args:
        function: Sync or async, with hints; also a method, a `functools.partial` or a callable
            object. A parameter annotated `Context` is filled in and hidden from the model.
        name: Default: the function's.
        description: Default: the docstring without its sections.
        readonly: It changes nothing; then a call may start while its block is still arriving.
        effect: What a crash in mid-call means; see `Effect`.
        reconcile: With `effect="once"`: called with the `Context` of a call during which the
            process ended. It returns the call's result, or raises `NotDone` if there was no effect;
            then the call is made. Without it the model is told that the call is in doubt.
        repeatable: It polls: the same call may be made any number of times.
        timeout: Seconds after which a call fails. A sync function can't be stopped: it goes on in
            its thread, and its result is dropped. It can look at `Context.cancelled` and stop; a
            generator is closed at its next item.
        concurrency: Calls of it that run at once, over all runs; `None` for no bound. The time
            that a call waits for its turn is no part of its `timeout`. A call made from inside of
            another one is part of that one. A sync call that was given up counts until its thread
            has come back.
        needs_approval: Each call waits until a person approves it: `run.approve`.

    Raises:
        ToolError: It is not callable, or an option is out of range. A signature that can't be
            described raises when an agent is made.
    """
    names = scope(sys._getframe(1))

    def decorate(function: Callable[..., Any]) -> Tool[..., Any]:
        return Tool(
            function,
            name=name,
            description=description,
            readonly=readonly,
            effect=effect,
            reconcile=reconcile,
            repeatable=repeatable,
            timeout=timeout,
            concurrency=concurrency,
            needs_approval=needs_approval,
            names=names,
        )

    return decorate if function is None else decorate(function)
