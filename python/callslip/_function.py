"""What the callables of a tool say of themselves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from callslip.errors import ToolError

__all__ = ["check_reconcile", "doc_of", "is_async", "name_of", "scope", "whole"]


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
        # Not `getdoc`, which finds what `object` says of calling.
        if own := getattr(call, "__doc__", None):
            return inspect.cleandoc(own)
        plain = type(plain)
    return inspect.getdoc(plain) or ""


def is_async(function: Any) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    call = getattr(function, "__call__", None)  # noqa: B004
    return not inspect.isroutine(function) and inspect.iscoroutinefunction(call)


def whole(result: Any) -> Any:
    """Return the list of what a generator gives, or what is to be awaited for it."""
    if hasattr(result, "__next__"):
        return list(result)
    if hasattr(result, "__anext__"):
        return _gathered(result)
    return result


async def _gathered(generator: Any) -> list[Any]:
    return [item async for item in generator]


def scope(frame: Any) -> dict[str, Any] | None:
    """Names of the function in which a tool is made: annotations that are text may need them."""
    if frame.f_locals is frame.f_globals:
        return None
    return dict(frame.f_locals)


def check_reconcile(reconcile: Callable[..., Any]) -> None:
    """It is needed after a crash, which is too late to learn that it can't be called."""
    try:
        inspect.signature(reconcile).bind(None)
    except TypeError as error:
        raise ToolError(
            f"reconcile is called with the Context of the call and nothing else: {error}"
        ) from None
    except ValueError:  # a builtin without a signature
        return
