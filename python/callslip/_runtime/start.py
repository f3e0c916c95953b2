"""The first commands of a session: those of a new run, or of one that is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession

__all__ = ["resume", "start"]


def start(session: RunSession) -> list[Command]:
    """Start a new run."""
    return session.core.start(session.run.task, session.now())


def resume(session: RunSession) -> list[Command]:
    """Resume a run that another process has started, or whose model has failed."""
    return session.core.resume(session.now())
