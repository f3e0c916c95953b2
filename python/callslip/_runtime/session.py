"""One run in progress: the part that the async and the sync driver share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from callslip._core import Command, Delta, Outcome, note_certainty
from callslip._runtime.beginning import Beginning, FirstCommands
from callslip._runtime.calls import Call, ProgramCall
from callslip._runtime.pauses import note_pauses, paused_since
from callslip._runtime.questions import NOBODY, Askers
from callslip._runtime.reconcile import Reconciling
from callslip._runtime.reported_usage import core_usage, reported_counts
from callslip._runtime.resources import Resource, Resources
from callslip._runtime.script_requests import requests_of
from callslip._runtime.session_end import SessionEnd, fault_of_program, put_run
from callslip._runtime.shared.inbox import Inbox, deliver_to, stop_delivering
from callslip._runtime.shared.remote_calls import CallElsewhere, CallInDoubt
from callslip.errors import (
    RunCancelled,
    StoreError,
    TakenOver,
    UsageError,
)
from callslip.events._event import ticket_id
from callslip.models._envelope import envelope_of
from callslip.models._reply import ModelReply
from callslip.runs import Run, RunResult
from callslip.runs._feed import take_over_feed
from callslip.tools import Context

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType

    from callslip._core import Run as CoreRun
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.model_requests import ModelRequests
    from callslip._runtime.setup import RunSetup
    from callslip._threads.commits import Commits
    from callslip.models._call import ModelCall
    from callslip.runs._needs import StoreOfRun
    from callslip.tools import Tool

__all__ = ["RunSession"]

R = TypeVar("R", bound=Resource)

_PATIENCE_OF_SCRIPTS = 60.0
"""Seconds for which a script waits for a call: its next reply may use the result."""


class RunSession:
    """One run while a driver works on it. Entered by the driver, and left with the run.

    It passes the outcomes of commands to the core, and returns the commands that follow from them.

    Args:
        run: The run.
        agent: The agent that works on it.
        setup: The tools and settings of the run.
        first_commands: Starts or resumes the run.
        levels: Levels of child runs that may be below the run; `None` for no limit.
        root: The id of the run at the top of the tree. The calls of one tree wait in one line for
            a model or tool of bounded concurrency.

    Attributes:
        beginning: How the run is started or resumed.
        core: The state machine of the run.
        requests: The requests to its model.
        kept_while: Whether the run stays unfinished, to be resumed, if the task of its driver is
            cancelled at this moment; `None` if it never does.
        askers: The functions of the program that decide on calls and answer them.
    """

    __slots__ = (
        "_clock",
        "_end",
        "_resources",
        "agent",
        "askers",
        "beginning",
        "core",
        "kept_while",
        "requests",
        "root",
        "run",
        "setup",
    )

    def __init__(
        self,
        run: Run,
        agent: DrivenAgent,
        setup: RunSetup,
        first_commands: FirstCommands,
        *,
        levels: int | None,
        root: str,
    ) -> None:
        self.run: Run = run
        self.core: CoreRun = run._core
        self.agent: DrivenAgent = agent
        self.setup: RunSetup = setup
        self.beginning: Beginning = Beginning(first_commands)
        self.root: str = root
        self.requests: ModelRequests = requests_of(self)
        if setup.file_tools:
            lists = setup.protocol.lists_tickets
            run._reads.messages.name_files(setup.file_tools, lists=lists)
        self.kept_while: Callable[[], bool] | None = None
        self.askers: Askers = NOBODY
        self._end = SessionEnd(self._result_of_run)
        self._resources = Resources()
        # The system's clock may be set while the run works; its time limit must not move.
        self._clock = time.time() - time.perf_counter()
        if (store := run._store) is not None and store._shared is not None:
            # All processes go by the clock of the database.
            self._clock += store._shared.clock_offset
        run._levels = levels
        run._core.use_model(*self.model.leaves()[0].known_name)
        take_over_feed(run)

    @property
    def takes_calls(self) -> bool:
        """Whether replies are tool calls of the model's own."""
        return self.requests.takes_calls

    @property
    def model(self) -> ModelCall:
        """The model of the agent."""
        return self.agent._model

    @property
    def store(self) -> StoreOfRun | None:
        """The store that keeps the run."""
        return self.run._store

    @property
    def levels(self) -> int | None:
        """How many levels of child runs may be below the run; `None` for no limit."""
        return self.run._levels

    @property
    def commits(self) -> Commits | None:
        """The commits of the run's store; `None` without a store."""
        store = self.run._store
        return None if store is None else store._commits

    @property
    def grace(self) -> float:
        """Seconds that a call may take before the model continues without it."""
        protocol = self.agent.protocol
        if not protocol._has_own_grace and self.agent._model.is_scripted:
            return _PATIENCE_OF_SCRIPTS
        return protocol._grace

    @property
    def is_kept(self) -> bool:
        """Whether the run stays unfinished if the task of its driver is cancelled now."""
        return self.kept_while is not None and self.kept_while()

    @property
    def stands_under_time(self) -> bool:
        """Whether the wall time of the run, or of one above it in this process, is limited."""
        return self.core.is_timed or any(above.core.is_timed for above in self.beginning.runs_above)

    @property
    def is_of_worker(self) -> bool:
        """Whether a worker drives the run, which others go on with if its program has a fault."""
        return (inbox := self.beginning.inbox) is not None and inbox.is_of_worker

    def now(self) -> float:
        """Return the time in Unix seconds."""
        return self._clock + time.perf_counter()

    def remaining(self) -> float | None:
        """Return the seconds to the deadline; `None` without one, or if nothing is at work."""
        deadline = self.core.deadline
        if deadline is None:
            return None
        left = max(0.0, deadline - self.now())
        return None if left == 0.0 and paused_since(self.run) is not None else left

    def start(self) -> list[Command]:
        """Start or resume the run."""
        commands = self.beginning.first_commands(self)
        self.beginning.continues_children = any(
            isinstance(command, Command.StartRun) and command.again for command in commands
        )
        if self.beginning.inbox is not None:
            commands = self.beginning.inbox.take_up(self, commands)
        return self.publish_events(commands)

    def publish_events(self, commands: list[Command]) -> list[Command]:
        """Tell watchers of the new events of the log. Returns the commands unchanged."""
        feed = self.run._feed
        if feed is not None:
            feed.publish()
        return commands

    def is_due(self, command: Command) -> bool:
        """Whether a command is still to be performed: the run may have continued without it."""
        if isinstance(command, Command.AskModel):
            return self.is_current_turn(command.turn)
        if isinstance(command, Command.CheckAnswer):
            return self.core.is_checking(command.turn)
        if isinstance(command, Command.CheckApproval):
            return self.core.is_checking_approval(command.ticket)
        if isinstance(command, Command.AskApproval):
            return self.askers.approve is not None and self.core.awaits_approval(command.ticket)
        if isinstance(command, Command.AskResult):
            return self.core.awaits_result(command.ticket)
        if isinstance(command, (Command.CallTool, Command.StartRun)):
            return self.core.is_open(command.ticket)
        return True

    def is_current_turn(self, turn: int) -> bool:
        """Whether the run still waits for the reply of this turn."""
        return not self.core.finished and self.core.turn == turn

    def read_text(self, text: str, turn: int) -> list[Command]:
        """Read the whole reply of a turn into the run, unless it is in another one by now."""
        if self.takes_calls:
            text = envelope_of(ModelReply(text))
        commands = self.core.reply(text, turn, None, None, self.now())
        return commands if self.run._feed is None else self.publish_events(commands)

    def read_reply(
        self, reply: ModelReply, turn: int, model: tuple[str, str | None] | None = None
    ) -> list[Command]:
        """Read a whole reply into the run, with its usage and the reason for its end.

        Args:
            reply: The reply.
            turn: The turn that it was asked in. If the run is in another one by now, it is dropped.
            model: The name of its model and that of the provider; `None` for the model that is
                asked first.
        """
        usage = None if reply.usage is None else core_usage(reported_counts(reply.usage))
        feed = self.run._feed
        if reply.reasoning and feed is not None and self.is_current_turn(turn):
            feed.on_delta(Delta.Reasoning(reply.reasoning, turn))
        text = envelope_of(reply) if self.takes_calls else reply.text
        if reply.certainty is not None and self.is_current_turn(turn):
            note_certainty(self.core, reply.certainty)
        return self.publish_events(
            self.core.reply(text, turn, reply.finish_reason, usage, self.now(), model=model)
        )

    def model_failed(self, error: BaseException, turn: int) -> list[Command]:
        """Record that the model client failed in a turn, which ends the run.

        Raises:
            StoreError: The client did not fail, but the store.
            UsageError: The client did not fail, but the program's own history policy.
        """
        if self.core.unwritten:
            raise error
        if not self.is_current_turn(turn):
            return []
        message = self.requests.failure_message(error)
        return self.publish_events(self.core.model_failed(message, turn, self.now()))

    def resolve_tool(
        self, command: Command.CallTool, call: Call
    ) -> tuple[Tool[..., Any] | Reconciling | CallElsewhere | CallInDoubt, Context | None]:
        """Return the tool of a command, and the context of the call if the tool takes one."""
        toolbox = self.setup.toolbox
        tool = toolbox.find(command.tool) or toolbox.get(command.tool, self.core.tools)
        if tool.queue is not None:
            if self.beginning.inbox is not None:
                return CallElsewhere(self, command), None
            if command.again and tool.effect == "once" and tool.reconcile is None:
                return CallInDoubt(tool), None
        if command.again and tool.reconcile is not None:
            return Reconciling(tool), self._context(command, call)
        if not tool.wants_context:
            return tool, None
        return tool, self._context(command, call)

    def _context(self, command: Command.CallTool, call: Call) -> Context:
        run = self.run
        return Context(
            run_id=run.id,
            ticket_id=ticket_id(command.ticket),
            tool=command.tool,
            deps=run._deps,
            _call=call,
        )

    def may_begin(self, ticket: int) -> bool:
        """Whether a call may begin now, from any thread: a run that was cancelled makes none.

        A child run learns of the end of a run above a little later. It is cancelled here then.
        """
        with self._end as end:
            if end.is_closed or not self.core.is_open(ticket):
                return False
        for above in self.beginning.runs_above:
            if above.core.has_given_up(above.ticket):
                self.run.cancel()
                return False
        return True

    def complete_call(self, ticket: int, outcome: Outcome) -> list[Command]:
        """Record the outcome of a tool call."""
        try:
            commands = self.core.complete_call(ticket, outcome, self.now())
        except MemoryError as error:
            message = f"MemoryError: {error}. Call it for a smaller part."
            commands = self.core.complete_call(ticket, Outcome.Error(message), self.now())
        return commands if self.run._feed is None else self.publish_events(commands)

    def program_context(self, name: str) -> Context:
        """Return the context for a function of the program that is no tool, such as a check."""
        run = self.run
        return Context(
            run_id=run.id, ticket_id="", tool=name, deps=run._deps, _call=ProgramCall(run)
        )

    def answer_checked(self, turn: int, refused: str | None) -> list[Command]:
        """Record that the answer of a turn was accepted, or why it was refused."""
        return self.publish_events(self.core.answer_checked(turn, refused, self.now()))

    def cancelled_outcome(self, command: Command.CallTool | Command.StartRun) -> Outcome:
        """Return the outcome of a call in which an awaited object was cancelled."""
        message = f"Error calling tool '{command.tool}': CancelledError."
        asks_first = isinstance(command, Command.CallTool) and command.again
        if asks_first and self.setup.toolbox.get(command.tool).reconcile is not None:
            # An earlier process may have made the call, and `reconcile` may not have finished.
            return Outcome.InDoubt(message)
        return Outcome.Error(message)

    def complete_task(self, ticket: int, outcome: Outcome, run: Run | None) -> list[Command]:
        """Record the outcome of a child run, with the usage of that run."""
        core = None if run is None else run._core
        return self.publish_events(self.core.complete_task(ticket, outcome, core, self.now()))

    def end_grace(self) -> list[Command]:
        """Let the model continue without the calls that are still in progress."""
        return self.publish_events(self.core.end_grace(self.now()))

    def reach_deadline(self, deadline: float | None) -> list[Command]:
        """Record that the time is over. A timer of another clock may be a little early."""
        return self.publish_events(self.core.time_out(max(self.now(), deadline or 0.0)))

    def cancel(self) -> None:
        """Cancel the run. Nothing is admitted from outside any more."""
        with self._end as end:
            end.is_closed = True
            # A run that could not be written down is not over: its log can be resumed. One that
            # has not begun has no log.
            if not self.core.unwritten and self.core.event_count:
                with contextlib.suppress(StoreError):
                    self.publish_events(self.core.cancel(self.now()))

    def inject(self, make: Callable[[float], list[Command]]) -> list[Command] | None:
        """Admit a message or a decision, from any thread.

        Args:
            make: Passes it to the core at a time, and returns the commands that follow from it.

        Returns:
            The commands, for the driver; `None` if the driver is leaving the run.
        """
        with self._end as end:
            if end.is_closed:
                return None
            # The driver may leave the run before the caller's thread asks for the result.
            self._end.future()
            note_pauses(self)
            return make(self.now())

    def close_if_finished(self) -> bool:
        """Whether the run has ended. If so, nothing is admitted from outside any more."""
        with self._end as end:
            end.is_closed = end.is_closed or self.core.finished
            return end.is_closed

    def resource(self, owner: object, make: Callable[[], R]) -> R:
        """Return the resource that the run keeps for a tool.

        Args:
            owner: The tool.
            make: Makes the resource on first use. It is closed when the run is left.

        Raises:
            RunCancelled: The run was left: it has given up the call that asks for the resource.
        """
        resource = self._resources.get(owner, make)
        if resource is None:
            raise RunCancelled("the run is over", self.run)
        return resource

    def result_future(self) -> Future[RunResult]:
        """Return a future for the result, to be awaited outside of the driver."""
        return self._end.future()

    def result(self) -> RunResult:
        """Return the result of the run, which is over. Raises as `Agent.run` does."""
        return self._end.result()

    def _result_of_run(self) -> RunResult:
        self.run._raised = self.requests.error
        return RunResult._of(self.run, is_own=not self.beginning.only_reads)

    @property
    def _own_inbox(self) -> Inbox | None:
        """The inbox, if no run above and no worker delivers what comes."""
        inbox = self.beginning.inbox
        if inbox is None or inbox.is_of_worker or inbox.run_id != self.run.id:
            return None
        return inbox

    def __enter__(self) -> Self:
        if (inbox := self._own_inbox) is not None and self.store is not None:
            deliver_to(self.store, inbox)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._end.was_abandoned:
            return
        if self.beginning.runs_above and self.core.untrusted:
            above = self.beginning.runs_above[0]
            above.core.read_untrusted(above.ticket)
        self._end.close()
        if (inbox := self._own_inbox) is not None and self.store is not None:
            stop_delivering(self.store, inbox)
        self._resources.close()
        # The end of a run that could not be written down does not count.
        is_over = self.core.finished and not self.core.unwritten
        if is_over:
            self._end_children()
        self.core.release()
        if error is not None:
            put_run(error, self.run)
        if isinstance(error, UsageError) and error._cause is not None:
            error.__cause__ = error._cause
        left = None if is_over else self._left_with(error)
        raised, fault = self.requests.error, None
        if is_over and self.run.stop_reason == "cancelled":
            # A model that is cancelled may raise anything.
            raised = fault = fault_of_program(error)
        self._end.leave(left or fault, lambda: self.run._clear_driver(raised, left))

    def abandon(self) -> None:
        """Leave the run from another thread: the event loop of its driver has ended."""
        with self._end as end:
            if not end.is_closed or self.run._driver is not None:
                self.__exit__(None, None, None)
                end.was_abandoned = True

    def _end_children(self) -> None:
        """Cancel child runs that were kept, though their run has ended: by its time limit, say."""
        run, store, is_kept = self.run, self.store, self.kept_while is not None
        is_shared = store is not None and store._shared is not None
        # The run may have ended before those that it continues were opened here.
        if self.beginning.continues_children or (is_kept and is_shared and run._children):
            _abandon_children(run)
        if is_kept and not is_shared:
            _cancel_kept(run)

    def _left_with(self, error: BaseException | None) -> BaseException:
        if self.is_of_worker:
            return TakenOver(f"run {self.run.id} was left here, and other workers go on with it")
        if error is not None and isinstance(error, Exception):
            return error
        # Cancelling the task of the driver must not cancel those who watch.
        is_stored = self.store is not None and self.core.event_count > 0
        hint = f": call resume({self.run.id!r})" if is_stored else ""
        left = RunCancelled(f"the run was left before its end{hint}", self.run)
        left._was_left = True
        return left


def _cancel_kept(run: Run) -> None:
    """Cancel child runs of this process that no driver works on."""
    for child in run._children:
        _cancel_kept(child)
        if not child.finished and child._driver is None:
            with contextlib.suppress(StoreError):
                child.cancel()


def _abandon_children(run: Run) -> None:
    """Cancel child runs in the store that no driver works on."""
    if run._store is not None:
        with contextlib.suppress(StoreError):
            run._store._end_children(run.id)
