"""Whether calls wait for approval: always, never, or as a function of the program decides."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip.errors import UsageError

if TYPE_CHECKING:
    from callslip.tools._context import Context

__all__ = [
    "ApprovalCheck",
    "NeedsApproval",
    "approval_traits",
    "check_needs_approval",
    "either",
]

ApprovalCheck: TypeAlias = "Callable[[dict[str, Any], Context], bool | str | Awaitable[bool | str]]"
"""Decides whether a call needs approval, from its final arguments and its `Context`.

`False` makes the call. `True` waits for approval, and so does a text, which is the reason
(`Ticket.approval_reason`). If the function raises an exception, or returns anything else, the call
waits for approval. Sync or async.
"""

NeedsApproval: TypeAlias = 'bool | Literal["untrusted"] | ApprovalCheck'
"""Whether calls need approval: all, none, or those that a function chooses.

`"untrusted"`: those with a value that stands in no trusted text; see `Origin`.
"""


def check_needs_approval(option: object) -> None:
    """Raise `UsageError` if an option is no bool, no `"untrusted"` and no suitable function."""
    if isinstance(option, bool) or option == "untrusted":
        return
    if not callable(option):
        raise UsageError(
            f"expected needs_approval to be True or False: got {option!r}: pass one of them, "
            "'untrusted', or a function of the arguments and the Context"
        )
    try:
        inspect.signature(option).bind({}, None)
    except TypeError as error:
        raise UsageError(
            f"expected needs_approval to take the arguments of a call, as one dict, and its "
            f"Context: {error}"
        ) from None
    except ValueError:  # a builtin without a signature
        return


def approval_traits(needs_approval: NeedsApproval) -> dict[str, bool]:
    """Return the members of a tool's specification that say whether calls need approval."""
    traits = {"needs_approval": needs_approval is True, "checks_approval": callable(needs_approval)}
    return traits | {"asks_untrusted": True} if needs_approval == "untrusted" else traits


def either(first: NeedsApproval, second: NeedsApproval) -> NeedsApproval:
    """Return the option with which a call needs approval if one of two options asks for it."""
    if isinstance(first, bool) or first == second:
        return first or second
    if isinstance(second, bool):
        return second or first
    if isinstance(first, str) or isinstance(second, str):
        # A function can't be asked before the values are traced, and more approval is never wrong.
        return True

    async def check(arguments: dict[str, Any], context: Context) -> bool | str:
        for one in (first, second):
            result = one(dict(arguments), context)
            answer = await result if inspect.isawaitable(result) else result
            if answer is not False:
                return answer
        return False

    return check
