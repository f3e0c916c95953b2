"""The class of tools."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast

from callslip._base.attribute_names import knows_attributes
from callslip._base.backoff import requested_wait
from callslip._base.failure import (
    describe_failure,
    is_transient,
    log_failure,
    message_of,
    unwrap_group,
)
from callslip._base.json import ResultError, result_json, to_json
from callslip._base.option_names import knows_names
from callslip._base.options import check_flag, check_flags, check_one_of
from callslip._core import ToolSet
from callslip._threads.gate import Gate
from callslip._threads.timeout import awaited_within, within
from callslip.errors import ToolError, UsageError
from callslip.tools._approval import NeedsApproval, approval_traits, check_needs_approval
from callslip.tools._callable import (
    check_function,
    check_no_returns,
    check_queue,
    check_reconcile,
    check_texts,
    check_timeout,
    collect_result,
    doc_of,
    enclosing_names,
    is_async,
    name_of,
    object_schema,
)
from callslip.tools._context import Context, state_of, warn_of_no_deps
from callslip.tools._docstring import read_docstring
from callslip.tools._levels import ToolValues, level_traits
from callslip.tools._outcome import Fail, Outcome, Retry
from callslip.tools._pending import Pending, pending_call
from callslip.tools._retries import RetryOn, RetryRule
from callslip.tools._signature import Signature, read_signature

__all__ = ["Effect", "Reconcile", "Tool"]

P = ParamSpec("P")
R = TypeVar("R")

Effect: TypeAlias = Literal["once", "idempotent", "pure"]
"""The consequence of a crash during a call.

