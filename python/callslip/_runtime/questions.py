"""Questions of a run: whether an answer is right, a call needs approval, or is approved."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from callslip._base import _lazy
from callslip._base.options import check_called_with, check_text
from callslip._core import Command
from callslip._runtime.calls import ProgramCall
from callslip._runtime.pauses import note_pauses
from callslip._runtime.verdicts import verdict, verdict_sync
from callslip._threads import pool
from callslip.approval._ask import is_wanted
from callslip.errors import UsageError
from callslip.events._event import ticket_id
from callslip.runs import Ticket
from callslip.runs._answered import answered
from callslip.runs._conversation import edited_arguments
from callslip.tools import Context, Fail, Outcome
from callslip.tools._callable import is_async

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.approval import Answerer, ApprovalDecision, Approver

__all__ = [
    "NOBODY",
    "AskAgainError",
    "Askers",
    "PersonQuestion",
    "Question",
    "answer",
    "answer_sync",
    "begin_question",
    "expire",
    "settle",
]

PersonQuestion: TypeAlias = "Command.AskApproval | Command.AskResult"
Question: TypeAlias = "Command.CheckAnswer | Command.CheckApproval | PersonQuestion"


class Wait(Protocol):
    """Waits for work on the private loop."""

    def __call__(self, future: Future[pool.Result[Any]]) -> Any:
        """Return the result."""


def _deny(_: Ticket) -> str:
    return "Nobody is there to approve it."


class Asker:
    """A function that decides on the calls of a run and of its child runs, or answers them.

    Args:
        option: The name of the option with the function.
        function: The function.

    Attributes:
        function: The function.
        is_async: Whether it needs an event loop.

    Raises:
        UsageError: It is not a function of a ticket.
    """

    __slots__ = ("_lock", "_takes_problem", "function", "is_async")

    def __init__(self, option: str, function: Callable[..., Any]) -> None:
        check_called_with(option, function, "the Ticket")
        self.function: Callable[..., Any] = function
        self._takes_problem = _takes_problem(function)
        # A person answers one question at a time.
        self._lock: Any = None
        self.is_async: bool = is_async(function)

    async def ask(self, is_due: Callable[[], bool], ticket: Ticket, problem: str | None) -> Any:
        """Ask on an event loop. A sync function is called in a thread, for one call at a time.

        Args:
            is_due: Whether the decision is still wanted.
            ticket: The call.
            problem: The problems of what the function has returned before.
        """
        if self.is_async:
            result = self.ask_sync(is_due, ticket, problem)
        else:
            if self._lock is None:
                self._lock = _lazy.asyncio.Lock()
            async with self._lock:
                result = await pool.in_thread(self.ask_sync, is_due, ticket, problem)
        return await result if inspect.isawaitable(result) else result

    def ask_sync(self, is_due: Callable[[], bool], ticket: Ticket, problem: str | None) -> Any:
        """Ask in this thread. Returns the decision, or an awaitable of it."""
        if not is_due():
            # It was decided while other questions were asked.
            return None
        token = is_wanted.set(is_due)
        try:
            if problem is None:
                return self.function(ticket)
            if not self._takes_problem:
                raise UsageError(problem)
            return self.function(ticket, problem=problem)
        finally:
            is_wanted.reset(token)


def _takes_problem(function: Callable[..., Any]) -> bool:
    try:
        return "problem" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class Askers(NamedTuple):
    """The functions of the program that people or other systems are asked by.

    Attributes:
        approve: Decides on calls that are awaiting approval; `None` if others do.
        answer: Answers calls whose results come from outside; `None` if others do.
    """

    approve: Asker | None
    answer: Asker | None

    @classmethod
    def of(cls, approve: Approver | None, answer: Answerer | None) -> Askers:
        """Return the functions that a program has passed as `approve=` and `answer=`.

        Raises:
            UsageError: One is not a function of a ticket.
        """
        if approve is None and answer is None:
            return NOBODY
        return cls(
            None if approve is None else Asker("approve", approve),
            None if answer is None else Asker("answer", answer),
        )

    def or_else(self, above: Askers) -> Askers:
        """Return these functions, with those of the run above for what is missing."""
        return Askers(self.approve or above.approve, self.answer or above.answer)

    def alone(self) -> Askers:
        """Return those of a run that nobody else decides for: its calls are denied."""
        return self._replace(approve=self.approve or Asker("approve", _deny))

    @property
    def can_approve(self) -> bool:
        """Whether somebody can be asked for approval."""
        return self.approve is not None and self.approve.function is not _deny


NOBODY = Askers(None, None)
"""Nobody is asked: others decide and answer."""


async def answer(session: RunSession, question: Question) -> Sequence[Command]:
    """Answer a question on an event loop, and return the commands that follow."""
    if not _is_asked(session, question):
        return ()
    problem: str | None = None
    while session.is_due(question):
        try:
            return settle(session, question, await _answer(session, question, problem))
        except AskAgainError as again:
            problem = str(again)
    return ()


def answer_sync(session: RunSession, question: Question, wait: Wait) -> Sequence[Command]:
    """Answer a question in this thread, and return the commands that follow.

    Args:
        session: The session of the run.
        question: The question.
        wait: Waits for work on the private loop, at most until the deadline.
    """
    if not _is_asked(session, question):
        return ()
    problem: str | None = None
    while session.is_due(question):
        is_bounded = session.core.deadline is not None or _until(question) is not None
        try:
            if is_bounded or _needs_loop(session, question):
                result = wait(pool.on_loop(_answer(session, question, problem)))
            else:
                result = _answer_here(session, question, problem)
                if inspect.isawaitable(result):
                    result = wait(pool.on_loop(pool.coroutine_of(result)))
        except Fail as failure:
            if not isinstance(question, Command.AskResult):
                raise
            result = failure
        try:
            return settle(session, question, result)
        except AskAgainError as again:
            problem = str(again)
    return ()


def begin_question(
    session: RunSession, question: PersonQuestion, problem: str | None
) -> Future[pool.Result[Any]] | None:
    """Begin to ask a person, on the private loop; `None` if nobody is to be asked.

    Args:
        session: The session of the run.
        question: The question.
        problem: The problems of the answer before.
    """
    if not (_is_asked(session, question) and session.is_due(question)):
        return None
    return pool.on_loop(_answer(session, question, problem))


class AskAgainError(Exception):
    """The arguments of a decision, or a result, are wrong."""


class _TooLate(NamedTuple):
    """No result came from outside in time."""


def _is_asked(session: RunSession, question: Question) -> bool:
    """Whether a question is for this process: others may answer calls, at any time."""
    if not isinstance(question, Command.AskResult):
        return True
    return session.askers.answer is not None or question.until is not None


def _until(question: Question) -> float | None:
    return question.until if isinstance(question, Command.AskResult) else None


def _needs_loop(session: RunSession, question: Question) -> bool:
    if isinstance(question, Command.CheckAnswer):
        return session.agent._answers.is_async
    if isinstance(question, Command.CheckApproval):
        return is_async(session.setup.toolbox.get(question.tool).needs_approval)
    asker = _asker(session, question)
    return asker is not None and asker.is_async


def _asker(session: RunSession, question: Command.AskApproval | Command.AskResult) -> Asker | None:
    is_result = isinstance(question, Command.AskResult)
    return session.askers.answer if is_result else session.askers.approve


async def _answer(session: RunSession, question: Question, problem: str | None) -> Any:
    if isinstance(question, Command.CheckAnswer):
        context = session.program_context("check_answer")
        name = session.setup.protocol.answer_name
        return await session.agent._answers.check(name, question.value, context)
    if isinstance(question, Command.CheckApproval):
        check = session.setup.toolbox.get(question.tool).needs_approval
        context = _context(session, question)
        return await verdict(check, question.tool, question.arguments, context)
    asker, ticket = _asker(session, question), _ticket(session, question)
    if isinstance(question, Command.AskApproval):
        assert asker is not None
        return await asker.ask(partial(session.is_due, question), ticket, problem)
    timer = _lazy.asyncio.timeout(_remaining(session, question))
    try:
        async with timer:
            if asker is None:
                # Others answer, and this is given up then.
                await _lazy.asyncio.get_running_loop().create_future()
            else:
                return await asker.ask(partial(session.is_due, question), ticket, problem)
    except TimeoutError:
        if not timer.expired():
            raise
        return _TooLate()
    except Fail as failure:
        return failure


def _remaining(session: RunSession, question: Command.AskResult) -> float | None:
    return None if question.until is None else max(0.0, question.until - session.now())


def _answer_here(session: RunSession, question: Question, problem: str | None) -> Any:
    if isinstance(question, Command.CheckAnswer):
        context = session.program_context("check_answer")
        name = session.setup.protocol.answer_name
        return session.agent._answers.check_sync(name, question.value, context)
    if isinstance(question, Command.CheckApproval):
        check = session.setup.toolbox.get(question.tool).needs_approval
        context = _context(session, question)
        return verdict_sync(check, question.tool, question.arguments, context)
    asker, ticket = cast("Asker", _asker(session, question)), _ticket(session, question)
    return asker.ask_sync(partial(session.is_due, question), ticket, problem)


def _context(session: RunSession, question: Command.CheckApproval) -> Context:
    run = session.run
    return Context(
        run_id=run.id,
        ticket_id=ticket_id(question.ticket),
        tool=question.tool,
        deps=run._deps,
        _call=ProgramCall(run),
    )


def _ticket(session: RunSession, question: Command.AskApproval | Command.AskResult) -> Ticket:
    (ticket,) = session.run._reads.tickets.some([question.ticket])
    return ticket


def settle(session: RunSession, question: Question, result: Any) -> Sequence[Command]:
    """Pass an answer to the core, and return the commands that follow from it."""
    if isinstance(question, Command.CheckAnswer):
        return session.answer_checked(question.turn, result)
    if isinstance(question, Command.CheckApproval):
        needs_approval, reason = result
        checked = session.core.approval_checked(
            question.ticket, needs_approval, reason, session.now()
        )
        return session.publish_events(checked)
    if isinstance(question, Command.AskResult):
        return _settle_result(session, question, result)
    if not session.is_due(question):
        # Somebody else has decided, or the run is over.
        return ()
    note_pauses(session)
    try:
        return session.publish_events(_decide(session, question.ticket, result))
    except UsageError as error:
        if isinstance(result, Mapping) and session.is_due(question):
            raise AskAgainError(str(error)) from error
        if session.is_due(question):
            raise
        return ()


def expire(session: RunSession, ticket: int, until: float) -> Sequence[Command]:
    """End a call whose result did not come from outside in time."""
    note_pauses(session)
    # A timer of another clock may be a little early.
    return session.publish_events(session.core.expire(ticket, max(session.now(), until)))


def _settle_result(
    session: RunSession, question: Command.AskResult, result: Any
) -> Sequence[Command]:
    core, now = session.core, session.now()
    if isinstance(result, _TooLate):
        return expire(session, question.ticket, question.until or 0.0)
    if not session.is_due(question):
        return ()
    note_pauses(session)
    try:
        if isinstance(result, Fail):
            outcome: Outcome = Outcome.Error(result.text_for_model())
        else:
            outcome = answered(result)
        return session.publish_events(core.answer(question.ticket, outcome, now))
    except UsageError as error:
        if session.is_due(question):
            raise AskAgainError(str(error)) from error
        return ()


def _decide(session: RunSession, ticket: int, decision: ApprovalDecision) -> list[Command]:
    core, now = session.core, session.now()
    if decision is True:
        return core.approve(ticket, now)
    if isinstance(decision, str):
        check_text("the reason that approve returns", decision)
        return core.deny(ticket, decision, now)
    if decision is False:
        return core.deny(ticket, "", now)
    if isinstance(decision, Mapping):
        return core.approve(ticket, now, edited_arguments(decision))
    raise UsageError(
        "expected approve to return True, False, the reason of a denial as text, or the arguments "
        f"as a mapping: got {decision!r}"
    )
