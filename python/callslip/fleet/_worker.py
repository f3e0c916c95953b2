"""A worker: claims runs, drives them, lets them rest, and leaves them when it ends."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip._base.json import to_json
from callslip._base.log import GuardedLogger
from callslip._runtime.pauses import paused_since
from callslip._threads import pool
from callslip._threads.descriptors import unwatch, watch
from callslip.errors import StoreError
from callslip.fleet._calls import CallHere, call_from_text
from callslip.fleet._driven import AGAIN, Claim, Driven, ForRuns, reason_lost
from callslip.runs._waiting import runs_below

if TYPE_CHECKING:
    from callslip.fleet._agents import KnownAgents
    from callslip.runs import Run

__all__ = ["Worker", "rest_of"]

_log = GuardedLogger("callslip.fleet")

_POLL = 1.0
"""Seconds between two looks at queues of which nothing is heard."""

_TICK = 0.1
"""Seconds between two looks at the runs that are driven: whether they rest."""

_SOON = 1.0
"""Seconds to the time limit of a run for which it is not worth a rest."""

_ANNOUNCE = 10.0
"""Seconds between two entries in the list of workers."""

_LISTED, _WORDS = 100, 500
"""Runs that a worker has given back and names with the reason, and characters of that."""

_AWAY = 1.0
"""Seconds before a store that was away is asked again."""

_ALONE = 0.2
"""Seconds, at least, until a run that is to be driven alone is tried again."""


class _Entry:
    """The entry of a worker in the list that people read.

    Args:
        shared: The shared store.
        agents: Its agents.
        queues: The names of its queues.
        slots: Runs at once.
    """

    def __init__(
        self, shared: _core.SharedRuns, agents: KnownAgents, queues: list[str], slots: int
    ) -> None:
        self._shared = shared
        self._name = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(2).hex()}"
        self._agents = agents
        self._queues = queues
        self.slots = slots
        self.lost = 0
        self.refused = 0
        self._announced_at: float | None = None

    def is_due(self, now: float) -> bool:
        return self._announced_at is None or now - self._announced_at >= _ANNOUNCE

    def has_changed(self) -> None:
        """Let the next turn announce it."""
        self._announced_at = None

    def announce(self, busy: int, now: float) -> None:
        self._announced_at = now
        self._shared.announce(
            worker=self._name,
            version=_core.__version__,
            agents=self._agents.known,
            queues=self._queues,
            slots=self.slots,
            busy=busy,
            taken_over=self.lost,
            refused=self.refused,
            cannot_drive=sorted(self._agents.refused),
            misfits=self._misfits(),
        )

    def _misfits(self) -> str:
        latest = [*self._agents.misfits.items()][-_LISTED:]
        # PostgreSQL has no character 0.
        return to_json({run_id: one.why[:_WORDS].replace("\0", "") for run_id, one in latest})

    def withdraw(self) -> None:
        self._shared.withdraw(self._name)


class Worker:
    """Takes runs from queues and drives them, so many at once.

    Args:
        shared: The shared store.
        agents: The agents.
        queues: The names of the queues, each turn begins with another one.
        slots: Runs at once.
        grace: Seconds that calls have to end when the worker ends.
        new: Whether it takes runs that have not begun.
        program: What the program has for the runs.
    """

    def __init__(
        self,
        shared: _core.SharedRuns,
        agents: KnownAgents,
        *,
        queues: Sequence[str],
        slots: int,
        grace: float,
        new: bool,
        program: ForRuns,
    ) -> None:
        self._shared = shared
        self._agents = agents
        self._queues = list(queues)
        self._grace = grace
        self._begun_only = not new
        self._program = program
        self._entry = _Entry(shared, agents, list(queues), slots)
        self._driven: dict[str, tuple[Driven | CallHere, asyncio.Task[None]]] = {}
        self._wake = asyncio.Event()
        self._told: set[str] = set()
        self._is_ending = False
        self._may_have_work = True
        self._looked_at = 0.0

    async def work(self) -> None:
        """Work until `end` is called or the task is cancelled, then leave all runs to others.

        Raises:
            StoreError: The store cannot be used, from the beginning.
        """
        for queue in self._queues:
            await pool.in_own_thread(self._shared.make_queue, queue)
        loop = asyncio.get_running_loop()
        notices = self._shared.notices()
        watch(loop, notices.fileno(), self._hear, notices)
        restore = _on_sigterm(loop, self.end)
        try:
            while not self._is_ending:
                await self._turn(loop.time())
        finally:
            restore()
            unwatch(loop, notices.fileno())
            # The task may be cancelled once more meanwhile: what is left is left then.
            await self._leave_all()
            if self._program.relay is not None:
                await self._program.relay.close()
            with suppress(StoreError):
                await pool.in_own_thread(self._entry.withdraw)

    def end(self) -> None:
        """Claim nothing more, and leave the runs."""
        self._is_ending = True
        self._wake.set()

    def _hear(self, notices: _core.Notices) -> None:
        for kind, name in notices.take():
            if kind == "lost":
                self._lose(name)
            elif kind == "inbox":
                self._told.add(name)
            elif kind == "queue" and name in self._queues:
                self._may_have_work = True
            elif kind == "anything":
                self._may_have_work = True
                self._told.update(self._driven)
        self._wake.set()

    def _lose(self, run_id: str) -> None:
        if run_id in self._driven:
            driven, task = self._driven[run_id]
            if not driven.rests:
                driven.was_lost = True
                _log.warning("run %s was left: %s", run_id, reason_lost(self._shared, run_id))
                task.cancel()

    async def _turn(self, now: float) -> None:
        try:
            await self._deliver()
            await self._let_rest()
            if self._may_have_work and len(self._driven) < self._entry.slots:
                await self._claim()
            if self._entry.is_due(now):
                await pool.in_own_thread(self._entry.announce, len(self._driven), now)
        except StoreError as error:
            _log.warning("the store is away: %s", error)
            await asyncio.sleep(_AWAY)
            self._may_have_work = True
        # Not all workers at the same moment.
        wait = _TICK if self._driven else _POLL * random.uniform(0.8, 1.2)  # noqa: S311
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            self._ticks_over(now)
        self._wake.clear()

    def _ticks_over(self, now: float) -> None:
        if not self._driven or now - self._looked_at >= _POLL:
            self._looked_at = now
            self._may_have_work = True

    async def _claim(self) -> None:
        self._may_have_work = False
        queues = self._queues
        self._queues = [*queues[1:], queues[0]]
        for queue in queues:
            free = self._entry.slots - len(self._driven)
            if free <= 0:
                self._may_have_work = True
                return
            claimed, given_back = await self._claim_from(queue, free)
            await self._start_all(claimed)
            # There may be more of them.
            self._may_have_work = self._may_have_work or bool(claimed) or given_back > 0

    async def _claim_from(self, queue: str, slots: int) -> tuple[list[Claim], int]:
        """Return what was claimed, and how many more were given back."""
        names, refused = self._agents.known, sorted(self._agents.refused)
        claiming = asyncio.ensure_future(
            pool.in_own_thread(self._shared.claim, queue, slots, names, refused, self._begun_only)
        )
        try:
            rows, given_back = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # What is claimed all the same is nobody's, also if the task is cancelled once more.
            claiming.add_done_callback(self._let_go_of)
            await asyncio.wait([claiming])
            raise
        self._entry.refused += given_back
        now = time.monotonic()
        return [Claim(*row)._replace(at=now) for row in rows], given_back

    def _let_go_of(self, claiming: asyncio.Task[tuple[list[Any], int]]) -> None:
        if claiming.cancelled() or claiming.exception() is not None:
            return
        for row in claiming.result()[0]:
            Claim(*row).let_go(self._shared)

    async def _start_all(self, claims: Sequence[Claim]) -> None:
        """Drive what was claimed, except runs that have just failed here, and suspects but one.

        Of the runs that were driven when a worker died, most are innocent: those that are
        driven alone show it. The suspect starts after the others were given back: if it ends this
        worker, their claims don't count as in vain.
        """
        suspect = self._driven_suspect()
        alone: Claim | None = None
        failed, waiting = [], []
        for claim in claims:
            if claim.run_id in self._agents.failed:
                failed.append(claim)
            elif not claim.is_suspect:
                self._start(claim)
            elif suspect is None or suspect.run_id == claim.run_id:
                # Perhaps the same run: it was lost, and nobody else was faster.
                suspect = alone = claim
            else:
                waiting.append(claim)
        try:
            await self._put_off(failed, AGAIN)
            if suspect is not None and waiting:
                await self._let_wait(waiting, time.monotonic() - suspect.at)
            if alone is not None:
                self._start(alone)
                alone = None
        finally:
            # What was not given back is left.
            for claim in [*failed, *waiting, *([] if alone is None else [alone])]:
                claim.let_go(self._shared)

    def _driven_suspect(self) -> Claim | None:
        """Return the claim of the run that may have ended its workers and is driven here."""
        suspects = (driven.claim for driven, _ in self._driven.values() if driven.is_suspect)
        return next(suspects, None)

    async def _let_wait(self, suspects: Sequence[Claim], so_far: float) -> None:
        """Give suspects back for as long as the one that is driven here has taken so far.

        Quick runs don't hold the others up, and slow runs don't have them claimed too often.
        """
        delay = min(max(_ALONE, so_far), AGAIN)
        await self._put_off(suspects, delay)
        asyncio.get_running_loop().call_later(delay, self._look)

    async def _put_off(self, claims: Sequence[Claim], delay: float) -> None:
        """Give runs back for so many seconds; then this worker or another one tries them again."""
        for claim in claims:
            await pool.in_own_thread(self._shared.refuse, claim.run_id, claim.epoch, delay)
            self._agents.failed.discard(claim.run_id)

    def _look(self) -> None:
        """Look at the queues at the next turn."""
        self._may_have_work = True
        self._wake.set()

    def _start(self, claim: Claim) -> None:
        driven = self._driver_of(claim)
        before = self._driven.get(claim.run_id)
        if before is not None:
            # It was lost, and nobody else was faster.
            before[0].was_lost = True
            before[1].cancel()
        following = driven.drive(after=None if before is None else before[1])
        loop = asyncio.get_running_loop()
        task = loop.create_task(following, name=f"run {claim.run_id}")
        self._driven[claim.run_id] = driven, task
        task.add_done_callback(lambda _: self._on_end(driven))

    def _driver_of(self, claim: Claim) -> Driven | CallHere:
        call = call_from_text(claim.given)
        if call is None:
            return Driven(self._shared, self._agents, claim, self._program)
        tool = self._agents.tool(call.agent, call.tool)
        # It was claimed by this name.
        assert tool is not None
        return CallHere(
            self._shared,
            self._agents.store,
            tool,
            call=call,
            claim=claim,
            program=self._program,
        )

    def _on_end(self, driven: Driven | CallHere) -> None:
        present = self._driven.get(driven.claim.run_id)
        if present is not None and present[0] is driven:
            del self._driven[driven.claim.run_id]
        if driven.run is None:
            # Its task may have been cancelled before it began.
            driven.claim.let_go(self._shared)
        if isinstance(driven, Driven) and driven.has_failed:
            self._agents.failed.add(driven.claim.run_id)
        self._entry.lost += driven.was_lost
        # One that is given back again and again was counted once.
        misfit = self._agents.misfits.get(driven.claim.run_id)
        if driven.was_refused and not (misfit is not None and misfit.is_known):
            self._entry.refused += 1
            self._entry.has_changed()
        self._look()

    async def _deliver(self) -> None:
        told, self._told = self._told, set()
        for run_id in told:
            driven = self._driven.get(run_id)
            if driven is not None and driven[0].inbox is not None:
                await pool.in_own_thread(driven[0].inbox.deliver)

    async def _let_rest(self) -> None:
        resting, delays = [], []
        for driven, task in list(self._driven.values()):
            if driven.run is None or driven.rests or not driven.is_at_rest:
                continue
            run = driven.run
            if run._core.is_timed:
                may_rest, delay = await pool.in_own_thread(rest_of, run, self._shared)
            else:
                may_rest, delay = rest_of(run, self._shared)
            if may_rest and driven.is_at_rest:
                resting.append((driven, task))
                delays.append((driven.claim.run_id, delay))
        if not resting:
            return
        for driven, _ in resting:
            # Its driver may see at once that nothing more of the run is written here.
            driven.rests = True
        answers: list[str] = ["told"] * len(resting)
        try:
            answers = list(await pool.in_own_thread(self._shared.rest, delays))
        finally:
            for (driven, task), answer in zip(resting, answers, strict=True):
                driven.rests = answer == "rests"
                driven.was_lost = answer == "lost"
                if answer == "told":
                    self._told.add(driven.claim.run_id)
                    self._wake.set()
                else:
                    task.cancel()

    async def _leave_all(self) -> None:
        """Leave all runs as they are: at once where no call is under way, else after the grace."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._grace
        left: set[asyncio.Task[None]] = set()
        while self._driven:
            over = loop.time() >= until
            for driven, task in list(self._driven.values()):
                if task not in left and (over or not driven.is_calling):
                    # Once: a tool that cleans up must be able to wait for that.
                    left.add(task)
                    task.cancel()
            tasks = [task for _, task in self._driven.values()]
            await asyncio.wait(tasks, timeout=0.02)
            # What has ended has told so in a callback, which is about to run.
            await asyncio.sleep(0)


