"""Driving one run in the task of a program that has an engine of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from callslip._base.log import GuardedLogger
from callslip._threads import pool
from callslip._threads.descriptors import unwatch, watch
from callslip.errors import StoreError, TakenOver
from callslip.fleet._driven import Claim, Driven, ForRuns, reason_lost
from callslip.fleet._worker import rest_of

if TYPE_CHECKING:
    from callslip import _core
    from callslip.fleet._agents import KnownAgents

__all__ = ["OneRun"]

_log = GuardedLogger("callslip.fleet")

_TICK = 0.05
"""Seconds between two looks whether the run rests."""

_AWAY = 1.0
"""Seconds before a store that was away is asked again."""


class OneRun:
    """Drives a run that was claimed, until it is over or rests.

    Args:
        shared: The shared store.
        agents: The agents.
        claim: The run.
        program: What the program has for the run.
    """

    def __init__(
        self,
        shared: _core.SharedRuns,
        agents: KnownAgents,
        claim: Claim,
        program: ForRuns,
    ) -> None:
        self._shared = shared
        self._driven = Driven(shared, agents, claim, program)
        self._wake = asyncio.Event()
        self._was_told = False
        self._lost: str | None = None

    async def drive(self) -> Literal["over", "rests"]:
        """Drive the run. If the task is cancelled, the run is left as it is.

        Raises:
            UsageError: No agent can drive the run.
            TakenOver: Another process has taken the run over.
            StoreError: The store cannot be used.
        """
        driven, loop = self._driven, asyncio.get_running_loop()
        run_id = driven.claim.run_id
        task = asyncio.create_task(driven.drive(), name=f"run {run_id}")
        task.add_done_callback(lambda _: self._wake.set())
        try:
            notices = self._shared.notices()
            watch(loop, notices.fileno(), self._hear, notices)
            try:
                while self._goes_on(task):
                    await self._turn(task)
            finally:
                unwatch(loop, notices.fileno())
        finally:
            task.cancel()
            await asyncio.wait([task])
            if driven.run is None:
                # The task may have been cancelled before it began.
                driven.claim.let_go(self._shared)
        if driven.rests:
            return "rests"
        if self._lost is not None:
            raise TakenOver(self._lost)
        if driven.left is not None:
            raise driven.left
        return "over"

    def _hear(self, notices: _core.Notices) -> None:
        run_id = self._driven.claim.run_id
        for kind, name in notices.take():
            if kind == "anything" or (kind == "inbox" and name == run_id):
                self._was_told = True
            elif kind == "lost" and name == run_id:
                self._lose()
        self._wake.set()

    def _lose(self) -> None:
        run_id = self._driven.claim.run_id
        self._lost = reason_lost(self._shared, run_id)
        _log.warning("run %s was left: %s", run_id, self._lost)

    def _goes_on(self, task: asyncio.Task[None]) -> bool:
        # The task of a run that rests or is lost takes a moment to end.
        return not (task.done() or self._driven.rests or self._lost is not None)

    async def _turn(self, task: asyncio.Task[None]) -> None:
        try:
            async with asyncio.timeout(_TICK):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
        if not self._goes_on(task):
            return
        try:
            await self._look()
        except StoreError as error:
            _log.warning("the store is away: %s", error)
            self._was_told = True
            await asyncio.sleep(_AWAY)

    async def _look(self) -> None:
        driven = self._driven
        if driven.run is None:
            return
        if self._was_told:
            self._was_told = False
            if driven.inbox is not None:
                await pool.in_own_thread(driven.inbox.deliver)
        elif driven.is_at_rest:
            may_rest, delay = await pool.in_own_thread(rest_of, driven.run, self._shared)
            if may_rest and driven.is_at_rest:
                await self._rest(delay)

    async def _rest(self, delay: float | None) -> None:
        driven = self._driven
        # Its driver may see at once that nothing more of the run is written here.
        driven.rests = True
        answer = "told"
        try:
            (answer,) = await pool.in_own_thread(self._shared.rest, [(driven.claim.run_id, delay)])
        finally:
            driven.rests = answer == "rests"
        self._was_told = answer == "told"
        if answer == "lost":
            self._lose()
