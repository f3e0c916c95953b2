"""What a run knows of the code that performs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from callslip import _core
    from callslip.runs._result import RunResult

__all__ = ["Driver"]


class Driver(Protocol):
    """The code that performs a run."""

    @property
    def may_rest(self) -> bool:
        """Whether it is a worker's, which may leave the run at rest at any moment."""

    def inject(self, make: Callable[[float], list[_core.Command]]) -> bool:
        """Admit a message or a decision, from any thread.

        Args:
            make: Passes it to the core at a time, and returns the commands that follow from it.

        Returns:
            Whether it was admitted. If not, the driver is leaving the run.
        """

    def cancel_unstarted(self) -> bool:
        """Cancel the run if it has not begun, from any thread. Returns whether that is so."""

    def look_at_time(self) -> None:
        """Look at the deadline of the run again, from any thread: it may be later now."""

    def result(self) -> Awaitable[RunResult[Any]]:
        """Return an awaitable for the result of the run."""