def rest_of(run: Run[Any], shared: _core.SharedRuns) -> tuple[bool, float | None]:
    """Return whether it is worth it that a run rests, and how long it may at most.

    It blocks while it reads the runs below one with a time limit.
    """
    deadlines = _deadlines(run, time.time() + shared.clock_offset)
    if not deadlines:
        return True, None
    delay = max(0.0, min(deadlines) - time.time() - shared.clock_offset)
    # Its own timer is about to end it.
    return delay > _SOON, delay


def _deadlines(run: Run[Any] | None, now: float) -> list[float]:
    if run is None or run.finished:
        return []
    below = [deadline for child in run._children for deadline in _deadlines(child, now)]
    own = (_deadline(run, now), run._core.first_expiry)
    return [*(deadline for deadline in own if deadline is not None), *below]


def _deadline(run: Run[Any], now: float) -> float | None:
    """Return when to look again whether the time of a run is over."""
    deadline = run._core.deadline
    if deadline is None or paused_since(run) is not None:
        return None
    since = paused_since(run, runs_below)
    # Nobody says when a child run goes on that others drive: the longer it has waited, the later.
    return deadline if since is None else max(deadline, now + (now - since))


def _on_sigterm(loop: asyncio.AbstractEventLoop, end: Any) -> Any:
    """End on SIGTERM, unless the program handles it itself. Returns how to undo that."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None
    try:
        loop.add_signal_handler(signal.SIGTERM, end)
    except (NotImplementedError, RuntimeError):
        return lambda: None
    return lambda: loop.remove_signal_handler(signal.SIGTERM)
