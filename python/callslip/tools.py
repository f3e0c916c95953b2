"""Tools: typed functions that a model may call.

    @tool(readonly=True)
    def calculator(expression: str) -> float:
        ...

The schema of the arguments comes from the hints, the descriptions from the docstring. Both are read
when an agent first needs them. A tool's outcome is the value it returns, `Retry` or `Fail` (raised
or returned), or any other exception it raises.
"""

from __future__ import annotations

import functools
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from callslip._failure import (
    Passing,
    in_one_line,
    is_transient,
    log_failure,
    lone,
    words_of,
)
from callslip._function import (
    check_reconcile,
    check_seconds,
    check_text,
    doc_of,
    is_async,
    name_of,
    scope,
    whole,
)
from callslip._json import ResultError, to_json
from callslip._timeout import awaited_within, state_of, within
from callslip.errors import ToolError

if TYPE_CHECKING:
    from callslip._core import Document
    from callslip._gate import Gate
    from callslip._signature import Signature

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

Effect: TypeAlias = Literal["once", "idempotent", "pure"]
"""After a crash in mid-call: not repeated, repeated with the ticket as key, repeated freely."""

Outcome: TypeAlias = tuple[str, str]
"""How a call ended: `ok` with the JSON of the result; `error`, `retry` or `in_doubt` with words."""

Reconcile: TypeAlias = "Callable[[Context], Any]"
"""Says after a crash what came of a call: its result, or `NotDone`. Sync or async."""


