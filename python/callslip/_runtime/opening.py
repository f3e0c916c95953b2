"""Opening runs in threads: what is opened after the task was cancelled is nobody's, and is left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from callslip._base import _lazy
from callslip._base.options import check_run_id
from callslip._runtime.early_driver import EarlyDriver
from callslip._threads import pool
from callslip._threads.shield import shielded
from callslip.runs._conversation import run_lock

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.store import TicketStore

__all__ = ["open_in_thread", "open_reachable", "release", "take_in_thread"]

SessionT = TypeVar("SessionT", bound="RunSession | None")
TakenT = TypeVar("TakenT")


async def open_in_thread(opened: Callable[[], SessionT]) -> SessionT:
    """Open a run in a thread: it may wait until the store has written earlier events.

    If the task is cancelled meanwhile, the run is released once it is open.
    """
    return await take_in_thread(opened, release)


def release(session: RunSession | None) -> None:
    """Release a run that is open, and that nobody is going to drive."""
    if session is None:
        return
    if session.run._driver is not None:
        # Somebody may await what was sent to it.
        session.__exit__(None, None, None)
    else:
        session.core.release()


def open_reachable(store: TicketStore, run_id: str, opened: Callable[[], SessionT]) -> SessionT:
    """Open a run so that messages and decisions reach it at once, and not only once it is driven.

    Args:
        store: The store that has it. One that is shared keeps messages and decisions by itself.
        run_id: The id of the run.
        opened: Opens the run, unless it is not to be driven.
    """
    check_run_id(run_id)
    if store._shared is not None:
        return opened()
    with run_lock(store, run_id):
        session = opened()
        if session is not None:
            EarlyDriver(session)
    return session


async def take_in_thread(take: Callable[[], TakenT], give_up: Callable[[TakenT], object]) -> TakenT:
    """Call a function in a thread that takes something.

    Args:
        take: Takes it.
        give_up: Gives it up, in any thread, if the task is cancelled meanwhile.
    """
    asyncio, lock = _lazy.asyncio, threading.Lock()
    is_left = False
    there: list[TakenT] = []

    def taken() -> TakenT:
        found = take()
        with lock:
            if not is_left:
                there.append(found)
                return found
        give_up(found)
        return found

    try:
        return await shielded(asyncio.ensure_future(pool.in_own_thread(taken)))
    except asyncio.CancelledError:
        with lock:
            is_left = True
        for found in there:
            give_up(found)
        raise
