"""Callables as tools: their names and docstrings, checks of options, and results of generators."""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from callslip._base import _lazy
from callslip._base.json import ResultError, from_json, to_json
from callslip._base.options import check_seconds, check_text
from callslip.errors import ToolError, UsageError
from callslip.tools._context import CallState, Context, state_of
from callslip.tools._outcome import Fail

__all__ = [
    "check_function",
    "check_no_returns",
    "check_queue",
    "check_reconcile",
    "check_texts",
    "check_timeout",
    "collect_result",
    "doc_of",
    "enclosing_names",
    "is_async",
    "json_schema",
    "name_of",
    "object_schema",
]

_MOST_ITEMS = 1_000_000
"""The most items that a generator may yield."""
_MOST_BYTES = 256 << 20
"""The most bytes of memory that the items of a generator may take."""

_TURN = 0.01
"""Seconds for which an async generator may hold its event loop, if each item takes less."""


def name_of(function: Any) -> str:
    plain = function
    while isinstance(plain, functools.partial):
        plain = plain.func
    name = getattr(plain, "__name__", None) or type(plain).__name__
    if name == "<lambda>":
        raise ToolError("a lambda has no name that a model could write: use tool(name=…)")
    return str(name)


def doc_of(function: Any) -> str:
    plain = function
    while isinstance(plain, functools.partial):
        plain = plain.func
    if not (inspect.isroutine(plain) or inspect.isclass(plain)):
        call = getattr(type(plain), "__call__", None)  # noqa: B004
        # Not `getdoc`, which would return the docstring of `object.__call__`.
        if own := getattr(call, "__doc__", None):
            return inspect.cleandoc(own)
        plain = type(plain)
    if inspect.isclass(plain):
        return _doc_of_class(plain)
    return inspect.getdoc(plain) or ""


def _doc_of_class(plain: type) -> str:
    """Return the docstring of a class or of a base class that is not a library's."""
    for one in inspect.getmro(plain):
        own = vars(one).get("__doc__")
        if isinstance(own, str) and (one is plain or not _is_library(one)):
            return inspect.cleandoc(own)
    return ""


def _is_library(one: type) -> bool:
    package = one.__module__.partition(".")[0]
    return package == "pydantic" or package in sys.stdlib_module_names


def is_async(function: Any) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    call = getattr(function, "__call__", None)  # noqa: B004
    return not inspect.isroutine(function) and inspect.iscoroutinefunction(call)


def collect_result(result: Any, context: Context | None, state: CallState | None = None) -> Any:
    """Return a list of the items of a generator, or an awaitable of the list if it is async.

    Args:
        result: The value that the function returned. Any other value is returned as it is.
        context: The context of the call.
        state: The state of the call. Default: the state that belongs to `context`.
    """
    if hasattr(result, "__next__"):
        return _collect(result, state or state_of(context))
    if hasattr(result, "__anext__"):
        return _collect_async(result)
    return result


def _collect(generator: Any, state: CallState) -> list[Any]:
    """Collect items until the generator ends or the call is cancelled."""
    items = _BoundedItems()
    try:
        for item in generator:
            items.add(item)
            if state.cancelled:
                break
    finally:
        close = getattr(generator, "close", None)
        if close is not None:
            close()
    return items.all


