"""Calls and child runs in other workers, and the wait for their outcomes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from callslip._base import _lazy
from callslip._base.json import to_json
from callslip._runtime.shared.tree_position import child_id
from callslip._threads import pool
from callslip.errors import StoreError
from callslip.events._event import ticket_id
from callslip.runs._answered import outcome_from_text
from callslip.tools import Outcome

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callslip import _core
    from callslip._core import Command
    from callslip._runtime.session import RunSession
    from callslip.tools import Context, Tool

__all__ = [
    "Below",
    "CallElsewhere",
    "CallInDoubt",
    "Elsewhere",
    "Ended",
    "call_name",
]


def call_name(agent: str, tool: str) -> str:
    """Return the name under which workers take calls of a tool of an agent."""
    return f"call {tool} of {agent}"


class Ended(NamedTuple):
    """The end of a call or of a child run.

    Attributes:
        number: The number of the message in the inbox.
        body: The outcome of a call, as text; `None` for a child run, because its log has the
            outcome.
    """

    number: int
    body: str | None


class Below(NamedTuple):
    """A child run or a call for any worker.

    Attributes:
        agent: The name of the agent, or of the tool.
        known_as: The name under which workers take it.
        given: Its start arguments, as JSON text.
        task: The task, for people.
        above: The place of a child run; `None` for a call.
        queue: The queue; `None` for the parent run's queue.
    """

    agent: str
    known_as: str
    given: str
    task: str
    above: str | None = None
    queue: str | None = None


class Elsewhere:
    """The calls and child runs that the runs of one claim wait for.

    Args:
        shared: The shared store.

    Attributes:
        spreads: Whether all workers may take new child runs, rather than this process.
        has_children: Whether another process drives a run of its tree, so that only the database
            has the usage of the whole tree.
    """

    def __init__(self, shared: _core.SharedRuns) -> None:
        self._shared = shared
        self._lock = threading.Lock()
        self._arrived: dict[tuple[str, int], Ended] = {}
        self._waiting: dict[tuple[str, int], Future[Ended]] = {}
        self.spreads = False
        self.has_children = False

    def arrive(self, run_id: str, ticket: int, ended: Ended) -> None:
        """Take the end of a call or a child run. From any thread."""
        with self._lock:
            future = self._waiting.pop((run_id, ticket), None)
            if future is None:
                self._arrived[run_id, ticket] = ended
                return
        # The run may give it up at the same moment.
        if future.set_running_or_notify_cancel():
            future.set_result(ended)

    def is_waiting(self, run_id: str, ticket: int) -> bool:
        """Whether another worker has a call or a child run that has not ended."""
        with self._lock:
            return (run_id, ticket) in self._waiting

    async def call(self, session: RunSession, command: Command.CallTool) -> Outcome:
        """Let a worker of the tool's queue make a call, and wait for the outcome.

        Raises:
            StoreError: The call cannot be sent, or another worker has the run.
        """
        tool, agent = session.setup.toolbox.get(command.tool), session.agent.name
        given = {
            "run": session.run.id,
            "ticket": command.ticket,
            "agent": agent,
            "tool": tool.name,
            "arguments": command.arguments,
        }
        below = Below(
            agent=tool.name,
            known_as=call_name(agent, tool.name),
            given=to_json(given),
            task=tool.name,
            queue=tool.queue,
        )
        await pool.in_own_thread(self.submit, session, command.ticket, below)
        ended = await self.ended(session, command.ticket)
        return outcome_from_text(ended.body or "")

    def has(self, run_id: str) -> bool:
        """Whether workers have a child run, which is not driven with the run above it."""
        return self._shared.is_apart(run_id)

    def submit(self, session: RunSession, ticket: int, below: Below) -> bool:
        """Give workers a child run or a call of a run, unless they have it.

        Args:
            session: The session of the run.
            ticket: The number of the ticket.
            below: The child run or the call.

        Returns:
            `False` if the child run is driven with the run above it.

        Raises:
            StoreError: It cannot be sent, or another worker has the run.
        """
        run_id = session.run.id
        return self._shared.submit_below(
            above_id=run_id,
            ticket=ticket,
            id=child_id(run_id, ticket),
            is_call=below.above is None,
            **below._asdict(),
        )

    async def ended(self, session: RunSession, ticket: int) -> Ended:
        """Wait for the end of a call or a child run.

        If the run gives it up, the worker receives a message.
        """
        key = session.run.id, ticket
        with self._lock:
            ended = self._arrived.pop(key, None)
            if ended is None:
                future = self._waiting[key] = _lazy.futures.Future()
        if ended is None:
            try:
                ended = await _lazy.asyncio.wrap_future(future)
            except _lazy.asyncio.CancelledError:
                with self._lock:
                    if self._waiting.get(key) is future:
                        del self._waiting[key]
                if not session.core.is_open(ticket):
                    self._give_up(child_id(*key))
                raise
        session.core.take_outcome(ticket, ended.number)
        return ended

    def end(self, session: RunSession, tickets: Iterable[tuple[int, bool]]) -> None:
        """End calls and child runs that a run has given up before it waits for them here.

        Args:
            session: The session of the run.
            tickets: The numbers of their tickets, and whether these are tasks.
        """
        run_id, here = session.run.id, set()
        for ticket, is_task in tickets:
            child = child_id(run_id, ticket)
            with suppress(StoreError):
                if is_task and not self.has(child):
                    here.add(ticket_id(ticket))
                else:
                    self._cancel(child)
        if here and session.store is not None:
            with suppress(StoreError):
                session.store._end_children(run_id, here)

    def _give_up(self, child: str) -> None:
        pool.submit_own(self._cancel, child)

    def _cancel(self, child: str) -> None:
        # A failure is harmless: the end of the parent run cancels everything below it.
        with suppress(StoreError):
            self._shared.tell(child, "cancel", None, None, None)


class CallElsewhere:
    """A tool for a call that a worker of another queue makes.

    Args:
        session: The session of the run.
        command: The call.
    """

    is_async = True
    awaits_on_loop = True
    gate = None

    def __init__(self, session: RunSession, command: Command.CallTool) -> None:
        self._session = session
        self._command = command

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Any:
        """Return an awaitable of the outcome. As `Tool.call`."""
        return self.acall(arguments, context)

    async def acall(
        self,
        arguments: Mapping[str, Any],  # noqa: ARG002  # the command has them
        context: Context | None,  # noqa: ARG002
    ) -> Outcome:
        """Wait for the outcome of the call. As `Tool.acall`."""
        inbox = self._session.beginning.inbox
        assert inbox is not None
        return await inbox.elsewhere.call(self._session, self._command)


class CallInDoubt:
    """A tool for a call that may have been made before, and is not repeated.

    Args:
        tool: The tool.
    """

    is_async = False
    awaits_on_loop = False
    gate = None

    def __init__(self, tool: Tool[..., Any]) -> None:
        self._name = tool.name

    def call(
        self,
        arguments: Mapping[str, Any],  # noqa: ARG002  # it is not made
        context: Context | None,  # noqa: ARG002
    ) -> Outcome:
        """Return the outcome. As `Tool.call`."""
        return Outcome.InDoubt(
            f"Error calling tool '{self._name}': InDoubt: the process ended before this call had a "
            "result, and whether it took effect is not known. Check before you make it again."
        )

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Return the outcome. As `Tool.acall`."""
        return self.call(arguments, context)
