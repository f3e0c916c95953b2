"""Verdicts on calls: whether a call needs approval, as a function of the program decides."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeAlias

from callslip._base import _lazy
from callslip._base.failure import describe_failure, log_failure
from callslip._runtime.called import called

if TYPE_CHECKING:
    from callslip.tools import Context, NeedsApproval

__all__ = ["Verdict", "verdict", "verdict_sync"]

Verdict: TypeAlias = "tuple[bool, str | None]"
"""Whether a call needs approval, and the reason."""


async def verdict(
    check: NeedsApproval, tool: str, arguments: dict[str, Any], context: Context
) -> Verdict:
    """Decide on an event loop whether a call needs approval. A sync check runs in a thread.

    Args:
        check: The check.
        tool: The name of the tool, for the log of failures.
        arguments: The final arguments, which the check may change without effect.
        context: The context of the call.
    """
    if isinstance(check, bool | str):
        return True, None
    try:
        result = await called(check, arguments, context)
    except Exception as error:  # noqa: BLE001  # a person decides then
        return _failed(tool, error)
    except _lazy.asyncio.CancelledError as error:
        task = _lazy.asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Something that the check awaited was cancelled.
        return _failed(tool, error)
    return _verdict(result)


def verdict_sync(
    check: NeedsApproval, tool: str, arguments: dict[str, Any], context: Context
) -> Verdict | Awaitable[Verdict]:
    """Decide in this thread whether a call needs approval. As `verdict`.

    Returns:
        The verdict; an awaitable of it if the check turns out to be async.
    """
    if isinstance(check, bool | str):
        return True, None
    try:
        result: Any = check(arguments, context)
    except Exception as error:  # noqa: BLE001  # a person decides then
        return _failed(tool, error)
    if inspect.isawaitable(result):

        async def awaited(*_: object) -> Any:
            return await result

        return verdict(awaited, tool, arguments, context)
    return _verdict(result)


def _verdict(result: object) -> Verdict:
    if result is False:
        return False, None
    if result is True or result == "":
        return True, None
    if isinstance(result, str):
        # Half of a surrogate pair can't be written down.
        return True, result.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    kind = type(result).__name__
    return True, f"the check failed: expected True, False or a reason as text: got {kind}"


def _failed(tool: str, error: BaseException) -> Verdict:
    log_failure(tool, error)
    return True, f"the check failed: {describe_failure(error)}"
