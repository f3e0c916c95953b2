"""How runs are begun and gone on with, and which driver takes them to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip._interrupts import answered_at_once, holds_up_a_loop
from callslip._session import current_call
from callslip.errors import UsageError
from callslip.runs import RunResult

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._session import Session

__all__ = ["begin", "drive_async", "drive_sync", "go_on", "not_in_a_tool"]


def begin(session: Session) -> list[Command]:
    """Begin a run."""
    return session.core.start(session.run.task, session.now())


def go_on(session: Session) -> list[Command]:
    """Go on with a run that another process has begun, or whose model failed."""
    return session.core.resumed(session.now())


async def drive_async(session: Session) -> RunResult:
    """Take a run to its end on the caller's event loop."""
    from callslip._drive import drive

    with session:
        await drive(session)
        return RunResult.of(session)


def drive_sync(session: Session) -> RunResult:
    """Take a run to its end in this thread."""
    from callslip._drive_sync import drive

    with session:
        if holds_up_a_loop():
            with answered_at_once():
                drive(session)
        else:
            drive(session)
        return RunResult.of(session)


def not_in_a_tool(called: str, instead: str) -> None:
    """Raise `UsageError` inside of a tool."""
    if current_call() is not None:
        raise UsageError(
            f"{called} was called inside a tool, where it would hold the run's own thread: make "
            f"the tool async and await agent.{instead}(…)"
        )
