"""Calls that may take no longer than a time, and how the thread of one learns that it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from callslip._gate import Gate
    from callslip.tools import CallState, Context

__all__ = ["awaited_within", "state_of", "within"]


class _Alone:
    """The state of a call that no run makes."""

    cancelled = False


def state_of(context: Context | None) -> CallState:
    """Return what tells whether the call under way here was given up."""
    from callslip._session import call_here

    own = None if context is None else context._call  # noqa: SLF001
    return own or call_here() or cast("CallState", _Alone())


def within(
    seconds: float,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: Any,
    *,
    state: CallState,
    gate: Gate | None,
) -> Any:
    """Call in a thread of its own and give it up after a time.

    Args:
        seconds: The time.
        function: Called with `args` and `kwargs`.
        args: Its arguments by position.
        kwargs: Its arguments by name.
        state: Told where it is given up.
        gate: What bounds the calls at once: the thread is inside as long as it runs.
    """
    import threading
    from concurrent.futures import Future
    from contextvars import copy_context

    future: Future[Any] = Future()
    context = copy_context()
    leave = None if gate is None else gate.share()

    def perform() -> None:
        try:
            try:
                result = context.run(function, *args, **kwargs)
            finally:
                if leave is not None:
                    leave()
        except BaseException as error:  # noqa: BLE001  # it is the waiter's to handle
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
