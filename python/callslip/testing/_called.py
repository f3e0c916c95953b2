"""Expected calls, which are compared with tickets, and the violations of a run."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

from callslip._base.options import check_one_of, check_text, shown
from callslip.errors import UsageError
from callslip.runs import Run, RunResult, Ticket
from callslip.runs._ticket import Outcome
from callslip.trace import Trace

__all__ = ["Called", "codes"]


def codes(run: Run[Any] | RunResult[Any] | Trace) -> list[str]:
    """Return the codes of the violations of a run, in their order, without those of child runs.

    Args:
        run: A run, its result or its trace. A run that has failed is in `error.run`.

    Raises:
        UsageError: `run` is not one of these.
    """
    if not isinstance(run, (Run, RunResult, Trace)):
        raise UsageError(
            f"expected a run, its result or its trace: got {shown(run)}; pass result, or error.run"
        )
    trace = run if isinstance(run, Trace) else run.trace()
    return [turn.violation.code for turn in trace.turns if turn.violation is not None]


class Called:
    """An expected call. It equals each ticket that has all of its fields.

    `result.tickets == [Called("weather", city="Oslo"), Called("stock", outcome="error")]`

    Args:
        tool: The name of the tool; `None` (default) for any tool.
        outcome: The outcome of the ticket. Default: any, also of a call in progress.
        **arguments: Arguments of the call. It may have others too. A value may be an object that
            compares with several values, as those of `dirty_equals`.

    Raises:
        UsageError: `tool` is not text, or there is no such outcome.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # it equals tickets that differ

    def __init__(
        self, tool: str | None = None, /, *, outcome: str | None = None, **arguments: Any
    ) -> None:
        if tool is not None:
            check_text("the name of a tool", tool)
        if outcome is not None:
            check_one_of("outcome", outcome, get_args(Outcome))
        self._tool = tool
        self._outcome = outcome
        self._arguments = arguments

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Called):
            return vars(self) == vars(other)
        if not isinstance(other, Ticket):
            return NotImplemented
        if self._tool not in (None, other.tool) or self._outcome not in (None, other.outcome):
            return False
        arguments = other.arguments or {}
        return all(
            name in arguments and value == arguments[name]
            for name, value in self._arguments.items()
        )

    def __repr__(self) -> str:
        shown = [] if self._tool is None else [repr(self._tool)]
        shown += [f"{name}={value!r}" for name, value in self._arguments.items()]
        if self._outcome is not None:
            shown.append(f"outcome={self._outcome!r}")
        return f"Called({', '.join(shown)})"
