"""The context of a tool call."""

from __future__ import annotations

import math
import warnings
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

from callslip._threads.current_loop import warn_of_blocking
from callslip.errors import UsageError
from callslip.origins import Origin
from callslip.parts import File

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    DepsT_co = TypeVar("DepsT_co", covariant=True, default=Any)
else:
    # With a default for type checkers only: at run time that would need Python 3.13.
    from typing import TypeVar

    DepsT_co = TypeVar("DepsT_co", covariant=True)

__all__ = [
    "CallState",
    "Context",
    "call_here",
    "check_may_block",
    "enclosing_call",
    "not_in_a_tool",
    "parts_here",
    "state_of",
    "warn_of_no_deps",
]


class CallState(Protocol):
    """The state of a call, shared by the run and the tool.

    Attributes:
        cancelled: Whether the run no longer waits for the outcome.
        over: Whether the call has ended, for the run.
    """

    cancelled: bool
    over: bool

    @property
    def parts(self) -> dict[str, File]:
        """Images and files of the run so far, by their labels."""

    def origins(self, ticket_id: str) -> dict[str, Origin]:
        """Where the values of a call come from, by the JSON pointers of its arguments."""

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Report the progress of the call to the readers of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Generic[DepsT_co]):
    """The context of a call, for a tool with a parameter that is annotated with it.

    `Context[Deps]` tells a type checker the type of `deps`. If a function of an agent takes such a
    context, a run without deps is refused, unless the type includes `None`. Deps that are passed
    are not checked.

    Attributes:
        run_id: The id of the run that makes the call.
        ticket_id: The id of the ticket of the call. It stays the same when the call is repeated.
            Empty in the context of `instructions` and `check_answer`.
        tool: The name of the tool; `"instructions"` or `"check_answer"` in the context of these.
        deps: The object that was passed as `deps=` to the run, or to the run above it; `None`
            without one. It is never written down.
    """

    run_id: str
    ticket_id: str
    tool: str
    deps: DepsT_co = field(default=cast("Any", None), repr=False, compare=False)
    _call: CallState | None = field(default=None, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the run no longer waits for the call, so that a long sync tool can stop.

        This is the case once the run is cancelled, its time is over, or the tool's `timeout` has
        passed.
        """
        return self._call is not None and self._call.cancelled

    @property
    def parts(self) -> dict[str, File]:
        """Images and files of the run so far, by their labels; none outside of a run.

        `"U1"`, `"U2"`, … are those of the user, `"T3"` that of a result. A parameter annotated with
        `Image` or `File` receives the one that the model names.
        """
        return state_of(self).parts

    @property
    def origins(self) -> dict[str, Origin]:
        """Where the values of the call come from, by JSON pointers: as `Ticket.origins`."""
        return state_of(self).origins(self.ticket_id)

    @property
    def key(self) -> str:
        """A key that is unique among all calls of all runs, and the same for a repeated call."""
        return f"{self.run_id}/{self.ticket_id}"

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the readers of the run, as a `Progress`.

        May be called from any thread, and never blocks: a report that is not read in time is
        dropped.

        Args:
            done: The amount done so far, in any unit.
            total: The whole amount, in the same unit. Default: unknown.
            message: A description of the current step.

        Raises:
            TypeError: An amount is not a number, or the message is not a string.
            ValueError: An amount is not finite, or larger than any float.
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
"""The call in whose context this code runs; set by the run that makes the call."""


class _NoCall:
    """The state of a call outside of any run."""

    cancelled = False
    over = False

    @property
    def parts(self) -> dict[str, File]:
        """Return nothing: there is no run."""
        return {}

    def origins(self, ticket_id: str) -> dict[str, Origin]:  # noqa: ARG002
        """Return nothing: there is no run."""
        return {}

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Drop the report: there is no reader."""


def call_here() -> CallState | None:
    """Return the call in whose context this code runs, even if it is over; else `None`."""
    return enclosing_call.get()


def state_of(context: Context | None) -> CallState:
    """Return the state of the call: that of the context, else that of the enclosing call."""
    own = None if context is None else context._call
    return own or call_here() or _NoCall()


def parts_here() -> dict[str, File]:
    """Return the images and files of the run in whose call this code runs, by their labels."""
    return state_of(None).parts


def warn_of_no_deps(tool: str, error: Exception, context: Context | None) -> None:
    """Warn if a tool seems to have failed because its run has no deps: at the line that failed."""
    if context is None or context.deps is not None:
        return
    if not isinstance(error, (TypeError, AttributeError)) or "'NoneType'" not in str(error):
        return
    step, uses_deps = error.__traceback__, False
    while step is not None:
        last, step = step, step.tb_next
        uses_deps = uses_deps or "deps" in last.tb_frame.f_code.co_names
    if uses_deps:
        warnings.warn_explicit(
            f"the tool '{tool}' failed ({error}), and uses context.deps, which is None: pass "
            "deps=… to the run",
            UserWarning,
            last.tb_frame.f_code.co_filename,
            last.tb_lineno,
        )


def not_in_a_tool(called: str, instead: str) -> None:
    """Raise `UsageError` if this code runs inside a tool."""
    call = call_here()
    if call is not None and not call.over:
        raise UsageError(
            f"{called} was called inside a tool, where it would hold the run's own thread: make "
            f"the tool async and await agent.{instead}(…)"
        )


def check_may_block(called: str, instead: str) -> None:
    """Check that this code may wait for a run, and warn if an event loop can't work meanwhile.

    Raises:
        UsageError: It runs inside a tool.
    """
    not_in_a_tool(called, instead)
    owner = "run" if called == "send_sync" else "agent"
    warn_of_blocking(f"{owner}.{called}", f"{owner}.{instead}")