class CallState(Protocol):
    """What the parties to one call share of it.

    Attributes:
        cancelled: Whether the call was given up: nobody waits for its outcome any more.
    """

    cancelled: bool

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Tell who watches how far the call has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a tool is told about its call, where a parameter is annotated with it.

    Attributes:
        run_id: The run that calls.
        ticket_id: The ticket that this call completes: the same when a call is repeated.
        tool: The tool's name.
    """

    run_id: str
    ticket_id: str
    tool: str
    _call: CallState | None = field(default=None, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up, so that a long sync tool can stop.

        So it is once the run is cancelled, its time is over or the tool's `timeout` has passed.
        """
        return self._call is not None and self._call.cancelled

    @property
    def key(self) -> str:
        """Unique among the calls of all runs, and the same when a call is repeated."""
        return f"{self.run_id}/{self.ticket_id}"

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell who watches the run how far the call has come, as a `Progress`.

        From any thread. It never waits: what nobody watches, or reads in time, is dropped.

        Args:
            done: How much is done, in a unit of your own.
            total: How much there is to do; default unknown.
            message: What the tool is at.

        Raises:
            TypeError: A number is none, or the message is no string.
            ValueError: A number is not finite, or larger than any float.
        """
        _check_amount("done", done)
        if total is not None:
            _check_amount("total", total)
        if message is not None and not isinstance(message, str):
            raise TypeError(
                f"expected message of progress as a string: got {type(message).__name__}"
            )
        if self._call is not None:
            self._call.notice(self, done, total, message)


def _check_amount(name: str, amount: object) -> None:
    import math
    from numbers import Real

    if not isinstance(amount, Real):
        kind = type(amount).__name__
        raise TypeError(f"expected {name} of progress as a number: got {kind}")
    try:
        is_finite = math.isfinite(amount)
    except OverflowError:
        is_finite = False
    if not is_finite:
        got = amount if isinstance(amount, float) else "one larger than any float"
        raise ValueError(f"expected {name} of progress as a finite number: got {got}")


class Retry(Exception):  # noqa: N818  # a signal, not an error
    """Tells the model, in these words and no others, to try again. Raise it or return it."""


class Fail(Exception):  # noqa: N818  # a signal, not an error
    """Tells the model that the call failed, in the tool's own words. Raise it or return it.

    Attributes:
        is_transient: Whether it may pass by itself, so that the same call may be made again.
    """

    is_transient: bool = False


class NotDone(Exception):  # noqa: N818  # a signal, not an error
    """Says that a call did not take effect, so that it is made now.

    A tool's `reconcile` raises it or returns it.
    """


class Tool(Generic[P, R]):
    """A function with what a model needs to call it. Calling it calls the function.

    Attributes:
        name: As the model writes it.
        description: For the model.
        readonly: It changes nothing, and so may start before the rest of its block has arrived.
        effect: What a crash in mid-call means.
        reconcile: Asked what came of a call during which the process ended; `None` where nobody
            knows.
        repeatable: It polls: the guard against repetition does not apply.
        timeout: Seconds after which a call fails; `None` for no bound.
        gate: Bounds the calls of it that run at once; `None` for no bound.
        needs_approval: Each call waits until a person approves it.
        is_async: Whether calling it gives a coroutine for certain.
        awaits_on_loop: Whether a run on an event loop awaits `acall`, though it is not async.
    """

    _function: Callable[P, R]
    name: str
    readonly: bool
    effect: Effect
    reconcile: Reconcile | None
    repeatable: bool
    timeout: float | None
    gate: Gate | None
    needs_approval: bool
    is_async: bool
    awaits_on_loop: bool = False

    def __init__(
        self,
        function: Callable[P, R],
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
        names: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function) and not isinstance(function, classmethod):
            raise ToolError(f"a tool must be callable: got {type(function).__name__}")
        if effect not in {"once", "idempotent", "pure"}:
            raise ToolError(f"effect must be 'once', 'idempotent' or 'pure': got {effect!r}")
        if reconcile is not None and effect != "once":
            raise ToolError(
                f"reconcile is for effect='once': an {effect} call is repeated without asking"
            )
        if reconcile is not None:
            check_reconcile(reconcile)
        check_text("name", name)
        check_text("description", description)
        check_seconds("timeout", timeout)
        if not isinstance(needs_approval, bool):
            raise ToolError(f"needs_approval must be True or False: got {needs_approval!r}")
        if isinstance(function, Tool):
            function = function._function  # noqa: SLF001
        # Not its attributes: a callable object may have a `name` or `timeout` of its own.
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._names = names
        self._own_name = name
        self._own_description = description
        self.name = name if name is not None else name_of(function)
        self.readonly = readonly
        self.effect = effect
        self.reconcile = reconcile
        self.repeatable = repeatable
        self.timeout = timeout
        self.gate = None if concurrency is None else _gate(concurrency)
        self.needs_approval = needs_approval
        self.is_async = is_async(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, unchecked."""
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        """Bind a tool that was made of a method, as a method is bound."""
        bind = getattr(self._function, "__get__", None)
        if bind is None or not (
            isinstance(self._function, classmethod)
            or (instance is not None and inspect.isfunction(self._function))
        ):
            return self
        bound: Tool[..., R] = Tool(
            bind(instance, owner),
            name=self._own_name,
            description=self._own_description,
            readonly=self.readonly,
            effect=self.effect,
            reconcile=self.reconcile,
            repeatable=self.repeatable,
            timeout=self.timeout,
            needs_approval=self.needs_approval,
            names=self._names,
        )
        bound.gate = self.gate
        return bound

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"

    @functools.cached_property
    def _documentation(self) -> tuple[str, dict[str, str]]:
        from callslip._docstring import read_docstring

        return read_docstring(doc_of(self._function))

    @functools.cached_property
    def description(self) -> str:
        """What the tool does, for the model."""
        own = self._own_description
        return own if own is not None else self._documentation[0]

    @functools.cached_property
    def _signature(self) -> Signature:
        from callslip._signature import read_signature

        signature = read_signature(
            self._function,
            name=self.name,
            context_type=Context,
            descriptions=self._documentation[1],
            names=self._names,
        )
        self._names = None
        return signature

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments.

        Raises:
            ToolError: The signature can't be described.
        """
        return self._signature.parameters

    def spec(self) -> str:
        """Return what the core is told of the tool, as JSON text."""
        return to_json(
            {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
                "effect": self.effect,
                "readonly": self.readonly,
                "reconciles": self.reconcile is not None,
                "repeatable": self.repeatable,
                "needs_approval": self.needs_approval,
            }
        )

    @functools.cached_property
    def wants_context(self) -> bool:
        """Whether a parameter is annotated `Context`."""
        return self._signature.context is not None

    @functools.cached_property
    def direct(self) -> Callable[..., Awaitable[R]] | None:
        """The function itself, where a call is nothing but to await it with its arguments."""
        plain = self.is_async and self.timeout is None and self._signature.is_plain
        # A subclass may have arguments of its own making.
        return cast("Any", self._function) if plain and type(self) is Tool else None

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Any:
        """Call with checked arguments. Returns the outcome, or an awaitable of it.

        Whatever the function raises is an outcome; only what ends a program or a task passes.
        """
        try:
            args, kwargs = self._bind(arguments, context)
            if self.timeout is None or self.is_async:
                result: Any = whole(self._function(*args, **kwargs), context)
            else:
                state = state_of(context)

                def function(*args: Any, **kwargs: Any) -> Any:
                    return whole(self._function(*args, **kwargs), context, state)

                result = within(self.timeout, function, args, kwargs, state=state, gate=self.gate)
        except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
            return self.failed(error)
        if hasattr(result, "__await__"):
            return self._awaited(result)
        return self.returned(result)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Call with checked arguments and wait for the outcome."""
        if not self.is_async or self.timeout is not None:
            outcome = self.call(arguments, context)
            return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)
        try:
            args, kwargs = self._bind(arguments, context)
            result: Any = await self._function(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
            return self.failed(error)
        return self.returned(result)

    async def _awaited(self, awaitable: Any) -> Outcome:
        try:
            if self.timeout is None:
                result = await awaitable
            else:
                result = await awaited_within(self.timeout, awaitable)
        except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
            return self.failed(error)
        return self.returned(result)

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        return self._signature.bind(arguments, context)

    def returned(self, result: Any) -> Outcome:
        """Return the outcome of a call that gave this."""
        if isinstance(result, (Retry, Fail)):
            return self.failed(result)
        if hasattr(result, "__next__"):
            try:
                result = whole(result, None)
            except Exception as error:  # noqa: BLE001  # as above
                return self.failed(error)
        try:
            return "ok", to_json(result)
        except (ResultError, MemoryError) as error:
            return self.failed(error)

    def failed(self, error: Exception) -> Outcome:
        """Return the outcome of a call that raised this."""
        signal = lone(error)
        if isinstance(signal, Retry):
            return "retry", words_of(signal) or f"call '{self.name}' again"
        log_failure(self.name, error)
        told = f"Error calling tool '{self.name}': {in_one_line(error)}."
        return "error", Passing(told) if is_transient(error) else told


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
    names = scope(sys._getframe(1))  # noqa: SLF001

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


def _gate(concurrency: int) -> Gate:
    from callslip._gate import Gate

    try:
        return Gate(concurrency)
    except ValueError as error:
        raise ToolError(str(error)) from None
