"""Whether calls wait for approval: always, never, or as a function of the program decides."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from callslip import _lazy
from callslip._failure import describe_failure, log_failure
from callslip._threads import pool
from callslip.errors import UsageError
from callslip.tools._callable import is_async

if TYPE_CHECKING:
    from callslip.tools._context import Context

__all__ = [
    "ApprovalCheck",
    "NeedsApproval",
    "Verdict",
    "approval_traits",
    "check_needs_approval",
    "either",
    "verdict",
    "verdict_sync",
]

ApprovalCheck: TypeAlias = "Callable[[dict[str, Any], Context], bool | str | Awaitable[bool | str]]"
"""Decides whether a call needs approval, from its final arguments and its `Context`.

`False` makes the call. `True` waits for approval, and so does a text, which is the reason
(`Ticket.approval_reason`). If the function raises an exception, or returns anything else, the call
waits for approval. Sync or async.
"""

NeedsApproval: TypeAlias = "bool | ApprovalCheck"
"""Whether calls need approval: all, none, or those that a function chooses."""

Verdict: TypeAlias = "tuple[bool, str | None]"
"""Whether a call needs approval, and the reason."""


def check_needs_approval(option: object) -> None:
    """Raise `UsageError` if an option is neither a bool nor a function of two arguments."""
    if isinstance(option, bool):
        return
    if not callable(option):
        raise UsageError(
            f"needs_approval must be True, False or a function of the arguments and the Context: "
            f"got {option!r}"
        )
    try:
        inspect.signature(option).bind({}, None)
    except TypeError as error:
        raise UsageError(
            f"the function in needs_approval is called with the arguments of a call, as one dict, "
            f"and its Context: {error}"
        ) from None
    except ValueError:  # a builtin without a signature
        return


def approval_traits(needs_approval: NeedsApproval) -> dict[str, bool]:
    """Return the members of a tool's specification that say whether calls need approval."""
    is_bool = isinstance(needs_approval, bool)
    return {"needs_approval": needs_approval is True, "checks_approval": not is_bool}


def either(first: NeedsApproval, second: NeedsApproval) -> NeedsApproval:
    """Return the option with which a call needs approval if one of two options asks for it."""
    if isinstance(first, bool):
        return first or second
    if isinstance(second, bool):
        return second or first

    async def check(arguments: dict[str, Any], context: Context) -> bool | str:
        for one in (first, second):
            result = one(dict(arguments), context)
            answer = await result if inspect.isawaitable(result) else result
            if answer is not False:
                return answer
        return False

    return check


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
    if isinstance(check, bool):
        return True, None
    try:
        if is_async(check):
            result: Any = check(arguments, context)
        else:
            result = await pool.in_thread(check, arguments, context)
        if inspect.isawaitable(result):
            result = await result
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
    if isinstance(check, bool):
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
