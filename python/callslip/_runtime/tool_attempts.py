"""Further attempts at tool calls that failed, within one ticket."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from callslip._base import _lazy
from callslip._base.backoff import backoff
from callslip._runtime.calls import Call
from callslip.tools import Outcome

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._runtime.session import RunSession

__all__ = ["WaitingCalls", "repeat"]

_FIRST = 0.5
"""Seconds to wait after the first attempt, if the server does not ask for more or less."""

_LONGEST = 60.0
"""The longest wait in seconds. If a server asks for more, there is no other attempt."""


Attempt: TypeAlias = "Callable[[RunSession, Command.CallTool, Call], Awaitable[Outcome]]"
"""Calls a tool once, and waits for the outcome."""


async def repeat(
    session: RunSession, command: Command.CallTool, outcome: Outcome, attempt: Attempt
) -> Outcome:
    """Make further attempts at a call while there are any, and return the last outcome.

    No slot of the tool is held during a wait.

    Args:
        session: The session of the run.
        command: The call.
        outcome: The outcome of the first attempt.
        attempt: Makes another one.
    """
    while (wait := _record_failure(session, command, outcome)) is not None:
        if session.commits is not None:
            await session.commits.written_async(session.core)
        await _lazy.asyncio.sleep(wait)
        # An attempt that timed out may still run in its thread: it keeps its own state.
        call = Call(session, command.ticket)
        try:
            outcome = await attempt(session, command, call)
        except _lazy.asyncio.CancelledError:
            call.cancelled = True
            raise
        finally:
            call.end()
    return outcome


class WaitingCalls:
    """The calls of a sync driver that wait for their next attempt. No thread waits with them."""

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._due: dict[int, tuple[float, Command.CallTool]] = {}

    def __bool__(self) -> bool:
        return bool(self._due)

    def add(self, command: Command.CallTool, outcome: Outcome) -> bool:
        """Record the failure of an attempt. Returns whether the call waits for another one."""
        wait = _record_failure(self._session, command, outcome)
        if wait is None:
            return False
        self._due[command.ticket] = (time.perf_counter() + wait, command)
        return True

    def drop(self, ticket: int) -> None:
        """Forget a call that was given up."""
        self._due.pop(ticket, None)

    def remaining(self) -> float | None:
        """Return the seconds until the next attempt; `None` if no call waits."""
        first = min((at for at, _ in self._due.values()), default=None)
        return None if first is None else first - time.perf_counter()

    def take_due(self) -> list[Command.CallTool]:
        """Return the calls that are to be made again now. They wait no longer."""
        now = time.perf_counter()
        due = [command for at, command in self._due.values() if at <= now]
        for command in due:
            del self._due[command.ticket]
        return due


def _record_failure(
    session: RunSession, command: Command.CallTool, outcome: Outcome
) -> float | None:
    """Record a failed attempt if another one follows.

    Returns:
        The seconds until the next attempt; `None` if the outcome is that of the call.
    """
    if not isinstance(outcome, Outcome.Error):
        return None
    again = outcome.transient if outcome.again is None else outcome.again
    core, ticket = session.core, command.ticket
    if not again or not core.is_open(ticket):
        return None
    number = core.attempts(ticket)
    if number > session.setup.toolbox.get(command.tool).retries:
        return None
    wait = backoff(_FIRST, number, _LONGEST) if outcome.wait is None else outcome.wait
    remaining = session.remaining()
    if not 0 <= wait <= _LONGEST or (remaining is not None and wait >= remaining):
        return None
    session.publish_events(core.tool_attempt_failed(ticket, outcome.message, wait, session.now()))
    return wait
