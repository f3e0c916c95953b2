"""One run under way: what the async and the sync driver share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from callslip._core import Command, Delta
from callslip.errors import StoreError
from callslip.events import Event

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from callslip._commits import Commits
    from callslip._reconcile import Reconciling
    from callslip.models._call import ModelCall
    from callslip.models._reply import ModelChunk
    from callslip.runs import Run
    from callslip.tools import Context, Tool, Toolbox

__all__ = ["Call", "Listener", "Session", "cancelled_inside", "current_call"]

Listener: TypeAlias = Callable[[Event | Delta], None]

_call: ContextVar[Call | None] = ContextVar("callslip_call", default=None)


class Call:
    """A tool call under way, for whatever runs in its context."""

    __slots__ = ("_token", "over", "run_id", "ticket")

    def __init__(self, run_id: str, ticket: int) -> None:
        self.run_id = run_id
        self.ticket = ticket
        self.over = False
        self._token = _call.set(self)

    def end(self) -> None:
        """Say that it is over, also to what it has left running."""
        self.over = True
        self.leave()

    def leave(self) -> None:
        """Say that what follows in this context is no part of it; it goes on elsewhere."""
        # Not `suppress`, which costs more than all the rest of this.
        try:  # noqa: SIM105
            _call.reset(self._token)
        except ValueError:
            # A driver that nobody ends properly is closed in another context, which knows no calls.
            pass


def current_call() -> tuple[str, int] | None:
    """Return the run and the ticket of the call that this code runs in; `None` outside of calls."""
    call = _call.get()
    return None if call is None or call.over else (call.run_id, call.ticket)


_SURPLUS = 8
"""Chunks without text that are waited for after the end of a move."""


class Session:
    """What performs the commands of one run needs, and how its outcomes go back in."""

    __slots__ = (
        "_begins",
        "_clock",
        "_seq",
        "_thoughts",
        "commits",
        "core",
        "error",
        "grace",
        "listener",
        "model",
        "options",
        "run",
        "toolbox",
    )

    def __init__(
        self,
        run: Run,
        *,
        begins: bool,
        commits: Commits | None,
        model: ModelCall,
        toolbox: Toolbox,
        options: Mapping[str, Any],
        grace: float,
        thoughts: int,
    ) -> None:
        self.run = run
        self.core = run._core  # noqa: SLF001
        self._begins = begins
        self.commits = commits
        self.model = model
        self.toolbox = toolbox
        self.options = dict(options)
        self.grace = grace
        self._thoughts = thoughts
        self.listener: Listener | None = None
        self.error: BaseException | None = None
        self._seq = 0
        # The wall clock may jump in mid-run; a time limit must not.
        self._clock = time.time() - time.perf_counter()

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
            for text in self.core.records(self._seq):
                self._seq += 1
                self.listener(Event.from_json(text))
        return commands

    def start(self) -> list[Command]:
        """Begin the run, or go on with it."""
        if self._begins:
            return self.told(self.core.start(self.run.task, self.now()))
        # The listener is told what is new, not what another process did.
        self._seq = self.core.event_count
        return self.told(self.core.resumed(self.now()))

    def ask(self) -> object:
        """Call the model. Returns its result as it is."""
        options = self.options
        if not options:
            return self.model(self.run.messages)
        if "grammar" in options:
            grammar = self.core.grammar(self._thoughts)
            options = {**options, "grammar": grammar}
            # A reply that is cut is lost: the bound is what the grammar's longest reply may take.
            options.setdefault("max_tokens", grammar.max_tokens)
        return self.model(self.run.messages, **options)

    def reply(
        self,
        text: str,
        finish_reason: str | None = None,
        usage: Mapping[str, float] | None = None,
    ) -> list[Command]:
        """Give a whole reply in."""
        cost = None if usage is None else _usage(usage)
        commands = self.core.reply(text, finish_reason, cost, self.now())
        return commands if self.listener is None else self.told(commands)

    def failed(self, error: BaseException) -> list[Command]:
        """Give a failure of the model client in.

        Raises:
            StoreError: It is not the client that failed, but the store.
        """
        if self.core.unwritten:
            raise error
        self.error = error
        text = str(error)
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return self.told(self.core.failed(message, self.now()))

    def tool(
        self, command: Command.CallTool
    ) -> tuple[Tool[..., Any] | Reconciling, Context | None]:
        """Return the tool that a command names, and what it is told about the call."""
        tool = self.toolbox.get(command.tool)
        if command.again and tool.reconcile is not None:
            from callslip._reconcile import Reconciling

            return Reconciling(tool), self.run.context(command.ticket, command.tool)
        if not tool.wants_context:
            return tool, None
        return tool, self.run.context(command.ticket, command.tool)

    def completed(self, ticket: int, outcome: tuple[str, str]) -> list[Command]:
        """Give the outcome of a call in."""
        kind, text = outcome
        commands = self.core.completed(ticket, kind, text, self.now())
        return commands if self.listener is None else self.told(commands)

    def settled(self) -> list[Command]:
        """Say that the grace is over."""
        return self.told(self.core.settled(self.now()))

    def timed_out(self, deadline: float | None) -> list[Command]:
        """Say that this deadline is reached; a timer of another clock may come a little early."""
        return self.told(self.core.timed_out(max(self.now(), deadline or 0.0)))

    def cancelled(self) -> None:
        """Say that the run is to end now."""
        # A run that could not be written down is not over: it can be resumed from what was.
        if not self.core.unwritten:
            with contextlib.suppress(StoreError):
                self.told(self.core.cancel(self.now()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the run to whoever resumes it."""
        self.core.release()
        if isinstance(error, StoreError) and error.run is None:
            error.run = self.run


class Receipt:
    """A streamed reply, chunk by chunk on its way into the run."""

    __slots__ = ("_finish_reason", "_session", "_surplus", "_usage")

    def __init__(self, session: Session) -> None:
        self._session = session
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
            self._usage = {**(self._usage or {}), **chunk.usage}
        if self._surplus is not None:
            self._surplus += 1
            return bool(chunk.text) or self._surplus > _SURPLUS, ()
        if not chunk.text:
            return False, ()
        session = self._session
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
        usage = None if self._usage is None else _usage(self._usage)
        return session.told(session.core.replied(self._finish_reason, usage, session.now()))


def cancelled_inside(tool: str) -> tuple[str, str]:
    """Return the outcome of a call in which something was cancelled that it waited for."""
    return "error", f"Error calling tool '{tool}': CancelledError."


def _usage(usage: Mapping[str, float]) -> tuple[int, int, int, float]:
    return (
        int(_number(usage.get("input_tokens"))),
        int(_number(usage.get("output_tokens"))),
        int(_number(usage.get("cached_tokens"))),
        float(_number(usage.get("cost"))),
    )


def _number(said: float | None) -> float:
    """What a client says of a cost; nothing where that is no amount (NaN, infinity, negative)."""
    return said if said is not None and 0 <= said < 1e18 else 0
