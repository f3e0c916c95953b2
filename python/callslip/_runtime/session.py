"""One run under way: what the async and the sync driver share."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, cast

from callslip import _lazy
from callslip._core import Command, Delta
from callslip._failure import Passing, words_of
from callslip._runtime.reconcile import Reconciling
from callslip.errors import ModelError, RunCancelled, SandboxError, StoreError, UsageError
from callslip.events import Event, Progress
from callslip.models._counts import read_usage
from callslip.protocols import TicketProtocol
from callslip.runs import RunResult
from callslip.tools import Context
from callslip.tools._context import enclosing_call

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType

    from callslip._runtime.setup import Offer
    from callslip._threads.commits import Commits
    from callslip.agent import Agent
    from callslip.history import History
    from callslip.models._reply import Messages, ModelChunk
    from callslip.runs import Run, Usage
    from callslip.store import TicketStore
    from callslip.tools import Tool

__all__ = [
    "Begin",
    "Call",
    "Listener",
    "Notice",
    "Session",
    "begin",
    "current_call",
    "go_on",
]

Listener: TypeAlias = Callable[[Event | Delta], None]

Notice: TypeAlias = Callable[[Progress], None]
"""Takes what passes by, from any thread."""


class Kept(Protocol):
    """What is closed when the run is left."""

    def close(self) -> None:
        """Close it. May be said any number of times."""


K = TypeVar("K", bound=Kept)


class Call:
    """A tool call under way, for whatever runs in its context.

    Attributes:
        session: The run that makes it.
        ticket: The number of its ticket.
        over: Whether it has ended, for the run.
        cancelled: Whether it was given up.
    """

    __slots__ = ("_token", "cancelled", "over", "session", "ticket")

    def __init__(self, session: Session, ticket: int) -> None:
        self.session = session
        self.ticket = ticket
        self.over = False
        self.cancelled = False
        self._token = enclosing_call.set(self)

    def end(self) -> None:
        """Say that it is over, also to what it has left running."""
        self.over = True
        self.leave()

    def notice(
        self, context: Context, done: float, total: float | None, message: str | None
    ) -> None:
        """Tell who watches how far it has come, from any thread."""
        notice = self.session.notice
        if notice is not None and not self.over:
            notice(Progress(context.run_id, context.ticket_id, context.tool, done, total, message))

    def leave(self) -> None:
        """Say that what follows in this context is no part of it; it goes on elsewhere."""
        # Not `suppress`, which costs more than all the rest of this.
        try:  # noqa: SIM105
            enclosing_call.reset(self._token)
        except ValueError:
            # A driver that nobody ends properly is closed in another context, which knows no calls.
            pass


def current_call() -> Call | None:
    """Return the call that this code runs in; `None` outside of calls."""
    call = cast("Call | None", enclosing_call.get())
    return None if call is None or call.over else call


Begin: TypeAlias = "Callable[[Session], list[Command]]"
"""How a run is begun, or gone on with."""


def begin(session: Session) -> list[Command]:
    """Begin a run."""
    return session.core.start(session.run.task, session.now())


def go_on(session: Session) -> list[Command]:
    """Go on with a run that another process has begun, or whose model failed."""
    return session.core.resumed(session.now())


_SURPLUS = 8
"""Chunks without text that are waited for after the end of a move."""


class Session:
    """What performs the commands of one run needs, and how its outcomes go back in."""

    __slots__ = (
        "_clock",
        "_closed",
        "_fault",
        "_history",
        "_is_left",
        "_kept",
        "_outcome",
        "_plain",
        "_words",
        "agent",
        "begin",
        "core",
        "error",
        "levels",
        "listener",
        "model",
        "notice",
        "offer",
        "room",
        "root",
        "run",
        "store",
        "told_to",
        "watches_children",
    )

    def __init__(
        self,
        run: Run,
        agent: Agent,
        offer: Offer,
        begin: Begin,
        *,
        store: TicketStore | None,
        levels: int | None,
        root: str,
    ) -> None:
        self.run = run
        self.core = run._core
        self.agent = agent
        self.offer = offer
        self.model = agent._model
        # Where nothing is offered and nothing left out, the model is called as it is.
        is_plain = not agent._options and agent.history is None
        self._plain = self.model.plain if is_plain else None
        self.store = store
        self.levels = run._levels = levels
        self.root = root
        self.begin = begin
        self._history: History | None = None
        self._fault: UsageError | None = None
        self._outcome: Future[RunResult] | None = None
        self.listener: Listener | None = None
        self.notice: Notice | None = None
        self.room: Callable[[], Awaitable[None]] | None = None
        self.watches_children = False
        self.error: BaseException | None = None
        # The listener is told what is new, not what happened before.
        self.told_to = self.core.event_count
        # Others may say something in the very moment in which the driver finds the run over.
        self._words = threading.RLock()
        self._closed = False
        # What its tools keep for as long as it goes on.
        self._kept: dict[object, Kept] | None = None
        self._is_left = False
        # The wall clock may jump in mid-run; a time limit must not.
        self._clock = time.time() - time.perf_counter()

    @property
    def commits(self) -> Commits | None:
        """What tells when something is written down; `None` for a run that is not kept."""
        return None if self.store is None else self.store.commits

    @property
    def grace(self) -> float:
        """Seconds that a call may take before the model goes on without it (ticket)."""
        protocol = self.agent.protocol
        return protocol.grace if isinstance(protocol, TicketProtocol) else 0.0

    def now(self) -> float:
        """Unix seconds."""
        return self._clock + time.perf_counter()

    def remaining(self) -> float | None:
        """Seconds to the deadline; `None` without one."""
        deadline = self.core.deadline
        return None if deadline is None else max(0.0, deadline - self.now())

    def told(self, commands: list[Command]) -> list[Command]:
        """Tell the listener what is new in the log, and hand the commands on."""
        if self.listener is not None:
            for text in self.core.records(self.told_to):
                self.told_to += 1
                self.listener(Event.from_json(text, self.run.id))
        return commands

    def start(self) -> list[Command]:
        """Begin the run, or go on with it."""
        return self.told(self.begin(self))

    def is_due(self, command: Command) -> bool:
        """Whether a command is still to be performed: the run may have gone on without it."""
        if isinstance(command, Command.AskModel):
            return not self.core.finished and command.turn == self.core.counts[0]
        if isinstance(command, (Command.CallTool, Command.StartRun)):
            return self.core.is_open(command.ticket)
        return True

    def is_asked(self, turn: int) -> bool:
        """Whether it is still this question that is to be answered."""
        return not self.core.finished and self.core.counts[0] == turn

    def ask(self) -> object:
        """Call the model. Returns its result as it is."""
        if self._plain is not None:
            return self._plain(self.run.messages)
        options = self.agent._options
        messages: Messages = self.run.messages
        if self.agent.history is not None:
            if self._history is None:
                from callslip.history import History

                lists = isinstance(self.agent.protocol, TicketProtocol)
                self._history = History(
                    self.agent.history,
                    self.core.short,
                    examples=self.core.examples,
                    tickets=self.core.ticket_list if lists else None,
                )
            try:
                messages = self._history.shown(messages)
            except UsageError as error:
                self._fault = error
                raise
        if not options:
            return self.model(messages)
        if "grammar" in options:
            grammar = self.core.grammar(self.agent.protocol.thoughts, self.model.bounds)
            if grammar.unruled:
                _warn_unruled(grammar.unruled)
            options = {**options, "grammar": grammar}
        return self.model(messages, **options)

    def reply(
        self,
        text: str,
        finish_reason: str | None = None,
        usage: Mapping[str, float] | Usage | None = None,
        reasoning: str = "",
    ) -> list[Command]:
        """Give a whole reply in."""
        cost = None if usage is None else _cost(_counts(usage))
        if reasoning and self.listener is not None:
            self.listener(Delta.Reasoning(reasoning))
        commands = self.core.reply(text, finish_reason, cost, self.now())
        return commands if self.listener is None else self.told(commands)

    def failed(self, error: BaseException) -> list[Command]:
        """Give a failure of the model client in.

        Raises:
            StoreError: It is not the client that failed, but the store.
            UsageError: It is the program's own policy that failed.
        """
        if self.core.unwritten:
            raise error
        if error is self._fault:
            self._fault.run, self._fault._cause = self.run, error.__cause__
            raise error
        self.error = error = _raised(error)
        text = words_of(error)
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return self.told(self.core.failed(message, self.now()))

    def tool(
        self, command: Command.CallTool, call: Call
    ) -> tuple[Tool[..., Any] | Reconciling, Context | None]:
        """Return the tool that a command names, and what it is told about the call."""
        tool = self.offer.toolbox.get(command.tool)
        if command.again and tool.reconcile is not None:
            return Reconciling(tool), self._context(command, call)
        if not tool.wants_context:
            return tool, None
        return tool, self._context(command, call)

    def _context(self, command: Command.CallTool, call: Call) -> Context:
        return Context(
            run_id=self.run.id, ticket_id=f"T{command.ticket}", tool=command.tool, _call=call
        )

    def completed(self, ticket: int, outcome: tuple[str, str]) -> list[Command]:
        """Give the outcome of a call in."""
        kind, text = outcome
        if isinstance(text, Passing):
            kind = "transient"
        try:
            commands = self.core.completed(ticket, kind, text, self.now())
        except MemoryError as error:
            told = f"MemoryError: {error}. Call it for a smaller part."
            commands = self.core.completed(ticket, "error", told, self.now())
        return commands if self.listener is None else self.told(commands)

    def cancelled_inside(self, command: Command.CallTool | Command.StartRun) -> tuple[str, str]:
        """Return the outcome of a call in which something was cancelled that it waited for."""
        told = f"Error calling tool '{command.tool}': CancelledError."
        asks_first = isinstance(command, Command.CallTool) and command.again
        if asks_first and self.offer.toolbox.get(command.tool).reconcile is not None:
            # It may have been made before, and what asks for that may not have come to its end.
            return "in_doubt", told
        return "error", told

    def run_ended(self, ticket: int, outcome: tuple[str, str], run: Run | None) -> list[Command]:
        """Give the outcome of a task's run in, with what it has spent."""
        kind, text = outcome
        core = None if run is None else run._core
        return self.told(self.core.run_ended(ticket, kind, text, core, self.now()))

    def settled(self) -> list[Command]:
        """Say that the grace is over."""
        return self.told(self.core.settled(self.now()))

    def timed_out(self, deadline: float | None) -> list[Command]:
        """Say that this deadline is reached; a timer of another clock may come a little early."""
        return self.told(self.core.timed_out(max(self.now(), deadline or 0.0)))

    def cancelled(self) -> None:
        """Say that the run is to end now."""
        with self._words:
            self._closed = True
            # A run that could not be written down is not over: it can be resumed from what was.
            if not self.core.unwritten:
                with contextlib.suppress(StoreError):
                    self.told(self.core.cancel(self.now()))

    def given(self, make: Callable[[float], list[Command]]) -> list[Command] | None:
        """Take what somebody says from outside, in any thread.

        Returns:
            What is to be done, for the driver; `None` where that has left the run.
        """
        with self._words:
            return None if self._closed else make(self.now())

    def keep(self, owner: object, make: Callable[[], K]) -> K:
        """Return what the run keeps for a tool: made on first use, and closed when the run is left.

        Raises:
            RunCancelled: The run was left, and the call is one that it has given up.
        """
        with self._words:
            if self._is_left:
                raise RunCancelled("the run is over", self.run)
            if self._kept is None:
                self._kept = {}
            if owner not in self._kept:
                self._kept[owner] = make()
            return cast("K", self._kept[owner])

    def over(self) -> bool:
        """Whether the run has ended. If so, nothing more is taken."""
        with self._words:
            self._closed = self._closed or self.core.finished
            return self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the run to whoever resumes it."""
        with self._words:
            self._closed = self._is_left = True
            kept, self._kept = self._kept, None
        for one in (kept or {}).values():
            one.close()
        self.core.release()
        self.run._left()
        if isinstance(error, (StoreError, SandboxError)) and error.run is None:
            error.run = self.run
        if isinstance(error, UsageError) and error._cause is not None:
            error.__cause__ = error._cause
        if self._outcome is not None and not self._outcome.done():
            self._tell(self._outcome, error)

    def outcome(self) -> Future[RunResult]:
        """Return what will be told of the end of the run to who waits for it from outside."""
        if self._outcome is None:
            self._outcome = _lazy.futures.Future()
        return self._outcome

    def result(self) -> RunResult:
        """Return what came of the run, which is over. Raises as `Agent.run` does."""
        return RunResult._of(self.run, self.error)

    def _tell(self, outcome: Future[RunResult], error: BaseException | None) -> None:
        try:
            result = self.result() if self.core.finished else None
        except BaseException as failure:  # noqa: BLE001  # it is the waiter's to handle
            outcome.set_exception(failure)
            return
        if result is None:
            left = error or RunCancelled("the run was left before its end", self.run)
            outcome.set_exception(left)
        else:
            outcome.set_result(result)


def _warn_unruled(tools: list[str]) -> None:
    names = ", ".join(tools)
    warnings.warn(
        f"no arguments fit the schema of {names}: under the grammar any object can be written, and "
        "the check of the arguments refuses it; correct the schema",
        stacklevel=3,
    )


class Receipt:
    """A streamed reply, chunk by chunk on its way into the run."""

    __slots__ = ("_finish_reason", "_session", "_surplus", "_turn", "_usage")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = session.core.counts[0]
        self._finish_reason: str | None = None
        self._usage: dict[str, float] | None = None
        self._surplus: int | None = None

    def take(self, chunk: ModelChunk) -> tuple[bool, Sequence[Command]]:
        """Take a chunk. Returns whether the stream is to be stopped, and calls that may start.

        Where a reply ends by itself at the end of its move, what closes it (the finish reason, the
        usage) comes in the next chunks. So the stream is stopped only when more text comes.
        """
        if chunk.finish_reason is not None:
            self._finish_reason = chunk.finish_reason
        if chunk.usage is not None:
            self._usage = {**(self._usage or {}), **_counts(chunk.usage)}
        if self._surplus is not None:
            self._surplus += 1
            return bool(chunk.text) or self._surplus > _SURPLUS, ()
        session = self._session
        if chunk.reasoning and session.listener is not None and session.is_asked(self._turn):
            session.listener(Delta.Reasoning(chunk.reasoning))
        if not chunk.text:
            return False, ()
        if not session.is_asked(self._turn):
            # The run has ended meanwhile, or goes on with another question.
            return True, ()
        deltas, stop, commands = session.core.push(chunk.text, session.now())
        if session.listener is not None:
            for delta in deltas:
                session.listener(delta)
        if stop:
            self._surplus = 0
        return False, session.told(commands)

    def close(self) -> list[Command]:
        """Say that the reply has ended, or was stopped."""
        session = self._session
        if not session.is_asked(self._turn):
            return []
        usage = None if self._usage is None else _cost(self._usage)
        return session.told(session.core.replied(self._finish_reason, usage, session.now()))


def _raised(error: BaseException) -> BaseException:
    """Return what a model raised, where Python made something else of that on its way."""
    cause = error.__cause__
    if not isinstance(error, RuntimeError) or not isinstance(
        cause, (StopIteration, StopAsyncIteration)
    ):
        return error
    # Neither passes a coroutine or a generator.
    return cause if words_of(error).endswith(f"raised {type(cause).__name__}") else error


def _counts(usage: object) -> Mapping[str, float]:
    """What a model says of its usage: as a mapping, a `Usage` or a client's own object.

    Raises:
        ModelError: It says nothing of that.
    """
    counts = read_usage(usage)
    if counts is not None or isinstance(usage, Mapping):
        return counts or {}
    raise ModelError(
        "expected the usage of a reply as a Usage or a mapping with input_tokens and "
        f"output_tokens: got {usage!r}"
    )


def _cost(usage: Mapping[str, float]) -> tuple[int, int, int, float]:
    return (
        int(_number(usage.get("input_tokens"))),
        int(_number(usage.get("output_tokens"))),
        int(_number(usage.get("cached_tokens"))),
        float(_number(usage.get("cost"))),
    )


def _number(said: float | None) -> float:
    """What a client says of a cost; nothing where that is no amount (NaN, infinity, negative)."""
    return said if said is not None and 0 <= said < 1e18 else 0
