"""What an observer of runs receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callslip.events import Event
    from callslip.runs._run import Run

__all__ = ["Observer"]


class Observer:
    """A receiver of the events of runs, in the order of each log."""

    def on_event(self, run: Run, event: Event) -> None:
        """Receive an event that was added to the log.

        Args:
            run: The run. Its state may be ahead of the event.
            event: The event.
        """
        raise NotImplementedError

    def on_start(self, run: Run, at: float) -> str | None:  # noqa: ARG002
        """Receive the notice that a run is about to begin.

        Args:
            run: The run.
            at: Unix seconds.

        Returns:
            The trace that it begins in, as a header `traceparent`, for its log; `None` without one.
        """
        return None

    def on_left(self, run: Run) -> None:
        """Receive the notice that the driver has left a run, which may not be over."""

    def enter_call(self, run: Run, ticket: str) -> Callable[[], object] | None:  # noqa: ARG002
        """Prepare the context that a tool is about to run in.

        Args:
            run: The run.
            ticket: The id of the call's ticket, such as `"T1"`.

        Returns:
            Called when that context is left; `None` if nothing is to be done.
        """
        return None
