"""Calling a function of the program, sync or async, on an event loop or in this thread."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from callslip._threads import pool
from callslip.tools._callable import is_async

__all__ = ["called", "called_sync"]


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function on an event loop. A sync function is called in a thread of the pool."""
    result = function(*args) if is_async(function) else await pool.in_thread(function, *args)
    return await result if inspect.isawaitable(result) else result


def called_sync(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in this thread; if it is async, it is awaited on the private loop."""
    result = function(*args)
    if not inspect.isawaitable(result):
        return result
    awaiting = pool.on_loop(pool.coroutine_of(result))
    try:
        return awaiting.result().get()
    finally:
        awaiting.cancel()
