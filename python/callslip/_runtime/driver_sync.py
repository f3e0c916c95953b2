"""The sync driver: performs a run's commands in the caller's thread.

Sync models and sync tools are called in that thread. Awaitables go to the one private event loop;
calls beside another one, and calls under a time limit, go to the thread pool.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from callslip._base.failure import is_cancelled
from callslip._core import Command
from callslip._runtime.calls import Call
from callslip._runtime.model_in_thread import ThreadRequester, run_here
from callslip._runtime.model_step import ask
from callslip._runtime.on_loop import SessionDriver, call_if, call_to_end, call_tool, run_task
from callslip._runtime.pending import await_result
from callslip._runtime.questions import (
    AskAgainError,
    PersonQuestion,
    Question,
    answer_sync,
    begin_question,
    expire,
    settle,
)
from callslip._runtime.start import begins_with_calls, prepare_sync
from callslip._runtime.stops import DeadlineReached, Stopped
from callslip._runtime.tool_attempts import WaitingCalls
from callslip._threads import pool
from callslip.errors import StoreError
from callslip.models._direct import too_late
from callslip.tools._pending import PendingCall

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.runs import Run
    from callslip.tools import Outcome

__all__ = ["drive"]

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds to wait for child runs that were given up: a tool in one may never return."""


def drive(session: RunSession) -> None:
    """Perform the run to its end.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the run is its `.run`, and is cancelled unless it has
            a key.
    """
    if begins_with_calls(session):
        prepare_sync(session)
    driver = _Driver(session)
    session.run._set_driver(driver)
    try:
        commands: Sequence[Command] = session.start()
        while True:
            driver.drive(commands)
            driver.wait_for_ending_runs()
            if session.close_if_finished():
                return
            commands = ()
    except BaseException as error:
        is_cut_off = not isinstance(error, Exception)
        if not (isinstance(error, StoreError) or (is_cut_off and session.is_kept)):
            session.cancel()
        driver.give_up_all()
        driver.wait_for_ending_runs()
        raise


