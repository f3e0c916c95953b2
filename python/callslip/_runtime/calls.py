"""Tool calls in progress, as the code that runs inside of them sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from callslip.events import Progress
from callslip.tools._context import enclosing_call

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.parts import File
    from callslip.runs import Run
    from callslip.tools import Context

__all__ = ["Call", "ProgramCall", "current_call"]


class Call:
    """A tool call in progress. It is known to everything that runs in its context.

    Attributes:
        session: The session of the run that makes the call.
        ticket: The number of the call's ticket.
        over: Whether the call has ended, as far as the run is concerned.
        cancelled: Whether the run has given the call up.
    """

    __slots__ = ("_token", "_undo", "cancelled", "over", "session", "ticket")

    def __init__(self, session: RunSession, ticket: int) -> None:
        self.session: RunSession = session
        self.ticket: int = ticket
        self.over: bool = False
        self.cancelled: bool = False
        self._token = enclosing_call.set(self)
        feed = session.run._feed
        self._undo = feed.enter_call(ticket) if feed is not None and feed.observers else ()

    @property
    def parts(self) -> dict[str, File]:
        """Images and files of the run so far, by their labels."""
        return self.session.run.parts

    def end(self) -> None:
        """Mark the call as over, also for threads and tasks that it has left running."""
        self.over = True
        self.leave()

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Report the progress of the call to those who watch the run. From any thread."""
        store = self.session.run._store
        if store is not None and store._shared is not None and not self.over:
            # A worker keeps runs that make progress.
            store._shared.report(self.session.run.id)
        feed = self.session.run._feed
        if feed is not None and not self.over:
            feed.on_progress(
                Progress(context.run_id, context.ticket_id, context.tool, done, total, message)
            )

    def leave(self) -> None:
        """Take the call out of this context, because it continues in another one."""
        for undo in self._undo:
            undo()
        self._undo = ()
        # Not `suppress`, which costs more than all the rest of this.
        try:  # noqa: SIM105
            enclosing_call.reset(self._token)
        except ValueError:
            # A driver that is never closed properly is collected in another context, without calls.
            pass


class ProgramCall:
    """The state of a function that a run calls and that is no tool, such as a check of an answer.

    Args:
        run: The run.
    """

    cancelled = False
    over = False

    def __init__(self, run: Run[Any]) -> None:
        self._run = run

    @property
    def parts(self) -> dict[str, File]:
        """Images and files of the run so far, by their labels."""
        return self._run.parts

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Drop the report: progress is that of a call."""


def current_call() -> Call | None:
    """Return the call that this code runs in; `None` outside of calls."""
    call = cast("Call | None", enclosing_call.get())
    return None if call is None or call.over else call
