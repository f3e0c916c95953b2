"""Calls that have begun, and whose results come later, from outside."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from callslip._base.json import to_json
from callslip._base.options import check_known, check_seconds
from callslip.errors import ToolError, UsageError
from callslip.tools._returns import described
from callslip.tools._signature import read_return

__all__ = ["Pending", "PendingCall", "pending_call"]


class Pending:
    """Says that a call has begun, and that its result comes later. A tool returns it.

    The call then awaits a result, as one of a tool with `external=True` does. `TicketStore.answer`
    and `Run.answer` give it, from any process. A crash never repeats the call, whatever the
    `effect` of its tool is. What the function is annotated to return, apart from `Pending`, is the
    type of results.

    Args:
        key: By what the other system knows the call: text of 1 to 200 characters, unique among the
            runs of one owner and agent. Default: the call is answered by its run and ticket.
        timeout: Seconds from the opening of the ticket after which the call fails without a
            result. Default: none but `Limits`, which leave this time out.

    Raises:
        UsageError: `key` or `timeout` is not valid.
    """

    __slots__ = ("key", "timeout")

    def __init__(self, key: str | None = None, *, timeout: float | None = None) -> None:
        self.key: str | None = check_known("key", key)
        if timeout is not None:
            check_seconds("timeout", timeout)
        self.timeout: float | None = timeout

    def __repr__(self) -> str:
        timeout = "" if self.timeout is None else f", timeout={self.timeout!r}"
        return f"Pending({self.key!r}{timeout})"


class PendingCall(NamedTuple):
    """In place of the outcome of a call: its result comes from outside.

    Attributes:
        tool: The name of the tool.
        key: As for `Pending`.
        external: What is known of the result, as JSON.
    """

    tool: str
    key: str | None
    external: str


def pending_call(pending: Pending, tool: str, function: Callable[..., Any]) -> PendingCall:
    """Return what takes the place of the outcome of a call that returned `Pending`.

    Args:
        pending: What the function has returned.
        tool: The name of the tool.
        function: The function. If its annotation names no type that has a JSON Schema, the result
            may be any JSON: the call has begun, and can't be refused any more.
    """
    external: dict[str, Any] = {}
    returns: dict[str, Any] | None = None
    with suppress(ToolError, UsageError):
        hint, names = read_return(function, tool, {})
        returns = described(_without_pending(hint), names).schema
    if returns:
        external["returns"] = returns
    if pending.timeout is not None:
        external["timeout"] = pending.timeout
    return PendingCall(tool, pending.key, to_json(external))


def _without_pending(hint: Any) -> Any:
    """Return the type of results of a function that may return `Pending`."""
    if hint is Pending:
        return Any
    if typing.get_origin(hint) not in {typing.Union, types.UnionType}:
        return hint
    kept = tuple(one for one in typing.get_args(hint) if one is not Pending)
    return typing.Union[kept]  # noqa: UP007  # of types that are known only here
