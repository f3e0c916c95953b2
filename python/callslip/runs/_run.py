"""Runs: their messages, tickets and logs, during the run and afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal
from weakref import WeakValueDictionary

from callslip import _core
from callslip._base.attribute_names import knows_attributes
from callslip.errors import UsageError
from callslip.parts import Content
from callslip.runs._conversation import (
    Decision,
    append_to_log,
    cancel,
    inject,
    send,
    send_sync,
)
from callslip.runs._driver import Driver
from callslip.runs._elsewhere import Told, never_began, result_of, tell, was_cancelled_unstarted
from callslip.runs._log_cache import LogCache, Reads
from callslip.runs._messages import MessageCache
from callslip.runs._result import AnswerT, RunResult
from callslip.runs._run_decisions import RunDecisions
from callslip.runs._run_record import RunRecord
from callslip.runs._shown_run import ShownRun
from callslip.runs._ticket import Ticket
from callslip.runs._ticket_cache import TicketCache
from callslip.runs._waiting import runs_below, wait_of
from callslip.runs._watch import RunWatch

if TYPE_CHECKING:
    from callslip.runs._feed import Feed
    from callslip.runs._needs import AgentOfRun, StoreOfRun
    from callslip.runs._result import RunStatus, StopReason

__all__ = ["Driver", "Run", "run_under_way"]

_under_way: WeakValueDictionary[str, Run[Any]] = WeakValueDictionary()
"""The runs of stores that this process works on."""


def run_under_way(run_id: str) -> Run[Any] | None:
    """Return the run of this id if this process works on it and a store keeps it."""
    return _under_way.get(run_id)


_ELSEWHERE = {
    "content data output result text value": "(await run).value, or result.value",
    "stop abort": "run.cancel()",
    "join wait": "await run",
    "iter stream": "async for event in run.watch()",
    "steps tool_calls": "run.tickets",
    "run_id": "run.id",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
class Run(RunRecord, RunDecisions, ShownRun, Generic[AnswerT]):
    """One agent working on one task: its messages, its tickets, its log.

    `await run` waits for the result and raises as `Agent.run` does. Any number of tasks may do it,
    and cancelling one of them does not end the run. A run that was read from a database is awaited
    wherever it is driven, also while it waits for a worker or rests.

    `send`, `approve`, `deny`, `answer` and `cancel` work during the run, from any thread, event
    loop or tool. If a store keeps the run, they return once the decision is written down, and block
    until then: the decision is durable, even if the process ends right after. A run that was read
    from a store, and that no driver works on, accepts them too. `Agent.resume` continues it.

    Attributes:
        id: The id, unique among runs.
        task: The task, as the user has written it.
    """

    __slots__ = (
        "__weakref__",
        "_agent",
        "_children",
        "_core",
        "_deps",
        "_driver",
        "_feed",
        "_kept_reads",
        "_left",
        "_levels",
        "_raised",
        "_store",
        "id",
        "task",
    )

    id: str
    task: str

    def __init__(
        self,
        core: _core.Run,
        run_id: str,
        task: str,
        *,
        agent: AgentOfRun | None = None,
        store: StoreOfRun | None = None,
        deps: object = None,
    ) -> None:
        self._core = core
        # For its tools. It is never written down.
        self._deps = deps
        self._kept_reads: Reads | None = None
        self._agent = agent
        self._store = store
        self._driver: Driver | None = None
        # The exception of the model client that ended the run.
        self._raised: BaseException | None = None
        # The exception with which a driver left the run before its end.
        self._left: BaseException | None = None
        self._feed: Feed | None = None  # for those who watch
        # How many levels of child runs may be below it.
        self._levels: int | None = None
        self._children: list[Run] = []
        self.id = run_id
        self.task = task

    @property
    def _reads(self) -> Reads:
        """What was read of the log so far."""
        if self._kept_reads is None:
            self._kept_reads = Reads(
                MessageCache(self._core), TicketCache(self._core), LogCache(self._core, self.id)
            )
        return self._kept_reads

    @property
    def children(self) -> list[Run]:
        """The child runs that have begun, oldest first.

        Without a store, these are the child runs of this process. With one, those of earlier
        processes are included, and runs of this process that it does not keep come last.
        """
        seen = {child.id: child for child in self._children}
        if self._store is None:
            return list(seen.values())
        rows = [row for row in reversed(self._store.runs(parent=self.id)) if row.protocol]
        kept = {row.run_id: seen.get(row.run_id) or self._store.run(row.run_id) for row in rows}
        others = {key: one for key, one in seen.items() if one._store is not self._store}
        return list((kept | others).values())

    @property
    def awaiting_approval(self) -> list[Ticket]:
        """The tickets that are awaiting approval, of this run and of its child runs."""
        return self._awaiting("approval")

    @property
    def awaiting_result(self) -> list[Ticket]:
        """The tickets that await a result from outside, of this run and of its child runs."""
        return self._awaiting("result")

    def _awaiting(self, what: Literal["approval", "result"]) -> list[Ticket]:
        asked = self._reads.tickets.some(self._core.awaiting_decision)
        waiting = [ticket for ticket in asked if ticket.awaiting == what]
        children = self.children if self._driver is None else self._children
        for child in list(children):
            if not child.finished:
                waiting += child._awaiting(what)
        return waiting

    @property
    def waiting(self) -> list[Ticket] | None:
        """The tickets that the run waits for, if nothing goes on until one is decided or answered.

        They await approval or a result from outside, and are those of this run and of its child
        runs. `None` while anything goes on in one of them: the model is asked, a call is made or is
        to be repeated, or a child run has not begun. A call whose function awaits a child run waits
        with that run.

        Raises:
            StoreError: The child runs cannot be read.
        """
        wait = wait_of(self, runs_below)
        return None if wait is None else wait.tickets

    def cancel(self) -> None:
        """Cancel the run, its child runs and its calls. A finished run stays as it is.

        If the process ended before the child runs did, a second call cancels those that are left.

        `RunCancelled` is raised wherever its result is awaited. A sync tool cannot be stopped: it
        sees that `Context.cancelled` is true.

        Raises:
            StoreError: The decision cannot be written down.
        """
        if self._is_cancelled_unstarted():
            return None
        if (shared := self._told_by) is not None:
            # It may go on elsewhere after the end that is known here.
            return tell(self, shared, Told("cancel"))
        return cancel(self)

    def _is_cancelled_unstarted(self) -> bool:
        """Cancel a run that has not begun. Returns whether that is so: there is no log to end."""
        driver = self._driver
        return never_began(self) if driver is None else driver.cancel_unstarted()

    def send(
        self, message: Content, *, deps: object = None, key: str | None = None
    ) -> Awaitable[RunResult[AnswerT]]:
        """Add a user message to the run.

        A run in progress reads it with the next message to the model, even if the model is about to
        answer: the run continues then. A finished run continues when the returned object is
        awaited.

        Args:
            message: The message, not blank.
            deps: As for `Agent.run`, for a finished run that continues. Default: those that it had
                in this process.
            key: What you call the message, such as the id of a request: text of 1 to 200
                characters. A message with a key that the run has is not added again.

        Returns:
            An awaitable for the result that follows. It raises as `Agent.run` does.

        Raises:
            UsageError: The message is blank or not text, or the run has not started; or its agent
                cannot continue it; or `deps` is passed to a run in progress.
            StoreError: The message cannot be written down.
        """
        return send(self, message, deps, key)

    def send_sync(
        self, message: Content, *, deps: object = None, key: str | None = None
    ) -> RunResult[AnswerT]:
        """Add a user message to a finished run, and continue it in this thread. As `send`.

        Without `approve=` of the run, a call that needs approval waits for another thread.

        Raises:
            UsageError: The run is in progress, or this was called inside a tool.
        """
        return send_sync(self._driven or self, message, deps, key)

    def watch(self, *, after: int | None = None, children: bool = False) -> RunWatch:
        """Watch the run: `async for event in run.watch(): …`.

        The items are the `Event`s of the log from its beginning, then those that happen, with the
        `Delta`s of replies that are arriving and the `Progress` that tools report. `Waiting` is
        told once when `waiting` begins to have tickets, after all events so far, those of child
        runs too; and to a watcher who comes later, after the events until then. The iteration
        ends with the run, and raises the exception of a run that failed. Any number of tasks and
        threads may watch, at their own pace: a slow watcher holds up nobody, and leaving the
        iteration ends nothing. A watcher that is late gets the deltas of the present reply in fewer
        and longer parts, and none of replies that are over: their text is in `model_replied`.

        Args:
            after: The `seq` of the last event that is known already, as in `Last-Event-ID`. If the
                run was compacted since, the first item is a `Compacted`: show the run anew, from
                `run.messages` and `run.tickets`. Default: from the beginning.
            children: Whether to yield the events of child runs too, from now on and without deltas;
                see `Event.run_id`. Their calls that await approval are yielded in any case.

        Raises:
            UsageError: The log has no event `after`; or, in the iteration, nothing works on this
                run, and no store keeps it.
            StoreError: In the iteration: the run was deleted, or its store was closed.
        """
        return RunWatch(self, after=after, children=children)

    def __await__(self) -> Generator[Any, Any, RunResult[AnswerT]]:
        return result_of(self).__await__()

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._core.finished or was_cancelled_unstarted(self)

    @property
    def status(self) -> RunStatus:
        """`"running"` until the run is finished, even if no driver works on it."""
        return "finished" if self.finished else "running"

    @property
    def stop_reason(self) -> StopReason | None:
        """The reason for the end of the run; `None` before that."""
        if was_cancelled_unstarted(self):
            return "cancelled"
        ending = self._core.ending
        return None if ending is None else ending.reason

    def _replace_deps(self, deps: object) -> None:
        """Keep other deps for the tools of the run, if there are any."""
        if deps is not None:
            self._deps = deps

    def _set_driver(self, driver: Driver) -> None:
        """Record the driver that works on the run."""
        self._driver = driver
        self._raised = self._left = None
        if self._store is not None:
            _under_way[self.id] = self

    def _is_in_store(self, store: StoreOfRun) -> bool:
        """Whether the run is in progress, and this store keeps it."""
        own = self._store
        return self._driver is not None and own is not None and own._identity == store._identity

    def _clear_driver(self, raised: BaseException | None, left: BaseException | None) -> None:
        """Record that no driver works on the run any more.

        Args:
            raised: The exception of the model client that ended the run, or the error of the
                program for which it was cancelled.
            left: The exception with which the driver left the run before its end.
        """
        self._raised, self._left = raised, left
        self._driver = None
        if self._feed is not None:
            self._feed.leave()
            if self._store is not None and self._feed.is_for_observers:
                # Those who watch keep it; a later watcher reads the log as it is then.
                self._feed = None

    def _add_child(self, child: Run) -> None:
        """Add a run that was started for a task of this one, or in a call."""
        self._children.append(child)

    @property
    def _driven(self) -> Run[AnswerT] | None:
        """The object of this run whose driver is in this process; `None` if there is none."""
        if self._driver is not None:
            return self
        other, store = run_under_way(self.id), self._store
        return None if other is None or store is None or not other._is_in_store(store) else other

    @property
    def _told_by(self) -> _core.SharedRuns | None:
        """The shared store by which the run is told something, wherever it is driven.

        `None` if its driver is here, or its agent, which continues what no driver has left midway.
        """
        if self._store is None or self._store._shared is None:
            return None
        driver, may_continue = self._driver, self._agent is not None and self._left is None
        is_here = may_continue if driver is None else not driver.may_rest
        return None if is_here else self._store._shared

    def _replace_core(self, core: _core.Run) -> None:
        """Continue with the same run as its store has it now."""
        self._core, self._kept_reads = core, None

    def _inject(self, decide: Decision) -> None:
        """Pass a decision to the driver of the run; without a driver, append it to the log."""
        make = partial(decide, self._core)
        if inject(self, make) is not None:
            return
        if self._store is not None:
            append_to_log(self, self._store, make)
        elif self.finished:
            # The core raises: nothing in it is awaiting approval.
            make(0.0)
        else:
            raise UsageError(
                "no driver works on this run: use agent.stream(…), or read the run from its store "
                "with store.run(run_id)"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._core.event_count:
            raise UsageError(f"run {self.id} can't be copied before it begins: it has no log yet")
        return _unpickled, (self.export(), list(self.children))

    def __repr__(self) -> str:
        state = self.stop_reason or "running"
        return f"Run({self.id!r}, {state}, turns={self.turns}, tickets={self._core.ticket_count})"


def _unpickled(log: str, children: list[Run[Any]]) -> Run[Any]:
    """Return a run as it was when it was pickled, without its agent and its store."""
    store = _core.Store.memory()
    core = _core.Run.load(store, store.import_run(log.rstrip("\n").split("\n")))
    run: Run[Any] = Run(core, core.run_id, core.task)
    run._children = children
    return run
