"""Calls that may take no longer than a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.tools import CallState

__all__ = ["awaited_within", "within"]


def within(
    seconds: float,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: Any,
    state: CallState | None,
) -> Any:
    """Call in a thread of its own and give it up after a time."""
    import threading
    from concurrent.futures import Future
    from contextvars import copy_context

    future: Future[Any] = Future()
    context = copy_context()

    def perform() -> None:
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  # it is the waiter's to handle
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=perform, name="callslip tool", daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():
            raise
        if state is not None:
            state.cancelled = True
        raise _too_late(seconds) from None


async def awaited_within(seconds: float, awaitable: Any) -> Any:
    import asyncio

    try:
        async with asyncio.timeout(seconds) as scope:
            return await awaitable
    except TimeoutError:
        if not scope.expired():
            raise
        raise _too_late(seconds) from None


def _too_late(seconds: float) -> TimeoutError:
    return TimeoutError(f"no result within {seconds:g} seconds")