class _BoundedItems:
    """The items of a generator so far. A generator may be endless, so they are limited."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._bytes = 0

    def add(self, item: Any) -> None:
        """Add an item.

        Raises:
            Fail: The items are too many, or too large.
        """
        self.all.append(item)
        self._bytes += _size(item)
        if len(self.all) > _MOST_ITEMS:
            bound = f"{_MOST_ITEMS:,} items"
        elif self._bytes > _MOST_BYTES:
            bound = f"{_MOST_BYTES:,} bytes"
        else:
            return
        raise Fail(f"the tool gives more than {bound}, and may have no end: ask for less of it")


def _size(item: Any) -> int:
    size = sys.getsizeof(item, 64)
    if isinstance(item, dict):
        return size + sum(sys.getsizeof(one, 64) for one in item.values())
    if isinstance(item, list | tuple | set):
        return size + sum(sys.getsizeof(one, 64) for one in item)
    return size


async def _collect_async(generator: Any) -> list[Any]:
    """Collect items. The event loop gets its turn even if the generator never waits."""
    items = _BoundedItems()
    began = perf_counter()
    try:
        async for item in generator:
            items.add(item)
            if perf_counter() - began > _TURN:
                await _lazy.asyncio.sleep(0)
                began = perf_counter()
    finally:
        close = getattr(generator, "aclose", None)
        if close is not None:
            await close()
    return items.all


def enclosing_names(frame: Any) -> dict[str, Any] | None:
    """Return the local names of the function that creates a tool, for annotations that are text."""
    if frame.f_locals is frame.f_globals:
        return None
    return dict(frame.f_locals)


def check_texts(**texts: object) -> None:
    """Raise `UsageError` if an option is neither text nor `None`."""
    for option, text in texts.items():
        if text is not None:
            check_text(option, text)


def check_timeout(timeout: object) -> None:
    """Raise `UsageError` unless this is a time limit. An infinite one is none, too."""
    if timeout != math.inf:
        check_seconds("timeout", timeout, zero=False, none="no limit")


def json_schema(option: str, schema: object) -> dict[str, Any]:
    """Return a copy of a JSON Schema.

    Raises:
        UsageError: It is no mapping, or is not JSON.
    """
    if not isinstance(schema, Mapping):
        raise UsageError(
            f"expected {option} as a JSON Schema: got {type(schema).__name__}: pass "
            "{'type': 'string'}, for example"
        )
    try:
        copy: dict[str, Any] = from_json(to_json(schema))
    except ResultError as error:
        raise UsageError(f"expected {option} as JSON: {error}") from None
    return copy


def object_schema(parameters: object) -> dict[str, Any]:
    """Return a copy of the JSON Schema of an object.

    Raises:
        UsageError: It is not one, or is not JSON.
    """
    if not isinstance(parameters, Mapping):
        raise UsageError(
            "expected parameters as the JSON Schema of an object: got "
            f"{type(parameters).__name__}: pass {{'type': 'object', 'properties': {{…}}}}"
        )
    schema = json_schema("parameters", parameters)
    kind = schema.setdefault("type", "object")
    if kind != "object":
        raise UsageError(f"expected parameters of the type 'object': got {kind!r}")
    # Without any, JSON Schema admits any object.
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise UsageError(
            f"expected properties of parameters as an object: got {type(properties).__name__}"
        )
    return schema


def check_no_returns(returns: object) -> None:
    """Raise `UsageError` if the type of results is given for a tool that is called."""
    if returns is not None:
        raise UsageError(
            "returns is the schema of results that come from outside: got one for a function that "
            "is called; pass external=True too"
        )


_QUEUE = re.compile(r"[a-z][a-z0-9_]{0,29}")


def check_queue(queue: object) -> None:
    """Raise `UsageError` unless this is the name of a queue."""
    if not isinstance(queue, str) or not _QUEUE.fullmatch(queue):
        raise UsageError(
            "expected the name of a queue as a lowercase letter, then lowercase letters, digits "
            f"and _, at most 30: got {queue!r}"
        )
    if queue == "later":
        raise UsageError(
            "expected the name of a queue other than 'later', the queue of runs that begin later: "
            "got 'later'; use another name"
        )


def check_reconcile(reconcile: object) -> None:
    """Raise `UsageError` if `reconcile` cannot be called with a context.

    It is called after a crash, when it is too late to correct it.
    """
    if not callable(reconcile):
        raise UsageError(f"expected reconcile to be a function: got {reconcile!r}")
    try:
        inspect.signature(reconcile).bind(None)
    except TypeError as error:
        raise UsageError(
            f"reconcile is called with the Context of the call and nothing else: {error}"
        ) from None
    except ValueError:  # a builtin without a signature
        return


def check_function(function: object) -> None:
    """Raise `UsageError` if this is no function that can be a tool."""
    if not callable(function) and not isinstance(function, classmethod):
        raise UsageError(
            f"expected a function as a tool: got {type(function).__name__}; {_advice(function)}"
        )


def _advice(given: object) -> str:
    """Return a hint for an object that is no function."""
    if isinstance(given, str):
        return "pass the function itself, not its name"
    if isinstance(given, Mapping):
        return "pass a schema to Tool.from_schema(function, …)"
    if isinstance(given, (list, tuple, set, frozenset)):
        return "pass its items: tools=[*tools]"
    if inspect.iscoroutine(given):
        given.close()
        return "pass the async function itself, without calling it"
    if hasattr(given, "as_tool"):
        return "pass agent.as_tool()"
    return "pass a function with annotated arguments, or a Tool"
