"""A fleet: workers on any number of machines, and those who give them work."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from callslip._base.log import GuardedLogger
from callslip._base.options import (
    check_flag,
    check_known,
    check_one_of,
    check_run_id,
    check_seconds,
    check_text,
    check_whole,
    checked_texts,
)
from callslip._runtime.calls import owner_of_caller
from callslip._runtime.keyed import check_same_task, written_run
from callslip._runtime.known import Known
from callslip._runtime.opening import take_in_thread
from callslip._runtime.sessions import new_run_id
from callslip._runtime.shared.tree_position import Place
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.agent import Agent
from callslip.errors import Busy, StoreError, UnknownRun, UsageError
from callslip.fleet._agents import KnownAgents
from callslip.fleet._dispatch import Dispatch, dispatcher_of
from callslip.fleet._driven import Claim, ForRuns
from callslip.fleet._given import given_to_text
from callslip.fleet._one_run import OneRun
from callslip.fleet._relay import Relay, RelayFunction
from callslip.fleet._worker import Worker
from callslip.limits import check_limits
from callslip.parts import Content, Said, read_content
from callslip.runs import RunResult
from callslip.runs._elsewhere import Told, tell
from callslip.runs._watch import has_ended
from callslip.store import TicketStore
from callslip.tools._callable import check_queue

if TYPE_CHECKING:
    from callslip import _core
    from callslip.limits import Limits
    from callslip.runs import Run

__all__ = ["Fleet"]

_log = GuardedLogger("callslip.fleet")

_LAST = 253_402_300_799
"""The last second of the year 9999, in Unix seconds."""

_ANSWER = 5.0
"""Seconds that the database has for its first answer, however short a timeout is."""


class Fleet:
    """Gives workers runs, waits for their results, and is a worker itself.

    All processes with the same database are of one fleet. A process that only submits runs needs no
    agents.

    Args:
        store: A store in a database: `TicketStore("postgresql://…")`.
        agents: The agents with which this process drives runs, of different names.
        lease: Seconds after which another worker takes over the runs of a process that says nothing
            any more. Processes of one fleet may have different ones. A store has one, and one
            `stuck`: those of its latest `Fleet` with agents. Default: 30.
        stuck: Seconds without an event, and without a report by `context.progress`, after which a
            worker gives a run up, so that another one takes it over. Longer than any reply of a
            model and any silent call takes; `None` for ever. Default: 3600.
        limits: How many runs of a tenant are driven at once, by the name of the tenant.
        default_limit: The same for all other tenants. Default: any number.
        backlog: How many runs a queue may have before `submit` refuses. Default: any number.
        accept: Earlier versions of the agents, with which the runs that they have begun go on.
        deps: An object for the tools of the runs that this process drives: `Context.deps`.
        relay: An async function that this process passes what is not in the log of a run, with the
            id of the run: each part of a reply as it arrives (a `Delta`), and `Progress` of tools.
            No run waits for it: it is passed parts of one text together if it is slow, and loses
            the oldest if more than 1,000 wait.
        dispatch: `"queue"`: workers drive runs. Or a function, sync or async, that is called with
            the id of each run that has something to do, for an engine of your own that calls
            `drive`: after `submit`, after a decision or a message by this `store`, and after
            `drive` for the runs around it. What it raises is logged; `sweep` calls it again.
        children: Who drives the child runs of the runs that this process drives. `"here"`: this
            process. `"anywhere"`: any worker with the agent of the run at the top, from the queue
            of the run above; that run rests meanwhile. A child run that exists stays where it is.

    Raises:
        UsageError: An argument is of a wrong type, or the store is not in a database.
    """

    def __init__(
        self,
        store: TicketStore,
        agents: Iterable[Agent[Any]] = (),
        *,
        lease: float = 30.0,
        stuck: float | None = 3600.0,
        limits: Mapping[str, int] | None = None,
        default_limit: int | None = None,
        backlog: int | None = None,
        accept: Iterable[Agent[Any]] = (),
        deps: object = None,
        relay: RelayFunction | None = None,
        dispatch: Dispatch = "queue",
        children: Literal["here", "anywhere"] = "here",
    ) -> None:
        if not isinstance(store, TicketStore) or store._shared is None:
            raise UsageError(
                f'expected the store of a database: got {store!r}; pass TicketStore("postgresql://…")'
            )
        check_seconds("lease", lease, 1)
        check_seconds("stuck", stuck, 1, none="ever")
        if relay is not None and not callable(relay):
            raise UsageError(f"expected relay as an async function: got {relay!r}")
        check_one_of("children", children, ("here", "anywhere"))
        check_whole("default_limit", default_limit, 1, none="any number")
        check_whole("backlog", backlog, 1, none="any number")
        self.store = store
        self._shared: _core.SharedRuns = store._shared
        self._agents = KnownAgents(store, agents, accept)
        self._limits = _limits_of_tenants(limits)
        self._default_limit = default_limit
        self._backlog = backlog
        self._deps = deps
        self._relay = relay
        self._spreads = children == "anywhere"
        self._dispatcher = dispatcher_of(self._shared, dispatch)
        if self._dispatcher is not None:
            store._was_told = self._dispatcher.was_told
        if self._agents.known:
            self._shared.set_lease(lease)
            self._shared.set_stuck(stuck)

    async def submit(
        self,
        agent: str,
        task: Content,
        *,
        queue: str = "default",
        tenant: str | None = None,
        owner: str | None = None,
        key: str | None = None,
        at: datetime | float | None = None,
        limits: Limits | None = None,
    ) -> str:
        """Put a run into a queue, and return its id. The run is durable then.

        Args:
            agent: The name of the agent, which this process need not have.
            task: The task, as for `Agent.run`.
            queue: The name of the queue: a lowercase letter, then lowercase letters, digits and
                `_`, at most 30.
            tenant: The name of the tenant, whose runs are bounded by `limits` of this fleet.
            owner: Whose data the run is, as for `Agent.run`. Default: the tenant's; without a
                tenant, inside a tool, that of the run that calls.
            key: What you call the run, such as an order number, as for `Agent.run`: the same key of
                the same owner and agent gives the same run, in whatever queue. If its model has
                failed, the run goes on.
            at: When the run begins, at the earliest: a time, or Unix seconds. Default: at once.
            limits: The limits of this run, in place of those of the agent.

        Raises:
            UsageError: An argument is of a wrong type.
            KeyTaken: The run with this key has another task.
            Busy: The queue has as many runs as it may have.
            StoreError: The database cannot be written.
        """
        check_loop("asyncio.run, fleet.submit(…)")
        _check_agent_name(agent)
        said = read_content("the task", task)
        _check_name("tenant", tenant)
        if owner is None:
            owner = owner_of_caller() if tenant is None else tenant
        known = Known(check_known("owner", owner), check_known("key", key))
        check_queue(queue)
        given = given_to_text(said, None if limits is None else check_limits(limits), known)
        run_id, delay = new_run_id(), self._delay(at)
        row = {"agent": agent, "given": given, "queue": queue, "tenant": tenant, "delay": delay}
        submitted = await pool.in_own_thread(partial(self._submit, said, known, run_id, **row))
        if self._dispatcher is not None:
            await self._dispatcher.was_submitted(submitted, is_ready=submitted == run_id and not at)
        return submitted

    def _submit(self, said: Said, known: Known, run_id: str, **row: Any) -> str:
        tenant, queue = row["tenant"], row["queue"]
        submitted = self._shared.submit(
            run_id=run_id,
            task=said.text,
            owner=known.owner,
            key=known.key,
            limit=None if tenant is None else self._limits.get(tenant, self._default_limit),
            backlog=self._backlog,
            **row,
        )
        if submitted is None:
            raise Busy(
                f"queue {queue!r} has {self._backlog} runs or more: submit the run later, or start "
                "more workers"
            )
        if submitted != run_id:
            present = written_run(self.store, known, row["agent"])
            if present is None:
                # Whoever had the key has ended before the run began.
                return self._submit(said, known, run_id, **row)
            check_same_task(present, said, known)
            ending = present._core.ending
            if ending is not None and ending.reason == "model_error":
                tell(present, self._shared, Told("resume"))
        return submitted

    def _delay(self, at: datetime | float | None) -> float:
        if at is None:
            return 0.0
        if isinstance(at, datetime):
            if at.tzinfo is None:
                raise UsageError(
                    f"expected at= with a time zone: got {at!r}; use datetime.now(UTC)"
                )
            at = at.timestamp()
        if isinstance(at, bool) or not isinstance(at, int | float):
            raise UsageError(f"expected at= as a datetime or Unix seconds: got {at!r}")
        if not -_LAST <= at <= _LAST:
            raise UsageError(
                f"expected at= as Unix seconds before the year 10000: got {at!r}; "
                "pass seconds, not milliseconds"
            )
        return max(0.0, at - time.time() - self._shared.clock_offset)

    async def result(self, run_id: str, *, timeout: float | None = None) -> RunResult[Any]:  # noqa: ASYNC109
        """Wait for the end of a run, and return its result. As `Agent.run` returns and raises.

        The value has the type of the agent's `returns` if this fleet has the agent.

        Args:
            run_id: The id of the run.
            timeout: Seconds to wait; default for as long as it takes. A run that has ended is
                returned even with 0.

        Raises:
            TimeoutError: The run has not ended. It continues.
            StoreError: There is no such run, it was deleted meanwhile, or it cannot be read.
            ProtocolError: As for `Agent.run`, and so are the other exceptions.
        """
        check_loop("asyncio.run, fleet.result(run_id)")
        check_run_id(run_id)
        check_seconds("timeout", timeout, none="as long as it takes")
        began = asyncio.get_running_loop().time()
        patience = None if timeout is None else max(timeout, _ANSWER)
        late = (
            f"the database gave no answer about run {run_id} in {patience} seconds: try again later"
        )
        async with _until(None if patience is None else began + patience, late):
            run, is_over = await pool.in_own_thread(self._read, run_id)
        if not is_over:
            late = f"run {run_id} goes on after {timeout} seconds: call fleet.result again later"
            async with _until(None if timeout is None else began + timeout, late):
                watch = run.watch(after=run._core.event_count - 1)
                async for _ in watch:
                    pass
            run = watch.run
        name = json.loads(run._core.origin)["agent"]
        if run._agent is None:
            run._agent = self._agents.version_of(name, run._core)
        # Another agent of this name may have driven it.
        return RunResult._of(run, is_own=False)

    def _read(self, run_id: str) -> tuple[Run[Any], bool]:
        """Return a run, and whether it is over and was told nothing since."""
        run = self.store.run(run_id)
        return run, has_ended(run, self.store)

    async def work(
        self,
        *,
        queues: Sequence[str] = ("default",),
        slots: int = 64,
        grace: float = 30.0,
        new: bool = True,
    ) -> None:
        """Drive runs of the agents until the task is cancelled, or SIGTERM comes.

        Then it takes no more runs, waits up to `grace` seconds for calls in progress, and leaves
        its runs as they are: other workers continue them at once.

        Args:
            queues: The names of the queues.
            slots: Runs in progress at once. A run that only awaits approval takes none.
            grace: Seconds for calls to end.
            new: Whether to take runs that have not begun. A worker of an earlier version with
                `new=False` continues begun runs that it can drive, and leaves all others alone.

        Raises:
            UsageError: The fleet has no agents, its `dispatch` is a function, or an argument has a
                wrong value.
            StoreError: The database cannot be used.
        """
        check_loop("asyncio.run, fleet.work()")
        if self._dispatcher is not None:
            raise UsageError(
                "expected dispatch='queue' for a worker: got a function, so that an engine drives "
                "the runs; call fleet.drive(run_id) in it, or use a Fleet without dispatch="
            )
        if not self._agents.names:
            raise UsageError("expected agents to work with: got none; pass agents to Fleet")
        for queue in checked_texts("queues", queues):
            check_queue(queue)
        if not queues:
            raise UsageError("expected the name of a queue: got none; pass queues=['default']")
        check_whole("slots", slots, 1)
        check_seconds("grace", grace)
        check_flag("new", new)
        self._agents.check_deps(self._deps, queues)
        worker = Worker(
            self._shared,
            self._agents,
            queues=queues,
            slots=slots,
            grace=grace,
            new=new,
            program=ForRuns(self._deps, self._new_relay(), self._spreads),
        )
        await worker.work()

    async def drive(self, run_id: str) -> Literal["over", "rests"]:
        """Drive one run here until it is over or rests, for programs with an engine of their own.

        It may be called any number of times for a run: if the run is over, or rests, it returns at
        once. If the task is cancelled, the run is left as it is, and can be driven elsewhere.

        Args:
            run_id: The id of a run that was submitted.

        Returns:
            `"over"`, or `"rests"` if there is nothing to do before somebody decides on a call or
            sends a message, or the time limit of the run is reached.

        Raises:
            UsageError: The fleet has no agent that can drive the run.
            StoreError: There is no such run, or its time has not come, or another process drives
                it: try again later.
            TakenOver: Another process has taken the run over.
            NoLease: The database was away for longer than the lease.
        """
        check_loop("asyncio.run, fleet.drive(run_id)")
        check_run_id(run_id)
        self._agents.check_deps(self._deps)
        while True:
            state = await self._drive_once(run_id)
            if self._dispatcher is None:
                return state
            is_due = await self._dispatcher.dispatch_others(run_id)
            # It was told something while it ended, when it was no news for an engine.
            if state == "rests" or not is_due:
                return state

    async def _drive_once(self, run_id: str) -> Literal["over", "rests"]:
        claim = await take_in_thread(lambda: self._claim(run_id), self._let_go)
        if claim is None:
            raise UnknownRun(f"there is no run {run_id} in this store: submit it first")
        top = claim.agent if claim.above is None else Place.from_text(claim.above).agent
        if self._agents.find(top) is None:
            claim.let_go(self._shared)
            raise UsageError(
                f"expected an agent of the name {top!r}: got "
                f"{', '.join(self._agents.names) or 'none'}; pass it to Fleet"
            )
        relay = self._new_relay()
        try:
            program = ForRuns(self._deps, relay, self._spreads)
            return await OneRun(self._shared, self._agents, claim, program).drive()
        finally:
            if relay is not None:
                await relay.close()

    def _claim(self, run_id: str) -> Claim | None:
        taken = self._shared.take(run_id)
        return None if taken is None else Claim(*taken)

    def _let_go(self, claim: Claim | None) -> None:
        if claim is not None:
            claim.let_go(self._shared)

    async def due(self, *, waiting: float = 30.0, limit: int = 1000) -> list[str]:
        """Return runs that an engine should drive and does not, for a periodic job of the engine.

        Those are the runs that have had something to do for some time and are driven by nobody:
        because a process ended between its commit and the call of `dispatch`, or while it drove
        the run, or has no `dispatch`. Runs whose time has come, by `at=` or by a time limit
        while they were at rest, are returned at once.

        Each run is returned again only after the same time, to one caller of all processes.

        Args:
            waiting: For how many seconds.
            limit: How many of each queue, at most. Those that have waited longest come first.

        Raises:
            UsageError: An argument has a wrong value.
            StoreError: The database cannot be used.
        """
        check_loop("asyncio.run, fleet.due()")
        check_seconds("waiting", waiting)
        check_whole("limit", limit, 1)
        return await pool.in_own_thread(self._shared.due, float(waiting), limit)

    async def sweep(self, *, every: float = 5.0, waiting: float = 30.0) -> None:
        """Call `dispatch` for the runs that are due, until the task is cancelled.

        For programs whose engine has no periodic jobs. Any number of processes may do it.

        Args:
            every: Seconds between two looks.
            waiting: As for `due`.

        Raises:
            UsageError: The fleet has no function as `dispatch`, or an argument has a wrong value.
        """
        check_loop("asyncio.run, fleet.sweep()")
        if self._dispatcher is None:
            raise UsageError(
                "expected a function as dispatch: got 'queue'; pass Fleet(…, dispatch=…), or call "
                "fleet.work(), which needs no sweep"
            )
        check_seconds("every", every, zero=False)
        while True:
            try:
                await self._dispatcher.dispatch(await self.due(waiting=waiting))
            except StoreError as error:
                _log.warning("the store is away: %s", error)
            await asyncio.sleep(every)

    def _new_relay(self) -> Relay | None:
        function = self._relay
        return None if function is None else Relay(function, asyncio.get_running_loop())


@asynccontextmanager
async def _until(when: float | None, late: str) -> AsyncIterator[None]:
    """As `asyncio.timeout_at`, with a message for people."""
    timeout = asyncio.timeout_at(when)
    try:
        async with timeout:
            yield
    except TimeoutError:
        if timeout.expired():
            raise TimeoutError(late) from None
        raise


def _limits_of_tenants(limits: Mapping[str, int] | None) -> dict[str, int]:
    if limits is None:
        return {}
    if not isinstance(limits, Mapping):
        raise UsageError(
            f"expected limits={{'tenant': 10}}, runs at once by tenant: got {limits!r}"
        )
    for tenant, limit in limits.items():
        check_text("the name of a tenant in limits", tenant)
        check_whole(f"limits[{tenant!r}]", limit, 1)
    return dict(limits)


def _check_agent_name(agent: object) -> None:
    if isinstance(agent, Agent):
        raise UsageError(f"expected the name of an agent: got {agent!r}; pass {agent.name!r}")
    check_text("agent", agent)


def _check_name(what: str, name: str | None) -> None:
    if name is not None:
        check_text(what, name)
        if "\0" in name:
            raise UsageError(f"expected {what} without the character 0: got {name!r}")