class _Driver(SessionDriver):
    def __init__(self, session: RunSession) -> None:
        super().__init__(session)
        self._todo: deque[Command] = deque()
        self._calls: dict[int, tuple[Call | None, Callable[[], object] | None]] = {}
        self._waiting = WaitingCalls(session)
        # Child runs that were given up and may not have ended yet.
        self._ending: list[Future[Any]] = []
        # Work for the run's own thread: outcomes of calls, messages, functions.
        self._arrived: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._grace_ends: float | None = None
        # When calls fail that others are to answer, in Unix seconds.
        self._expiring: dict[int, float] = {}
        # The work that the run's own thread waits for, or does, right now.
        self._awaited: Future[Any] | None = None
        self._inline: Call | None = None
        self._question: Question | None = None
        # Questions for people that wait beside the calls of a run with a time limit.
        self._beside: dict[int, tuple[PersonQuestion, Future[Any]]] = {}

    def inject(self, make: Callable[[float], list[Command]]) -> bool:
        """Admit a message or a decision, from any thread. As `Driver.inject`."""
        session = self._session
        commands = session.inject(make)
        if commands is None:
            return False
        self._arrived.put(lambda: self._todo.extend(session.publish_events(commands)))
        if self._is_wanted() and not session.core.finished:
            return True
        if (inline := self._inline) is not None:
            inline.cancelled = True
        if (awaited := self._awaited) is not None:
            awaited.cancel()
        return True

    def look_at_time(self) -> None:
        """Look at the deadline of the run again, from any thread. As `Driver.look_at_time`."""
        self._arrived.put(lambda: None)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in the run's own thread, once that waits for nothing but calls."""
        future: Future[T] = Future()

        def call() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
                if not isinstance(error, Exception):
                    raise

        self._arrived.put(call)
        return future

    def drive(self, commands: Sequence[Command]) -> None:
        """Perform commands, and those that follow from them, until the run is over."""
        self._todo.extend(commands)
        while not self._session.core.finished:
            deadline = self._session.core.deadline
            self._drop_questions()
            try:
                if self._todo:
                    command = self._todo.popleft()
                    self.wait_until_written()
                    if self._session.is_due(command):
                        self._perform(command)
                else:
                    self._handle_next()
            except DeadlineReached:
                self._todo.extend(self._session.reach_deadline(deadline))
            except Stopped:
                self.handle_arrived()
        self._drop_questions()
        self.wait_until_written()
        self.handle_arrived()
        for command in self._todo:
            if isinstance(command, Command.Cancel):
                self._give_up(command.ticket)

    def wait_until_written(self) -> None:
        """Wait until the log is written down: no command is performed before that."""
        commits = self._session.commits
        if commits is not None:
            commits.written(self._session.core)

    def give_up_all(self) -> None:
        """Give up all calls in progress."""
        for ticket in list(self._calls):
            self._give_up(ticket)

    def wait_for_ending_runs(self) -> None:
        """Wait until the child runs that were given up have ended: none outlives its parent."""
        if self._ending:
            wait(self._ending, _PATIENCE)

    def _perform(self, command: Command) -> None:
        match command:
            case Command.AskModel():
                self._todo.extend(self._ask(command.turn))
            case Command.CallTool():
                # A call with no other call or command beside it needs no thread.
                is_alone = not (self._todo or self._calls or self._waiting)
                if not is_alone or self._session.core.deadline is not None:
                    self.start(command)
                else:
                    self._todo.extend(self._call(command))
            case Command.StartRun():
                self.start(command)
            case Command.CheckAnswer() | Command.CheckApproval():
                self._todo.extend(self._answer(command))
            case Command.AskApproval():
                self._ask_person(command)
            case Command.AskResult():
                self._ask_result(command)
            case Command.Settle():
                self._grace_ends = time.perf_counter() + self._session.grace
            case Command.Cancel(ticket=ticket):
                self._give_up(ticket)

    def _handle_next(self) -> None:
        """Wait for the end of a call, of the grace or of the run's time, and handle it."""
        until = [self._session.remaining(), self._waiting.remaining()]
        if self._grace_ends is not None:
            until.append(self._grace_ends - time.perf_counter())
        until += [ends - self._session.now() for ends in self._expiring.values()]
        bounds = [max(0.0, seconds) for seconds in until if seconds is not None]
        try:
            handle = self._arrived.get(timeout=min(bounds) if bounds else None)
        except Empty:
            self._todo.extend(self._waiting.take_due())
            self._todo.extend(self._take_expired())
            if self._grace_ends is not None and time.perf_counter() >= self._grace_ends:
                self._grace_ends = None
                self._todo.extend(self._session.end_grace())
            elif self._session.remaining() == 0.0:
                raise DeadlineReached from None
            return
        handle()

    def _ask_result(self, command: Command.AskResult) -> None:
        """Ask for a result from outside; or note when the call fails that others are to answer."""
        if self._session.askers.answer is not None:
            self._ask_person(command)
        elif command.until is not None:
            self._expiring[command.ticket] = command.until

    def _ask_person(self, question: PersonQuestion) -> None:
        """Let a person answer, in this thread if the run has no time limit.

        That leaves out the time in which only people are waited for, so it must be seen when a call
        beside the question ends.
        """
        if self._session.core.is_timed:
            self._ask_beside(question, None)
        else:
            self._todo.extend(self._answer(question))

    def _ask_beside(self, question: PersonQuestion, problem: str | None) -> None:
        asked = begin_question(self._session, question, problem)
        if asked is None:
            return
        self._beside[question.ticket] = question, asked
        asked.add_done_callback(lambda _: self._arrived.put(lambda: self._take_answer(asked)))

    def _take_answer(self, asked: Future[pool.Result[Any]]) -> None:
        taken = [question for question, future in self._beside.values() if future is asked]
        for question in taken:
            del self._beside[question.ticket]
            try:
                self._todo.extend(settle(self._session, question, asked.result().get()))
            except AskAgainError as again:
                self._ask_beside(question, str(again))

    def _drop_questions(self) -> None:
        """Give up the questions beside the calls that need no answer any more."""
        for ticket, (question, asked) in list(self._beside.items()):
            if not self._session.is_due(question):
                del self._beside[ticket]
                asked.cancel()

    def _take_expired(self) -> list[Command]:
        """End the calls whose results did not come in time, and return the commands that follow."""
        now = self._session.now()
        late = [(ticket, ends) for ticket, ends in self._expiring.items() if ends <= now]
        commands: list[Command] = []
        for ticket, ends in late:
            del self._expiring[ticket]
            commands += expire(self._session, ticket, ends)
        return commands

    def _ask(self, turn: int) -> Sequence[Command]:
        """Ask the model, and read its reply into the run."""
        self._grace_ends = None
        return run_here(ask(self._session, turn, ThreadRequester(self._session, turn, self)))

    def handle_arrived(self) -> None:
        """Handle all arrived work. Calls that ended while the model was asked precede its reply."""
        while not self._arrived.empty():
            self._arrived.get()()

    def _call(self, command: Command.CallTool) -> Sequence[Command]:
        """Call a tool in this thread."""
        session = self._session
        call = self._inline = Call(session, command.ticket)
        try:
            tool, context = session.resolve_tool(command, call)
            if tool.is_async or tool.gate is not None:
                outcome = self.wait_for_thread(pool.on_loop(call_tool(session, command, call)))
            else:
                outcome = call_if(call.may_begin, tool.call, command.arguments, context)
                if hasattr(outcome, "__await__"):
                    outcome = self.wait_for_thread(pool.on_loop(pool.coroutine_of(outcome)))
        except Stopped:
            return ()
        except BaseException as error:
            if not is_cancelled(error):
                call.cancelled = True
                raise
            outcome = session.cancelled_outcome(command)
        finally:
            self._inline = None
            call.end()
        return self._end_attempt(command, outcome)

    def _end_attempt(self, command: Command.CallTool, outcome: Outcome) -> Sequence[Command]:
        """Complete a call, or let it wait for its next attempt."""
        if isinstance(outcome, PendingCall):
            return self._session.publish_events(
                await_result(self._session, command.ticket, outcome)
            )
        if self._waiting.add(command, outcome):
            self.wait_until_written()
            return ()
        return self._session.complete_call(command.ticket, outcome)

    def _answer(self, command: Question) -> Sequence[Command]:
        """Let the program or a person answer a question, in this thread if that is possible."""
        self._question = command
        try:
            commands = answer_sync(self._session, command, self.wait_for_thread)
        except Stopped:
            return ()
        finally:
            self._question = None
        if self._session.remaining() == 0.0:
            self._todo.extend(commands)
            raise DeadlineReached
        return commands

    def start(self, command: Command) -> None:
        """Call a tool or start a child run, without waiting for it."""
        if isinstance(command, Command.StartRun):
            self._start_run(command)
            return
        if not isinstance(command, Command.CallTool):
            self._todo.append(command)
            return
        self.wait_until_written()
        session, ticket = self._session, command.ticket
        if not session.is_due(command):
            return
        call = Call(session, ticket)
        tool, context = session.resolve_tool(command, call)
        future: Future[pool.Result[Outcome]]
        if tool.is_async or tool.gate is not None:
            future = pool.on_loop(call_tool(session, command, call))
        else:
            future = pool.submit(call_to_end, call.may_begin, tool.call, command.arguments, context)
        call.leave()
        self._calls[ticket] = (call, future.cancel)

        def on_done(done: Future[pool.Result[Outcome]]) -> None:
            call.finish()
            self._arrived.put(lambda: self._complete_call(command, done))

        future.add_done_callback(on_done)

    def _start_run(self, command: Command.StartRun) -> None:
        """Start a child run on the private loop, where it occupies no thread."""
        self.wait_until_written()
        if not self._session.is_due(command):
            return
        future, cancel = pool.run_to_end_on_loop(run_task(self._session, command))

        def give_up() -> None:
            self._ending.append(future)
            cancel()

        self._calls[command.ticket] = (None, give_up)
        future.add_done_callback(
            lambda done: self._arrived.put(lambda: self._complete_task(command, done))
        )

    def _complete_call(self, command: Command.CallTool, call: Future[pool.Result[Outcome]]) -> None:
        if self._calls.pop(command.ticket, None) is None:
            return
        try:
            outcome = call.result().get()
        except BaseException as error:
            if not is_cancelled(error):
                raise
            outcome = self._session.cancelled_outcome(command)
        self._todo.extend(self._end_attempt(command, outcome))

    def _complete_task(
        self,
        command: Command.StartRun,
        working: Future[pool.Result[tuple[Outcome, Run | None]]],
    ) -> None:
        if self._calls.pop(command.ticket, None) is None:
            return
        run = None
        try:
            outcome, run = working.result().get()
        except BaseException as error:
            if not is_cancelled(error):
                raise
            # A tool of the child run has cancelled the task that it runs in.
            outcome = self._session.cancelled_outcome(command)
        self._todo.extend(self._session.complete_task(command.ticket, outcome, run))

    def _is_wanted(self) -> bool:
        """Whether the question that the run's own thread waits for needs an answer."""
        return self._question is None or self._session.is_due(self._question)

    def _give_up(self, ticket: int) -> None:
        self._waiting.drop(ticket)
        self._expiring.pop(ticket, None)
        call, cancel = self._calls.pop(ticket, (None, None))
        if call is not None:
            call.cancelled = True
        if cancel is not None:
            cancel()

    def wait_for_thread(self, future: Future[pool.Result[T]], timeout: float | None = None) -> T:
        """Wait for another thread, until the deadline of the run at most.

        Raises:
            TimeoutError: It took more than `timeout` seconds; `None` is no limit.
        """
        self._awaited = future
        if self._session.core.finished or not self._is_wanted():
            # It was ended from outside at this very moment.
            future.cancel()
        remaining = self._session.remaining()
        bounds = [seconds for seconds in (remaining, timeout) if seconds is not None]
        try:
            result = future.result(min(bounds, default=None))
        except FutureTimeoutError:
            future.cancel()
            if timeout is not None and (remaining is None or timeout < remaining):
                raise too_late(timeout) from None
            raise DeadlineReached from None
        except FutureCancelledError:
            raise Stopped from None
        except BaseException:
            future.cancel()
            raise
        finally:
            self._awaited = None
        return result.get()
