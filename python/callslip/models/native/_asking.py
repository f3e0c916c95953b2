"""Requests, and their second form after a refusal of the service."""

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
    """Call a client, and call it again after a refusal if the next request will differ.

    Args:
        send: Makes a request.
        learn: Receives an error of the client. Returns whether `send` now makes another request.

    Returns:
        The client's result, or an awaitable for it.

    Raises:
        BaseException: An error of the client, unchanged.
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
    """Return the words of a service that refuses a request; an empty text for another error."""
    return message_of(error)[:_READ] if status_of(error) in (400, 404) else ""


def check_no_tools(options: Mapping[str, object]) -> None:
    """Check that the options of a model hold no tools: the tools of the run would replace them.

    Raises:
        UsageError: They hold some.
    """
    for name in _OWN:
        if options.get(name) is not None:
            raise UsageError(
                f"expected the tools of the agent alone: got {name}= among the options of its "
                "model; pass tools= to the agent, or use another protocol"
            )
