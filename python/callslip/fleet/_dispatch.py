"""Telling an engine of the user's which runs have something to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip._base.log import GuardedLogger
from callslip._threads import pool
from callslip._threads.current_loop import is_in_loop
from callslip.errors import StoreError, UsageError

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Dispatch", "Dispatcher", "dispatcher_of"]

_log = GuardedLogger("callslip.fleet")

Dispatch: TypeAlias = Literal["queue"] | Callable[[str], object]
"""Who drives runs: workers, or what is called with the id of a run."""


class Dispatcher:
    """Calls the function of the user for each run that has something to do, after its commit.

    A function that raises loses nothing, since what was committed is found by a later sweep: the
    exception is logged.

    Args:
        shared: The shared store.
        wake: The function, sync or async.
    """

    def __init__(self, shared: _core.SharedRuns, wake: Callable[[str], object]) -> None:
        self._shared = shared
        self._wake = wake
        # The loop itself keeps only weak references to them.
        self._tasks: set[asyncio.Task[None]] = set()

    async def dispatch(self, run_ids: Iterable[str]) -> None:
        """Call the function for runs. A sync one is called in a thread."""
        for run_id in run_ids:
            coroutine = await pool.in_own_thread(self._call, run_id)
            if coroutine is not None:
                await _awaited(coroutine, run_id)

    async def was_submitted(self, run_id: str, *, is_ready: bool) -> None:
        """Call the function for a run that was submitted.

        Args:
            run_id: The id of the run.
            is_ready: Whether it is new and begins at once. Else the database is asked.
        """
        if is_ready:
            await self.dispatch([run_id])
        else:
            # It begins later, or was submitted before.
            await self.dispatch(await pool.in_own_thread(self._shared.due_near, run_id))

    async def dispatch_others(self, run_id: str) -> bool:
        """Call the function for those around a run, where they have something to do.

        Returns:
            Whether the run itself has something to do.
        """
        due = await pool.in_own_thread(self._shared.due_near, run_id)
        await self.dispatch(one for one in due if one != run_id)
        return run_id in due

    def was_told(self, run_id: str) -> None:
        """Call the function, because a run was told something just now, in any thread."""
        try:
            due = self._shared.due_near(run_id)
        except StoreError as error:
            _log.warning("run %s was told something, and not dispatched: %s", run_id, error)
            return
        for one in due:
            coroutine = self._call(one)
            if coroutine is None:
                continue
            if is_in_loop():
                task = asyncio.create_task(_awaited(coroutine, one), name=f"dispatch {one}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                pool.on_loop(_awaited(coroutine, one)).result().get()

    def _call(self, run_id: str) -> Coroutine[Any, Any, object] | None:
        try:
            returned = self._wake(run_id)
        except Exception:  # noqa: BLE001  # of the program's own function
            _log.warning("run %s was not dispatched", run_id, exc_info=True)
            return None
        # Only that of an async function: what else can be awaited may be the end of the whole run.
        return returned if asyncio.iscoroutine(returned) else None


async def _awaited(coroutine: Coroutine[Any, Any, object], run_id: str) -> None:
    try:
        await coroutine
    except Exception:  # noqa: BLE001  # of the program's own function
        _log.warning("run %s was not dispatched", run_id, exc_info=True)


def dispatcher_of(shared: _core.SharedRuns, dispatch: Any) -> Dispatcher | None:
    """Return what calls the function of the user; `None` if workers take runs from the queue.

    Raises:
        UsageError: It is neither.
    """
    if dispatch == "queue":
        return None
    if not callable(dispatch):
        raise UsageError(f"expected dispatch='queue' or a function of a run's id: got {dispatch!r}")
    return Dispatcher(shared, dispatch)
