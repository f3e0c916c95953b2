"""Time in which nothing works on a run or on the runs below it: its time limit leaves that out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from callslip._runtime.shared.tree_position import child_id
from callslip.errors import StoreError
from callslip.events import Noted
from callslip.runs._waiting import runs_below, wait_of

if TYPE_CHECKING:
    import asyncio

    from callslip._runtime.session import RunSession
    from callslip.runs import Run

__all__ = ["DeadlineTimer", "note_pauses", "paused_below", "paused_since"]


def _children_here(run: Run) -> Iterable[Run]:
    return run._children


def paused_since(run: Run, below: Callable[[Run], Iterable[Run]] = _children_here) -> float | None:
    """Return since when nothing works on a run or below it; `None` if something does.

    Args:
        run: The run.
        below: Returns the child runs of a run. A child run that it leaves out counts as work.
            Default: those of this process.

    Returns:
        Unix seconds.
    """
    wait = wait_of(run, below)
    return None if wait is None else max(one._core.last_at for one, _ in wait.runs)


def paused_below(run: Run, now: float) -> float:
    """Return the seconds since the last event of a run in which all that it waits for rested.

    Args:
        run: A run that rests, whose child runs may have ended since.
        now: Unix seconds.
    """
    under_way, store = run._core.under_way, run._store
    if store is None or not under_way or not all(is_task for _, is_task in under_way):
        return 0.0
    spans = [(run._core.last_at, now)]
    for ticket, _ in under_way:
        try:
            child = store.run(child_id(run.id, ticket))
        except StoreError:
            # It waits for a worker.
            return 0.0
        rests = list(_rests(child, now))
        both = ((max(one[0], other[0]), min(one[1], other[1])) for one in spans for other in rests)
        spans = [(begins, ends) for begins, ends in both if begins < ends]
    return sum(ends - begins for begins, ends in spans)


def _rests(run: Run, now: float) -> Iterator[tuple[float, float]]:
    """Yield the spans of time in which a run of a worker rested."""
    last = now
    for event in run.log:
        if isinstance(event, Noted) and event.note == "resumed":
            yield last, event.at
        last = event.at
    if paused_since(run, runs_below) is not None:
        yield last, now


def note_pauses(session: RunSession) -> None:
    """Record that nothing worked on a run and on those above it, before something does again.

    Their own logs tell it of calls that await a decision, but not of child runs that wait.
    """
    if not session.stands_under_time:
        return
    now = session.now()
    above = (known.run() for known in session.beginning.runs_above)
    for run in (session.run, *above):
        if run is None or not run._core.is_timed or (since := paused_since(run)) is None:
            continue
        # Its own driver raises that.
        with suppress(StoreError):
            run._core.pause(since, now)
        if (driver := run._driver) is not None:
            driver.look_at_time()


class DeadlineTimer:
    """Calls a function when the time of a run is over.

    One timer serves the run: the deadline only ever moves to later, and there is none while nothing
    works on the run.

    Args:
        session: The session of the run.
        loop: The event loop of the run.
        on_end: Called on the loop with the deadline.
    """

    __slots__ = ("_loop", "_on_end", "_session", "_timer")

    def __init__(
        self,
        session: RunSession,
        loop: asyncio.AbstractEventLoop,
        on_end: Callable[[float], object],
    ) -> None:
        self._session = session
        self._loop = loop
        self._on_end = on_end
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer unless it runs, or there is no deadline now."""
        if self._timer is None and (deadline := self._session.core.deadline) is not None:
            left = max(0.0, deadline - self._session.now())
            self._timer = self._loop.call_later(left, self._look)

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        deadline = self._session.core.deadline
        if deadline is None or self._session.core.finished:
            return
        if deadline > self._session.now():
            self.start()
        elif paused_since(self._session.run) is None:
            self._on_end(deadline)
