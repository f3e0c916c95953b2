"""The first commands of a session: those of a new run, or of one that is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession

__all__ = ["instruct", "instruct_sync", "resume", "start"]


def start(session: RunSession) -> list[Command]:
    """Start a new run."""
    return session.core.start(session.run.task, session.now())


def resume(session: RunSession) -> list[Command]:
    """Resume a run that another process has started, or whose model has failed."""
    return session.core.resume(session.now())


async def instruct(session: RunSession) -> None:
    """Give a new run the instructions that a function of the program returns, if there is one.

    Raises:
        UsageError: The function did not return text.
        BaseException: The function raised it. The run has not begun then.
    """
    if _is_due(session):
        function = session.agent._instructions
        _give(session, await function.of_run(session.program_context("instructions")))


def instruct_sync(session: RunSession) -> None:
    """Give a new run its instructions, from this thread. As `instruct`."""
    if _is_due(session):
        function = session.agent._instructions
        _give(session, function.of_run_sync(session.program_context("instructions")))


def _is_due(session: RunSession) -> bool:
    # A run that goes on, and one below a run of the same agent, have theirs.
    is_new = session.first_commands is start and session.core.instructions is None
    return is_new and session.agent._instructions.is_called


def _give(session: RunSession, text: str) -> None:
    session.core.instruct(text, session.setup.prompt_with(text))
