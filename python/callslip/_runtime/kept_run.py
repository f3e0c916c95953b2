"""Runs of a store that are asked for by their id: opened to be driven, or followed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from callslip._base import _lazy
from callslip._base.log import GuardedLogger
from callslip._runtime.background import keep, start_task
from callslip._runtime.opening import SessionT, open_in_thread, open_reachable
from callslip._runtime.sessions import resumed_session
from callslip._threads import pool
from callslip.errors import CallslipError, DrivenElsewhere, StoreError
from callslip.runs._conversation import send_to_driver
from callslip.runs._elsewhere import say
from callslip.runs._run import run_under_way

if TYPE_CHECKING:
    from callslip._core import Run as Core
    from callslip._core import SharedRuns
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip.parts import Said
    from callslip.runs import Run
    from callslip.store import TicketStore

__all__ = ["DrivenRun", "has_failed", "open_left", "open_or_follow"]

_LOOKS = (1.0, 10.0)
"""Seconds before the first look whether a message was read, and between two of the last ones."""

# Seconds, for a driver whose run has failed to let go of it.
_RELEASED_WITHIN = 2.0

_log = GuardedLogger("callslip")


class DrivenRun(NamedTuple):
    """A run that another driver has.

    Attributes:
        run: The run.
        after: The `seq` of its last event before it was told the message.
        opened: Opens it to be driven here if its driver leaves it before it has read the message;
            `None` if there is nothing to be read.
    """

    run: Run
    after: int
    opened: Callable[[], RunSession] | None = None

    def see_to_message(self) -> None:
        """Have the message read, on the event loop that is running."""
        if self.opened is not None:
            coroutine = _drive_if_left(self.run, self.opened)
            keep(_lazy.asyncio.get_running_loop().create_task(coroutine))


def open_or_follow(
    agent: DrivenAgent,
    run_id: str,
    said: Said | None,
    deps: object,
    opened: Callable[[], RunSession],
) -> RunSession | DrivenRun:
    """Open a run to be driven here; or, where another driver has it, tell it the message.

    Args:
        agent: The agent, or the one that an override puts in its place.
        run_id: The id of the run.
        said: The message of the user; `None` for none.
        deps: For the tools.
        opened: Opens the run with the message.

    Raises:
        UsageError: `deps` is passed with a message to a run that this process drives; or as for
            `opened`.
        DrivenElsewhere: The run has failed, and its driver has not let go of it in 2 s.
        StoreError: The run cannot be read, or the message cannot be written down.
    """
    store = agent._in_effect()._required_store()
    under_way = run_under_way(run_id)
    if under_way is not None and under_way._is_in_store(store):
        after = under_way.seq
        if said is None or send_to_driver(under_way, said, deps) is not None:
            return DrivenRun(under_way, after)
    try:
        return (open_left if said is None else open_reachable)(store, run_id, opened)
    except DrivenElsewhere as error:
        if store._shared is None:
            raise
        run = _followed(agent, store, run_id, error)
        after = run.seq
        if said is None:
            if has_failed(run._core):
                raise
            return DrivenRun(run, after)
        say(run, store._shared, said)
        return DrivenRun(run, after, partial(resumed_session, agent, run_id, deps))


def open_left(store: TicketStore, run_id: str, opened: Callable[[], SessionT]) -> SessionT:
    """Open a run as `open_reachable`, or one that has failed once its driver has let go of it.

    Raises:
        DrivenElsewhere: Another driver has it, and has not let go of it in 2 s if it has failed.
    """
    end = time.monotonic() + _RELEASED_WITHIN
    while True:
        try:
            return open_reachable(store, run_id, opened)
        except DrivenElsewhere:
            late = time.monotonic() > end
            if late or store._shared is None or not has_failed(store.run(run_id)._core):
                raise
        # It is to go on, which its driver will not do.
        time.sleep(0.01)


def has_failed(core: Core) -> bool:
    """Whether the run is over because its model client has failed, so that it may go on."""
    ending = core.ending
    return ending is not None and ending.reason == "model_error"


def _followed(agent: DrivenAgent, store: TicketStore, run_id: str, why: DrivenElsewhere) -> Run:
    run = store.run(run_id)
    if run._driver is None:
        # Its agent reads the answer, and does not continue it here.
        run._agent, run._left = agent, why
    return run


async def _drive_if_left(run: Run, opened: Callable[[], RunSession]) -> None:
    """Drive a run here if its driver has ended or left it before it read a message."""
    store = run._store
    assert store is not None
    seconds, most = _LOOKS
    while True:
        await _lazy.asyncio.sleep(seconds)
        seconds = min(2 * seconds, most)
        try:
            assert store._shared is not None
            if not await pool.in_own_thread(_has_message, store._shared, run.id):
                return
            session = await open_in_thread(opened)
        except StoreError as error:
            if not isinstance(error, DrivenElsewhere) and store._closed:
                return
        except CallslipError:
            _log.exception("run %s can't go on here, and a message waits for it", run.id)
            return
        else:
            start_task(session)
            return


def _has_message(shared: SharedRuns, run_id: str) -> bool:
    return any(row[1] == run_id and row[2] == "say" for row in shared.inbox(run_id))
