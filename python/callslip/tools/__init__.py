"""Tools: typed functions that a model may call.

    @tool(readonly=True)
    def calculator(expression: str) -> float:
        ...

The schema of the arguments comes from the hints, the descriptions from the docstring. Both are read
when an agent first needs them. The outcome of a call is the value that the tool returns, `Retry` or
`Fail` (raised or returned), or any other exception that it raises.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeAlias, TypeVar, overload

from callslip._base.option_names import knows_names
from callslip._base.options import check_flag
from callslip.errors import UsageError
from callslip.tools._approval import ApprovalCheck, NeedsApproval
from callslip.tools._ask_user import ask_user
from callslip.tools._callable import enclosing_names
from callslip.tools._context import Context
from callslip.tools._external import ExternalTool
from callslip.tools._levels import ToolValues, ValueLevel, Values
from callslip.tools._outcome import Fail, NotDone, Outcome, Retry
from callslip.tools._pending import Pending
from callslip.tools._retries import RetryOn
from callslip.tools._tool import Effect, Reconcile, Tool

if TYPE_CHECKING:
    from callslip._core import Document

__all__ = [
    "ApprovalCheck",
    "Context",
    "Effect",
    "Fail",
    "NeedsApproval",
    "NotDone",
    "Outcome",
    "Pending",
    "Retry",
    "RetryOn",
    "Tool",
    "ToolLike",
    "ToolSource",
    "ToolValues",
    "Tools",
    "ValueLevel",
    "Values",
    "ask_user",
    "tool",
]

P = ParamSpec("P")
R = TypeVar("R")


class ToolSource(ABC):
    """A source of several tools: a document, or a server that offers them.

    Attributes:
        document: The OpenAPI document, if the tools are its operations; `None` for other tools.
        on_same_name: Advice for the error that is raised if two tools have the same name.
    """

    document: Document | None = None
    on_same_name: str = ""

    def __deepcopy__(self, memo: object) -> Self:
        # Its connections are shared.
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise UsageError(
            f"expected an agent whose tools can be pickled: got {kind}(…), which has connections "
            "and keys of this process; make the agent where it is used, in a function"
        )

    @abstractmethod
    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the tools. Called once for each agent that is created with this source."""


ToolLike: TypeAlias = "Tool[..., Any] | Callable[..., Any]"

Tools: TypeAlias = "Sequence[object] | ToolSource"
"""The tools of an agent: functions, tools and sources of tools; or one source alone.

Each item is a `ToolLike` or a `ToolSource`, which is checked when the agent is made. mypy infers
`list[object]` for a list of tools with different parameters, so the type says no more.
"""


_ELSEWHERE = {
    "args_schema": "a function with type hints",
    "func": "the function first: tool(function)",
    "is_async": "an async function",
    "max_retries": "retries=…",
    "name_override": "name=…",
    "parallel": "concurrency=…",
    "read_only": "readonly=True",
    "readOnly": "readonly=True",
    "requires_approval": "needs_approval=True",
    "return_direct": "nothing: the model answers",
    "schema": "a function with type hints",
    "side_effects": "readonly=… or effect=…",
    "strict": "nothing: arguments are always checked",
}
"""Replacements for options of tools in other libraries."""


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    readonly: bool = False,
    effect: Effect | None = None,
    reconcile: Reconcile | None = None,
    repeatable: bool = False,
    retries: int | None = None,
    retry_on: RetryOn = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    needs_approval: NeedsApproval = False,
    queue: str | None = None,
    external: bool = False,
    untrusted: bool = False,
    values: ToolValues = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@knows_names("tool", _ELSEWHERE)
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    readonly: bool = False,
    effect: Effect | None = None,
    reconcile: Reconcile | None = None,
    repeatable: bool = False,
    retries: int | None = None,
    retry_on: RetryOn = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    needs_approval: NeedsApproval = False,
    queue: str | None = None,
    external: bool = False,
    untrusted: bool = False,
    values: ToolValues = None,
) -> Any:
    """Make a tool from a function: `@tool`, or `@tool(name=…, …)`.

    Args:
        function: A function, method, `partial` or callable object, sync or async, with type hints.
            A parameter annotated with `Context` receives the context, and no model sees it.
        name: The name that the model writes. Default: the function's name.
        description: The description for the model. Default: the docstring without its sections.
        readonly: Whether it changes nothing. Such a call may start while its block is arriving.
        effect: The consequence of a crash during a call; see `Effect`. Default: `"pure"` if the
            tool is `readonly`, else `"once"`.
        reconcile: With `effect="once"`: looks up what came of a call; see `Reconcile`.
        repeatable: Whether the same call may be made any number of times, as for polling.
        retries: Further attempts at a failed call, also if a second effect of a `"once"` call is
            possible. Default: 2 if the tool is `readonly`, `"idempotent"` or `"pure"`, else 0.
        retry_on: The failures to retry: an exception type, a tuple of types, or a function that
            is called with the exception. Default: transient failures.
        timeout: Seconds until an attempt fails; `None` for no limit. A sync function cannot be
            stopped: its result is dropped, and `Context.cancelled` is true.
        concurrency: The largest number of calls that run at once, over all runs; `None` for no
            limit. Waiting does not count towards `timeout`. A call inside another shares its slot.
        needs_approval: Whether calls wait until a person approves them; or an `ApprovalCheck`.
        queue: For runs in a database: the queue whose workers make the calls. Default: `None`.
        external: Whether the function is never called: each call waits for `Run.answer`, with a
            value of the type that the function returns. `timeout` counts from the call then.
        untrusted: Whether results come from outside, so that their text may be meant to mislead the
            model. Their tickets say so; see `Ticket.untrusted`.
        values: How well the origins of its arguments must be known: a `ValueLevel` for all of them,
            or a dict of those of some. Default: `None`, the level of the agent.

    Raises:
        UsageError: The function is not callable, or an option has a wrong value.
        ToolError: The function has no name; or, with the first agent, no signature to describe.
    """
    check_flag("external", external)
    options: dict[str, Any] = {**locals(), "names": enclosing_names(sys._getframe(2))}
    del options["function"], options["external"]
    kind: Any = ExternalTool if external else Tool
    decorate = partial(kind, **options)
    return decorate if function is None else decorate(function)
