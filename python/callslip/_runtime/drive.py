"""Driving a run to its end, in this thread or on the caller's event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip._threads.current_loop import interruptible, is_in_loop

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.runs import RunResult

__all__ = ["drive_async", "drive_sync"]


async def drive_async(session: RunSession) -> RunResult:
    """Drive a run to its end on the caller's event loop."""
    from callslip._runtime.driver import drive

    with session:
        await drive(session)
        return session.result()


def drive_sync(session: RunSession) -> RunResult:
    """Drive a run to its end in this thread."""
    from callslip._runtime.driver_sync import drive

    with session:
        if is_in_loop():
            with interruptible():
                drive(session)
        else:
            drive(session)
        return session.result()
