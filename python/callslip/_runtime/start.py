"""The first commands of a session: those of a new run, or of one that is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip._runtime.called import called, called_sync
from callslip._runtime.pauses import paused_below
from callslip.errors import UsageError
from callslip.events._event import ticket_id
from callslip.parts import Content

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession

__all__ = [
    "begins_with_calls",
    "prepare",
    "prepare_sync",
    "resume",
    "resume_after_rest",
    "start",
    "stay_over",
]


def start(session: RunSession) -> list[Command]:
    """Start a new run."""
    assert session.beginning.said is not None
    text, parts, _ = session.beginning.said
    now = session.now()
    feed = session.run._feed
    if feed is not None and feed.observers and (trace := feed.begin(now)) is not None:
        session.core.trace_as(trace)
    commands = session.core.start(text, now, parts)
    if parts:
        # With the lines of its images and files.
        session.run.task = session.core.task
    session.beginning.said = None
    return commands


def resume(session: RunSession) -> list[Command]:
    """Resume a run that another process has started, or whose model has failed."""
    return session.core.resume(session.now())


def stay_over(session: RunSession) -> list[Command]:
    """Do not resume a run that is over. It only goes on if it is told something."""
    # Nothing is written: it has ended.
    return session.core.cancel(session.now())


def resume_after_rest(session: RunSession) -> list[Command]:
    """Resume a run that has rested, or whose worker has ended: its time has passed meanwhile."""
    core, now = session.core, session.now()
    is_late = core.deadline is not None and now >= core.deadline
    if is_late and core.deadline is not None:
        # The store has the work of others below it.
        is_late = now - paused_below(session.run, now) >= core.deadline
    waited_for = core.under_way if is_late else None
    if waited_for is not None and _only_waits(session, waited_for):
        # Resuming begins the time anew.
        core.time_out(now)
        given_up = [one for one in waited_for if not core.is_open(one[0])]
        if given_up and (inbox := session.beginning.inbox) is not None:
            inbox.elsewhere.end(session, given_up)
    return resume(session)


def _only_waits(session: RunSession, under_way: list[tuple[int, bool]]) -> bool:
    """Whether nothing is under way but child runs, and calls that other workers make."""
    tools = {ticket.id: ticket.tool for ticket in session.run.tickets}
    toolbox = session.setup.toolbox
    return all(
        is_task or toolbox.get(tools[ticket_id(ticket)]).queue is not None
        for ticket, is_task in under_way
    )


def begins_with_calls(session: RunSession) -> bool:
    """Whether functions of the program are called before a new run begins."""
    return session.beginning.unchecked_task is not None or _needs_instructions(session)


async def prepare(session: RunSession) -> None:
    """Check the task of a new run, and give the run the instructions that a function returns.

    Raises:
        UsageError: The function in `instructions` did not return text.
        BaseException: A function raised it. The run has not begun then.
    """
    if (task := _unchecked(session)) is not None:
        assert session.agent._check_task is not None
        context = session.program_context("check_task")
        _refuse_result(await called(session.agent._check_task, task, context))
    if _needs_instructions(session):
        function = session.agent._instructions
        _give(session, await function.of_run(session.program_context("instructions")))


def prepare_sync(session: RunSession) -> None:
    """Prepare a new run from this thread. As `prepare`."""
    if (task := _unchecked(session)) is not None:
        assert session.agent._check_task is not None
        context = session.program_context("check_task")
        _refuse_result(called_sync(session.agent._check_task, task, context))
    if _needs_instructions(session):
        function = session.agent._instructions
        _give(session, function.of_run_sync(session.program_context("instructions")))


def _refuse_result(result: object) -> None:
    if result is not None:
        raise UsageError(
            f"expected check_task to return None: got {result!r}. To refuse a task, raise an "
            "exception"
        )


def _unchecked(session: RunSession) -> Content | None:
    """Return the task if it is still to be checked. It is checked once."""
    task, session.beginning.unchecked_task = session.beginning.unchecked_task, None
    return task


def _needs_instructions(session: RunSession) -> bool:
    if not session.agent._instructions.is_called:
        return False
    # A run that goes on, and one below a run of the same agent, have theirs.
    return session.beginning.first_commands is start and session.core.instructions is None


def _give(session: RunSession, text: str) -> None:
    session.core.instruct(text, session.setup.prompt_with(text))
