"""Tool calls in progress, as the code that runs inside of them sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from callslip.events import Progress
from callslip.tools._context import enclosing_call

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.origins import Origin
    from callslip.parts import File
    from callslip.runs import Run
    from callslip.tools import Context

__all__ = ["Call", "ProgramCall", "enclosing_session", "owner_of_caller"]


class Call:
    """A tool call in progress. It is known to everything that runs in its context.

    Contexts are copied and may outlive the call: a timer of asyncio keeps one even after it was
    cancelled. So a call that is over keeps neither the agent nor its tools alive.

    Attributes:
        session: The session of the run that makes the call; `None` when the call is over.
        ticket: The number of the call's ticket.
        over: Whether the call has ended, as far as the run is concerned.
        cancelled: Whether the run has given the call up.
    """

    __slots__ = ("_run", "_token", "_undo", "cancelled", "over", "session", "ticket")

    def __init__(self, session: RunSession, ticket: int) -> None:
        self.session: RunSession | None = session
        self._run = ref(session.run)
        self.ticket: int = ticket
        self.over: bool = False
        self.cancelled: bool = False
        self._token = enclosing_call.set(self)
        feed = session.run._feed
        self._undo = feed.enter_call(ticket) if feed is not None and feed.observers else ()

    def may_begin(self) -> bool:
        """Whether the tool may be called now. Asked by whoever calls it, at the last moment.

        The call may have waited for a thread, or for a slot of the tool, while the run was
        cancelled.
        """
        session = self.session
        return session is not None and session.may_begin(self.ticket)

    @property
    def parts(self) -> dict[str, File]:
        """Images and files of the run so far, by their labels; none when the run is gone."""
        run = self._run()
        return {} if run is None else run.parts

    def origins(self, ticket_id: str) -> dict[str, Origin]:
        """Return where the values of a call come from; nothing when the run is gone."""
        run = self._run()
        return {} if run is None else run._reads.tickets.origins(ticket_id)

    def end(self) -> None:
        """Mark the call as over, and take it out of this context."""
        self.finish()
        self.leave()

    def finish(self) -> None:
        """Mark the call as over, also for threads and tasks that it has left running."""
        self.over = True
        self.session = None

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Report the progress of the call to those who watch the run. From any thread."""
        run = self._run()
        if run is None or self.over:
            return
        store = run._store
        if store is not None and store._shared is not None:
            # A worker keeps runs that make progress.
            store._shared.report(run.id)
        feed = run._feed
        if feed is not None:
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

    def origins(self, ticket_id: str) -> dict[str, Origin]:
        """Return where the values of a call come from."""
        return self._run._reads.tickets.origins(ticket_id)

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Drop the report: progress is that of a call."""


def enclosing_session() -> tuple[RunSession, int] | None:
    """Return the session and the ticket of the call that this code runs in.

    Returns:
        `None` outside of calls, and in one that is over.
    """
    call = cast("Call | None", enclosing_call.get())
    # Read once: another thread may end the call.
    session = None if call is None else call.session
    return None if call is None or session is None else (session, call.ticket)


def owner_of_caller() -> str | None:
    """Return the owner of the run whose call this code runs in; `None` without one."""
    enclosing = enclosing_session()
    return None if enclosing is None else enclosing[0].core.owner
