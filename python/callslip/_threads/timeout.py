"""Calls with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol

from callslip._base import _lazy

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callslip._threads.gate import Gate

__all__ = ["CanBeCancelled", "awaited_within", "within"]


class CanBeCancelled(Protocol):
    """An object that records that a call was given up."""

    cancelled: bool


def within(
    seconds: float,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: Any,
    *,
    state: CanBeCancelled,
    gate: Gate | None,
) -> Any:
    """Call a function in a thread of its own, and give the call up after a time.

    Args:
        seconds: The time limit.
        function: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        state: Its `cancelled` is set if the call is given up.
        gate: The gate whose slot the thread shares until the function returns.

    Raises:
        TimeoutError: The function has not returned within the time limit.
    """
    future: Future[Any] = _lazy.futures.Future()
    context = copy_context()
    leave = None if gate is None else gate.share()

    def perform() -> None:
        try:
            try:
                result = context.run(function, *args, **kwargs)
            finally:
                if leave is not None:
                    leave()
        except BaseException as error:  # noqa: BLE001  # raised by the future
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        threading.Thread(target=perform, name="callslip tool", daemon=True).start()
    except BaseException:
        if leave is not None:
            leave()
        raise
    try:
        return future.result(min(seconds, threading.TIMEOUT_MAX))
    except TimeoutError:
        if future.done():
            raise
        state.cancelled = True
        raise _too_late(seconds) from None


async def awaited_within(seconds: float, awaitable: Any) -> Any:
    """Await an object, and cancel it after a time.

    Raises:
        TimeoutError: The object was not done within the time limit.
    """
    try:
        async with _lazy.asyncio.timeout(seconds) as scope:
            return await awaitable
    except TimeoutError:
        if not scope.expired():
            raise
        raise _too_late(seconds) from None


def _too_late(seconds: float) -> TimeoutError:
    return TimeoutError(f"no result within {seconds:g} seconds")
