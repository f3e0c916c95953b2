"""Opening runs in threads: what is opened after the task was cancelled is nobody's, and is left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from callslip import _lazy
from callslip._threads.shield import shielded

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession

__all__ = ["open_in_thread", "take_in_thread"]

SessionT = TypeVar("SessionT", bound="RunSession | None")
TakenT = TypeVar("TakenT")


async def open_in_thread(opened: Callable[[], SessionT]) -> SessionT:
    """Open a run in a thread: it may wait until the store has written earlier events.

    If the task is cancelled meanwhile, the run is released once it is open.
    """
    return await take_in_thread(opened, _release)


def _release(session: RunSession | None) -> None:
    if session is not None:
        session.core.release()


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
        return await shielded(asyncio.ensure_future(asyncio.to_thread(taken)))
    except asyncio.CancelledError:
        with lock:
            is_left = True
        for found in there:
            give_up(found)
        raise