`"once"`: the call is not repeated. `"idempotent"`: it is repeated with the same `Context.key`.
`"pure"`: it is repeated freely.
"""

Reconcile: TypeAlias = "Callable[[Context], Any]"
"""A function that returns, after a crash, the result of a call, or `NotDone`. Sync or async."""


def _effect_of(effect: Effect | None, reconcile: Reconcile | None, *, readonly: bool) -> Effect:
    """Return the effect of a tool: that of the program, or else by what the tool changes.

    Raises:
        UsageError: There is no such effect, or `reconcile` has nothing to find out.
    """
    if effect is None:
        effect = "pure" if readonly and reconcile is None else "once"
    check_one_of("effect", effect, ("once", "idempotent", "pure"))
    if reconcile is None:
        return effect
    if effect != "once":
        raise UsageError(
            f"reconcile is for effect='once': a call with effect='{effect}' is repeated "
            "without asking"
        )
    check_reconcile(reconcile)
    return effect


_ELSEWHERE = {
    "arun invoke ainvoke run on_invoke_tool": "the tool as a function: tool(…)",
    "args args_schema input_schema params_json_schema schema": "tool.parameters",
    "func fn": "the tool as a function: tool(…)",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
class Tool(Generic[P, R]):
    """A function that a model may call, with its name, description and options.

    Calling the tool calls the function. The options are those of `tool`.

    Attributes:
        name: The name that the model writes.
        description: The description for the model.
        readonly: Whether the tool changes nothing. Such a call may start while the rest of its
            block is still arriving.
        effect: The consequence of a crash during a call; see `Effect`.
        reconcile: Returns the result of a call during which the process ended; `None` if that
            cannot be found out.
        repeatable: Whether the same call may be made any number of times.
        timeout: Seconds until an attempt at a call fails; `None` for no limit.
        gate: Limits the number of calls that run at once; `None` for no limit.
        needs_approval: Whether each call waits until a person approves it; or the function that
            decides this for each call.
        queue: The queue whose workers make the calls of runs in a database; `None` if they are made
            where the run is driven.
        untrusted: Whether results come from outside; see `Ticket.untrusted`.
        values: How well the origins of the arguments must be known; see `ValueLevel`.
        is_async: Whether the function is known to return a coroutine.
        awaits_on_loop: Whether a run on an event loop awaits `acall`, even if the tool is not
            async.
        reads_files: Whether calls find the images and files of their run in a folder, by name.
    """

    _function: Callable[P, R]
    name: str
    readonly: bool
    effect: Effect
    reconcile: Reconcile | None
    repeatable: bool
    timeout: float | None
    gate: Gate | None
    needs_approval: NeedsApproval
    queue: str | None = None
    untrusted: bool
    values: ToolValues
    is_async: bool
    awaits_on_loop: bool = False
    reads_files: bool = False

    def __init__(
        self,
        function: Callable[P, R],
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
        untrusted: bool = False,
        values: ToolValues = None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        check_function(function)
        effect = _effect_of(effect, reconcile, readonly=readonly)
        check_texts(name=name, description=description)
        check_flags(readonly=readonly, repeatable=repeatable, untrusted=untrusted)
        check_timeout(timeout)
        check_needs_approval(needs_approval)
        if queue is not None:
            check_queue(queue)
        self._retry_rule = RetryRule(retries, retry_on)
        self._schema: dict[str, Any] | None = None
        if isinstance(function, Tool):
            self._schema = function._schema
            function = function._function
        # Without its attributes: a callable object may have its own `name` or `timeout`.
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._names = names
        self._own_texts = name, description
        self.name = name if name is not None else name_of(function)
        self.readonly, self.effect = readonly, effect
        self.reconcile = reconcile
        self.repeatable = repeatable
        if retry_on is not None and retries is None and not self.retries:
            raise UsageError(
                "retry_on has no effect on a tool whose calls are not repeated: pass retries=… too"
            )
        self.timeout = timeout
        self.gate = None if concurrency is None else Gate(concurrency)
        self.needs_approval = needs_approval
        self.queue = queue
        self.untrusted, self.values = untrusted, values
        self.is_async = is_async(function)

    @staticmethod
    @knows_names("Tool.from_schema", {"input_schema": "parameters=…", "schema": "parameters=…"})
    def from_schema(
        function: Callable[..., Any] | None,
        *,
        parameters: Mapping[str, Any],
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
        needs_approval: bool = False,
        queue: str | None = None,
        external: bool = False,
        untrusted: bool = False,
        values: ToolValues = None,
        returns: Mapping[str, Any] | None = None,
    ) -> Tool[..., Any]:
        """Make a tool of a function and a JSON Schema. Only the hint of a `Context` is read.

        Args:
            function: A sync or async function, called with the arguments by keyword. `None` with
                `external=True`.
            parameters: JSON Schema of an object: the arguments, which are checked against it. `{}`
                admits any; `{"properties": {}}` admits none.
            name: The name that the model writes. Default: the function's name.
            description: The description for the model. Default: that of the docstring.
            readonly: As for `tool`. Default: `False`.
            effect: As for `tool`. Default: `"pure"` if `readonly`, else `"once"`.
            reconcile: As for `tool`. Default: `None`.
            repeatable: As for `tool`. Default: `False`.
            retries: As for `tool`. Default: 2 or 0, by the effect.
            retry_on: As for `tool`. Default: transient failures.
            timeout: As for `tool`. Default: `None`, no limit.
            concurrency: As for `tool`. Default: `None`, no limit.
            needs_approval: As for `tool`. Default: `False`.
            queue: As for `tool`. Default: `None`.
            external: As for `tool`. Default: `False`.
            untrusted: As for `tool`. Default: `False`.
            values: As for `tool`. Default: `None`, the level of the agent.
            returns: With `external=True`: JSON Schema of the results. Default: any JSON value.

        Raises:
            UsageError: `parameters` is not the schema of an object, or an option is wrong.
            ToolError: The function has no name, or the schema cannot be used.
        """
        options = {**locals(), "names": enclosing_names(sys._getframe(1))}
        return _from_schema(**options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function. The arguments are not checked."""
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        """Bind a tool that was made from a method, as a method is bound."""
        bind = getattr(self._function, "__get__", None)
        if bind is None or not (
            isinstance(self._function, classmethod)
            or (instance is not None and inspect.isfunction(self._function))
        ):
            return self
        bound = self._like(bind(instance, owner))
        bound.gate = self.gate
        bound._schema = self._schema
        return bound

    def _like(self, function: Callable[..., R]) -> Tool[..., R]:
        """Return a tool of another function with the same options, but for `concurrency`."""
        return Tool(function, names=self._names, **self._options())

    def _options(self) -> dict[str, Any]:
        """Return the options of the tool without `concurrency`."""
        names = ("readonly", "effect", "reconcile", "repeatable", "timeout", "needs_approval")
        return {
            "name": self._own_texts[0],
            "description": self._own_texts[1],
            **{name: getattr(self, name) for name in (*names, "queue", "untrusted", "values")},
            "retries": self._retry_rule.retries,
            "retry_on": self._retry_rule.retry_on,
        }

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: object) -> Tool[P, R]:
        # As a function is not copied.
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return the name of a tool of a module, or else its function and options."""
        name = str(getattr(self, "__qualname__", ""))
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        most = None if self.gate is None else self.gate.limit
        options = {**self._options(), "concurrency": most}
        return _tool_again, (type(self), self._function, options, self._schema)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"

    @functools.cached_property
    def _documentation(self) -> tuple[str, dict[str, str]]:
        return read_docstring(doc_of(self._function))

    @functools.cached_property
    def description(self) -> str:
        """The description for the model."""
        own = self._own_texts[1]
        return own if own is not None else self._documentation[0]

    @property
    def retries(self) -> int:
        """How many further attempts the runtime makes at a call that failed."""
        return self._retry_rule.count(self.effect, readonly=self.readonly)

    @functools.cached_property
    def _signature(self) -> Signature:
        # Another thread may read it too: the names are dropped only once it is there.
        names = self._names
        known: Signature | None = self.__dict__.get("_signature")
        if known is not None:
            return known
        signature = read_signature(
            self._function,
            name=self.name,
            context_type=Context,
            descriptions={} if self._schema is not None else self._documentation[1],
            names=names,
            schema=self._schema,
        )
        self.__dict__["_signature"] = signature
        self._names = None
        return signature

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments.

        Raises:
            ToolError: The signature cannot be described.
        """
        return self._signature.parameters

    def _spec(self) -> str:
        """Return the specification of the tool for the core, as JSON text."""
        return to_json(
            {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
                "effect": self.effect,
                "readonly": self.readonly,
                "reconciles": self.reconcile is not None,
                "repeatable": self.repeatable,
                **approval_traits(self.needs_approval),
                **({} if self.queue is None else {"queue": self.queue}),
                **({"reads": self._signature.reads} if self._signature.reads else {}),
                **({"untrusted": True} if self.untrusted else {}),
                **level_traits(self.name, self.values, self.parameters),
                **self._external_traits(),
            }
        )

    def _external_traits(self) -> dict[str, Any]:
        """Return the members of the specification of a tool whose results come from outside."""
        return {}

    @property
    def external(self) -> bool:
        """Whether the tool is never called, and its results come from outside."""
        return False

    @functools.cached_property
    def wants_context(self) -> bool:
        """Whether a parameter is annotated with `Context`."""
        return self._signature.context is not None

    @functools.cached_property
    def _needs_deps(self) -> str | None:
        """The annotation of the `Context`, if its deps can't be `None`; else `None`."""
        try:
            return None if self.external else self._signature.needs_deps
        except ToolError:
            # The hints of a handler are read with its first call.
            return None

    @functools.cached_property
    def _direct(self) -> Callable[..., Awaitable[R]] | None:
        """The function, if a call only needs to await it with the arguments; else `None`."""
        plain = self.is_async and self.timeout is None and self._signature.is_plain
        plain = plain and self.queue is None
        # A subclass may bind its arguments differently.
        return cast("Any", self._function) if plain and type(self) is Tool else None

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Any:
        """Call the function with checked arguments. Returns the outcome, or an awaitable of it.

        Any exception of the function becomes an outcome, except those that end a program or task.
        """
        try:
            args, kwargs = self._bind(arguments, context)
            if self.timeout is None or self.is_async:
                result: Any = collect_result(self._function(*args, **kwargs), context)
            else:
                state = state_of(context)

                def function(*args: Any, **kwargs: Any) -> Any:
                    return collect_result(self._function(*args, **kwargs), context, state)

                result = within(self.timeout, function, args, kwargs, state=state, gate=self.gate)
        except Exception as error:  # noqa: BLE001  # the model reads every failure of a tool
            return self._failed(error, context)
        if hasattr(result, "__await__"):
            return self._await_outcome(result, context)
        return self._outcome_of_result(result)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Call the function with checked arguments, and await the outcome."""
        if not self.is_async or self.timeout is not None:
            outcome = self.call(arguments, context)
            return cast("Outcome", await outcome if hasattr(outcome, "__await__") else outcome)
        try:
            args, kwargs = self._bind(arguments, context)
            result: Any = await self._function(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  # the model reads every failure of a tool
            return self._failed(error, context)
        return self._outcome_of_result(result)

    async def _await_outcome(self, awaitable: Any, context: Context | None) -> Outcome:
        try:
            if self.timeout is None:
                result = await awaitable
            else:
                result = await awaited_within(self.timeout, awaitable)
        except Exception as error:  # noqa: BLE001  # the model reads every failure of a tool
            return self._failed(error, context)
        return self._outcome_of_result(result)

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        return self._signature.bind(arguments, context)

    def _outcome_of_result(self, result: Any) -> Outcome:
        """Return the outcome of a call that returned `result`."""
        if isinstance(result, (Retry, Fail)):
            return self._outcome_of_error(result)
        if isinstance(result, Pending):
            # The runtime takes it in place of an outcome.
            return cast("Outcome", pending_call(result, self.name, self._function))
        if hasattr(result, "__next__"):
            try:
                result = collect_result(result, None)
            except Exception as error:  # noqa: BLE001  # as above
                return self._outcome_of_error(error)
        try:
            return Outcome.Ok(*result_json(result))
        except (ResultError, MemoryError) as error:
            return self._outcome_of_error(error)

    def _failed(self, error: Exception, context: Context | None) -> Outcome:
        """Return the outcome of a call that raised `error`, and warn of missing deps."""
        warn_of_no_deps(self.name, error, context)
        return self._outcome_of_error(error)

    def _outcome_of_error(self, error: Exception) -> Outcome:
        """Return the outcome of a call that raised `error`."""
        signal = unwrap_group(error)
        if isinstance(signal, Retry):
            return Outcome.Retry(message_of(signal) or f"call '{self.name}' again")
        log_failure(self.name, error)
        text = f"Error calling tool '{self.name}': {describe_failure(error)}."
        again = self._retry_rule.applies_to(self.name, error)
        wait = requested_wait(error) if again else None
        return Outcome.Error(text, transient=is_transient(error), again=again, wait=wait)


def _tool_again(
    kind: type[Tool[..., Any]], function: Any, options: dict[str, Any], schema: Any
) -> Tool[..., Any]:
    """Make a pickled tool."""
    made = kind(function, **options)
    made._schema = schema
    return made


def _from_schema(
    function: Any, parameters: object, *, external: bool, returns: Any, **options: Any
) -> Tool[..., Any]:
    check_flag("external", external)
    made: Tool[..., Any]
    if external:
        from callslip.tools._external import external_tool

        made = external_tool(function, returns=returns, **options)
    else:
        check_no_returns(returns)
        made = Tool(function, **options)
    made._schema = object_schema(parameters)
    # Faults of the schema are reported now, not with the first agent.
    ToolSet([made._spec()])
    return made
