"""Type hints of functions, and of their contexts."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from callslip.errors import ToolError

__all__ = ["Resolver", "annotation_error", "context_with_deps", "is_context", "taken_with_deps"]

_EMPTY: Any = inspect.Parameter.empty


class Resolver:
    """Resolves annotations that are text."""

    def __init__(self, function: Callable[..., Any], tool: str, names: Mapping[str, Any]) -> None:
        plain = _plain_function(function)
        self._tool = tool
        self._globals = getattr(plain, "__globals__", {})
        self.names = dict(names)
        code, cells = getattr(plain, "__code__", None), getattr(plain, "__closure__", None)
        if code is not None and cells:
            for free, cell in zip(code.co_freevars, cells, strict=True):
                try:
                    self.names[free] = cell.cell_contents
                except ValueError:
                    continue
        for parameter in getattr(plain, "__type_params__", ()):
            self.names[parameter.__name__] = parameter

    def __call__(self, parameter: inspect.Parameter) -> Any:
        annotation = parameter.annotation
        if annotation is _EMPTY:
            return _EMPTY
        holder = types.SimpleNamespace(__annotations__={parameter.name: annotation})
        try:
            hints = typing.get_type_hints(
                holder, globalns=self._globals, localns=self.names, include_extras=True
            )
        except Exception as error:
            raise annotation_error(self._tool, parameter.name, annotation, error) from error
        return hints[parameter.name]


def annotation_error(tool: str, name: str, annotation: Any, error: Exception) -> ToolError:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    cause = str(error).strip().splitlines()
    if type(error).__name__ == "SchemaError" and cause:
        reason = cause[-1].removeprefix("error: ")
    else:
        # Only the first sentence: advice about pydantic's configuration follows.
        reason = cause[0].split(". ")[0] if cause else type(error).__name__
    if isinstance(error, NameError):
        hint = "import the name, not only under TYPE_CHECKING"
    else:
        hint = "use a type that has JSON, such as str, list[int], a dataclass or a TypedDict"
    return ToolError(
        f"tool '{tool}': the annotation of '{name}' ({text}) can't be used: {reason}; {hint}"
    )


def _plain_function(function: Any) -> Any:
    """Return the function in whose scope the annotations were written."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isfunction(function) or inspect.isbuiltin(function):
            return function
        elif inspect.isclass(function):
            return function.__init__
        elif inspect.ismethod(call := getattr(function, "__call__", None)):  # noqa: B004
            function = call
        else:
            return function


def is_context(annotation: Any, context_type: type) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_context(get_args(annotation)[0], context_type)
    if origin in {Union, types.UnionType}:
        return any(is_context(arg, context_type) for arg in get_args(annotation))
    # `Context[Deps]` has the class as its origin.
    plain = annotation if origin is None else origin
    return isinstance(plain, type) and issubclass(plain, context_type)


def context_with_deps(annotation: Any, context_type: type) -> str | None:
    """Return `Context[Deps]` as text, if the annotation is one and its deps can't be `None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return context_with_deps(get_args(annotation)[0], context_type)
    if origin in {Union, types.UnionType}:
        found = (context_with_deps(one, context_type) for one in get_args(annotation))
        return next((one for one in found if one is not None), None)
    if not (isinstance(origin, type) and issubclass(origin, context_type)):
        return None
    (deps,) = get_args(annotation)
    if _takes_none(deps):
        return None
    return f"{context_type.__name__}[{inspect.formatannotation(deps)}]"


def _takes_none(hint: Any) -> bool:
    """Whether a type includes `None`; `True` if this is unknown."""
    if hint is Any:  # a class, which takes no `isinstance`
        return True
    origin = get_origin(hint)
    if origin is Annotated:
        return _takes_none(get_args(hint)[0])
    if origin in {Union, types.UnionType}:
        return any(_takes_none(one) for one in get_args(hint))
    if origin is Literal:
        return None in get_args(hint)
    if type(hint).__name__ == "TypeAliasType":
        return _takes_none(hint.__value__)
    if isinstance(hint, typing.NewType):
        return _takes_none(hint.__supertype__)
    kind = hint if origin is None else origin
    if not isinstance(kind, type):
        return True
    try:
        return isinstance(None, kind)
    except TypeError:  # a protocol that is for type checkers only
        return False


def taken_with_deps(function: Callable[..., Any], context_type: type) -> str | None:
    """Return the context that a function takes, if its deps can't be `None`; else `None`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return None
    resolve = Resolver(function, "", {})
    for parameter in parameters:
        try:
            found = context_with_deps(resolve(parameter), context_type)
        except ToolError:
            # A local name of a function.
            continue
        if found is not None:
            return found
    return None
