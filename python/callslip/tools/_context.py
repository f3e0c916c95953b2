"""What a tool is told about its call, and which call the code around it belongs to."""

from __future__ import annotations

import math
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Real
from typing import Protocol

from callslip.errors import UsageError

__all__ = ["CallState", "Context", "call_here", "enclosing_call", "not_in_a_tool", "state_of"]


class CallState(Protocol):
    """What the parties to one call share of it.

    Attributes:
        cancelled: Whether the call was given up: nobody waits for its outcome any more.
        over: Whether it has ended, for the run.
    """

    cancelled: bool
    over: bool

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Tell who watches how far the call has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a tool is told about its call, where a parameter is annotated with it.

    Attributes:
        run_id: The run that calls.
        ticket_id: The ticket that this call completes: the same when a call is repeated.
        tool: The tool's name.
    """

    run_id: str
    ticket_id: str
    tool: str
    _call: CallState | None = field(default=None, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up, so that a long sync tool can stop.

        So it is once the run is cancelled, its time is over or the tool's `timeout` has passed.
        """
        return self._call is not None and self._call.cancelled

    @property
    def key(self) -> str:
        """Unique among the calls of all runs, and the same when a call is repeated."""
        return f"{self.run_id}/{self.ticket_id}"

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell who watches the run how far the call has come, as a `Progress`.

        From any thread. It never waits: what nobody watches, or reads in time, is dropped.

        Args:
            done: How much is done, in a unit of your own.
            total: How much there is to do; default unknown.
            message: What the tool is at.

        Raises:
            TypeError: A number is none, or the message is no string.
            ValueError: A number is not finite, or larger than any float.
        """
        _check_amount("done", done)
        if total is not None:
            _check_amount("total", total)
        if message is not None and not isinstance(message, str):
            raise TypeError(
                f"expected message of progress as a string: got {type(message).__name__}"
            )
        if self._call is not None:
            self._call.notice(self, done, total, message)


def _check_amount(name: str, amount: object) -> None:
    if not isinstance(amount, Real):
        kind = type(amount).__name__
        raise TypeError(f"expected {name} of progress as a number: got {kind}")
    try:
        is_finite = math.isfinite(amount)
    except OverflowError:
        is_finite = False
    if not is_finite:
        got = amount if isinstance(amount, float) else "one larger than any float"
        raise ValueError(f"expected {name} of progress as a finite number: got {got}")


enclosing_call: ContextVar[CallState | None] = ContextVar("callslip_call", default=None)
"""The call that this code was started by; set by the run that makes it."""


class _NoCall:
    """The state of a call that no run makes."""

    cancelled = False
    over = False

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Nobody watches it."""


def call_here() -> CallState | None:
    """Return the call that this code was started by, even if that is over; `None` if none was."""
    return enclosing_call.get()


def state_of(context: Context | None) -> CallState:
    """Return the state of the call that this code was started by."""
    own = None if context is None else context._call
    return own or call_here() or _NoCall()


def not_in_a_tool(called: str, instead: str) -> None:
    """Raise `UsageError` inside of a tool."""
    call = call_here()
    if call is not None and not call.over:
        raise UsageError(
            f"{called} was called inside a tool, where it would hold the run's own thread: make "
            f"the tool async and await agent.{instead}(…)"
        )
