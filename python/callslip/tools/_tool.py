"""A function with what a model needs to call it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast

from callslip._failure import Passing, in_one_line, is_transient, log_failure, lone, words_of
from callslip._json import ResultError, to_json
from callslip._threads.gate import Gate
from callslip._threads.timeout import awaited_within, within
from callslip.errors import ToolError, UsageError
from callslip.tools._callable import (
    check_reconcile,
    check_seconds,
    check_text,
    doc_of,
    is_async,
    name_of,
    whole,
)
from callslip.tools._context import Context, state_of
from callslip.tools._docstring import read_docstring
from callslip.tools._outcome import Fail, Outcome, Retry

if TYPE_CHECKING:
    from callslip.tools._signature import Signature

__all__ = ["Effect", "Reconcile", "Tool"]

P = ParamSpec("P")
R = TypeVar("R")

Effect: TypeAlias = Literal["once", "idempotent", "pure"]
"""After a crash in mid-call: not repeated, repeated with the ticket as key, repeated freely."""

Reconcile: TypeAlias = "Callable[[Context], Any]"
"""Says after a crash what came of a call: its result, or `NotDone`. Sync or async."""


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
            function = function._function
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
        return read_docstring(doc_of(self._function))

    @functools.cached_property
    def description(self) -> str:
        """What the tool does, for the model."""
        own = self._own_description
        return own if own is not None else self._documentation[0]

    @functools.cached_property
    def _signature(self) -> Signature:
        from callslip.tools._signature import read_signature

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

    def _spec(self) -> str:
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
    def _direct(self) -> Callable[..., Awaitable[R]] | None:
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
            return self._failed(error)
        if hasattr(result, "__await__"):
            return self._awaited(result)
        return self._returned(result)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Call with checked arguments and wait for the outcome."""
        if not self.is_async or self.timeout is not None:
            outcome = self.call(arguments, context)
            return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)
        try:
            args, kwargs = self._bind(arguments, context)
            result: Any = await self._function(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
            return self._failed(error)
        return self._returned(result)

    async def _awaited(self, awaitable: Any) -> Outcome:
        try:
            if self.timeout is None:
                result = await awaitable
            else:
                result = await awaited_within(self.timeout, awaitable)
        except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
            return self._failed(error)
        return self._returned(result)

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        return self._signature.bind(arguments, context)

    def _returned(self, result: Any) -> Outcome:
        """Return the outcome of a call that gave this."""
        if isinstance(result, (Retry, Fail)):
            return self._failed(result)
        if hasattr(result, "__next__"):
            try:
                result = whole(result, None)
            except Exception as error:  # noqa: BLE001  # as above
                return self._failed(error)
        try:
            return "ok", to_json(result)
        except (ResultError, MemoryError) as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> Outcome:
        """Return the outcome of a call that raised this."""
        signal = lone(error)
        if isinstance(signal, Retry):
            return "retry", words_of(signal) or f"call '{self.name}' again"
        log_failure(self.name, error)
        told = f"Error calling tool '{self.name}': {in_one_line(error)}."
        return "error", Passing(told) if is_transient(error) else told


def _gate(concurrency: int) -> Gate:
    try:
        return Gate(concurrency)
    except UsageError as error:
        raise ToolError(str(error)) from None
