"""A request that is made once more, without what its service refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from callslip._base.failure import message_of
from callslip.errors import UsageError
from callslip.models._retry_rules import status_of

__all__ = ["ask", "check_no_tools", "refusal_of"]

_READ = 4_000
"""Characters of a message that are read. Behind them some servers repeat the request."""
_OWN = ("tools", "tool_choice", "parallel_tool_calls")


def ask(send: Callable[[], object], learn: Callable[[Exception], bool]) -> object:
    """Call a client, and again as long as something is learnt of its refusal.

    Args:
        send: Makes the request by what is known.
        learn: Learns of an error, and returns whether to make another request.

    Returns:
        What the client returns, or an awaitable for it.

    Raises:
        BaseException: Whatever the client raises, unchanged.
    """
    while True:
        try:
            result = send()
        except Exception as error:
            if not learn(error):
                raise
        else:
            break
    if hasattr(result, "__await__"):
        return _awaited(cast("Awaitable[object]", result), send, learn)
    return result


async def _awaited(
    pending: Awaitable[object], send: Callable[[], object], learn: Callable[[Exception], bool]
) -> object:
    while True:
        try:
            return await pending
        except Exception as error:
            if not learn(error):
                raise
        pending = cast("Awaitable[object]", send())


def refusal_of(error: Exception) -> str:
    """Return what a service says of a request that it refuses; empty for another error."""
    return message_of(error)[:_READ] if status_of(error) in (400, 404) else ""


def check_no_tools(options: Mapping[str, object]) -> None:
    """Check that the options of a model hold no tools, which those of the run would replace.

    Raises:
        UsageError: They hold some.
    """
    for name in _OWN:
        if options.get(name) is not None:
            raise UsageError(
                f"expected the tools of the agent alone: got {name}= among the options of its "
                "model; pass tools= to the agent, or use another protocol"
            )
