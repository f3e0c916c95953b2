"""Watching a run: from its log, then live."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from callslip._base import _lazy
from callslip._base.options import check_flag
from callslip._threads import pool
from callslip._threads.current_loop import check_loop
from callslip.errors import StoreError, UnknownRun, UsageError
from callslip.events import Event, Progress
from callslip.runs._elsewhere import goes_on
from callslip.runs._ending import raise_failure
from callslip.runs._feed import feed_of, is_wanted, merged
from callslip.runs._followers import follow
from callslip.runs._log_cache import check_seq
from callslip.runs._waiting import Waiting, runs_below, wait_of

if TYPE_CHECKING:
    from callslip._core import Ending
    from callslip.events import Delta
    from callslip.runs._followers import Followed
    from callslip.runs._needs import StoreOfRun
    from callslip.runs._recent import ReplyDeltas
    from callslip.runs._run import Run
    from callslip.runs._waiting import Wait

__all__ = ["RunWatch", "has_ended"]

_ASK = 1.0
"""Seconds before a database is asked again whether a run that is over goes on."""


class RunWatch:
    """The events of a run, first those of its log, then as they happen. Made by `Run.watch`.

    Leaving the iteration ends the watching, and nothing else.

    Args:
        run: The run.
        after: The `seq` of the event to begin after; `None` for the beginning.
        children: Whether all events of child runs are told, and not only calls that wait for
            somebody.

    Raises:
        UsageError: The log has no such event, or an option has a wrong value.
    """

    def __init__(self, run: Run, *, after: int | None, children: bool) -> None:
        check_flag("children", children)
        if after is not None:
            check_seq("after", after, run._core.event_count)
        position = 0 if after is None else after + 1
        self._run = run
        self._children = children
        self._feed = feed_of(run)
        agent = self._feed.run._agent or run._agent
        waits = agent is not None and any(agent._waits_for)
        # A function may have started runs of an agent that asks.
        if children or waits or self._feed.run._children:
            self._feed.want_children()
        self._position = position
        # Tasks and threads that share it share its items.
        self._reading = threading.Lock()
        self._ready: deque[Event | Delta | Progress | Waiting] = deque()
        self._reply: _Reply | None = None
        # How far the runs below are told to this watcher, too.
        self._others_seen, self._below = self._feed.below.now()
        self._began_over = run._core.ending is not None
        self._followed: Followed | None = None
        # The wait that was told last, unless the run went on since.
        self._wait: tuple[object, ...] | None = None

    @property
    def run(self) -> Run:
        """The object of the run that is driven, or that follows what is written elsewhere."""
        return self._feed.run

    def __aiter__(self) -> Self:
        check_loop("asyncio.run, main()")
        return self

    async def __anext__(self) -> Event | Delta | Progress | Waiting:
        feed = self._feed
        while True:
            with self._reading:
                version = feed.version
                if not self._ready:
                    self._read()
                if self._ready:
                    return self._ready.popleft()
                ending = self._ending()
            with feed.readers:
                seconds = None
                if ending is None and (waiting := await self._new_wait(version)) is not None:
                    return waiting
                if ending is not None:
                    has_more = await self._has_more()
                    if feed.version != version:
                        continue
                    if has_more is False:
                        raise_failure(feed.run, ending, feed.run._raised)
                        raise StopAsyncIteration
                    # Whoever is to write it may end before.
                    seconds = _ASK
                if self._follows():
                    # Nothing may be told any more.
                    continue
                with suppress(TimeoutError):
                    async with _lazy.asyncio.timeout(seconds):
                        await feed.wait(version)

    async def _has_more(self) -> bool | None:
        """Whether more is to come in a run that seems over. `None`: its database is away."""
        # Not the store of the driver, which may be closed by now.
        store = self._run._store
        if store is None or store._shared is None:
            return False
        try:
            # The database may take its time, and the loop has other things to do.
            return not await pool.in_own_thread(has_ended, self._feed.run, store)
        except StoreError:
            if store._closed:
                raise
            return None

    def _follows(self) -> bool:
        """Follow what other processes write. Returns whether all of it is told, since this call."""
        feed, store = self._feed, self._run._store
        driver = feed.run._driver
        if store is None or store._shared is None:
            return False
        # Workers may have the child runs of a run that is driven here.
        has_below = self._children or any(is_task for _, is_task in feed.run._core.under_way or ())
        if driver is not None and not (has_below and driver.may_rest):
            return False
        before, self._followed = self._followed, follow(self, feed, store)
        return self._followed is not before and self._followed.is_complete

    def _read(self) -> None:
        """Take what is new: deltas of the reply, then the events that come after them."""
        feed = self._feed
        # Read before the deltas, which come before the event that ends their reply.
        published = feed.published
        known = self._reply
        if known is None or known.is_read:
            following = feed.reply_at(self._position)
            if following is not None and (known is None or following is not known.reply):
                self._reply = known = _Reply(following)
        if known is not None and (deltas := known.take()):
            self._ready += merged(deltas) if len(deltas) > 1 else deltas
            return
        for event in feed.events(self._position, published):
            self._ready.append(event)
            self._position = event.seq + 1
            if feed.reply_at(self._position) not in (None, None if known is None else known.reply):
                break
        if feed.below.count != self._others_seen:
            others, self._others_seen, has_dropped = feed.below.since(self._others_seen)
            if has_dropped:
                others = [*feed.below.events(self._below), *others]
            self._ready += (
                item
                for item in others
                if self._is_new(item) and is_wanted(item, self._run.id, children=self._children)
            )

    def _is_new(self, item: Event | Progress) -> bool:
        """Whether it is not an event of a run below that was read from its log already."""
        if isinstance(item, Progress):
            return True
        if item.seq < self._below.get(item.run_id, 0):
            return False
        self._below[item.run_id] = item.seq + 1
        return True

    async def _new_wait(self, version: int) -> Waiting | None:
        """Return what the run waits for, if that is new and all until then is told."""
        wait = await self._wait_now()
        with self._reading:
            if self._feed.version != version or self._ready:
                return None
            if wait is None:
                self._wait = None
                return None
            if wait.key == self._wait or not self._is_told(wait):
                return None
            self._wait = wait.key
            return Waiting(self._run.id, wait.tickets)

    async def _wait_now(self) -> Wait | None:
        run, store = self._feed.run, self._run._store
        waits, driver = run._core.waits_for, run._driver
        if waits is None:
            return None
        if store is not None and store._shared is not None and (driver is None or driver.may_rest):
            return wait_of(run, self._followed_below)
        if store is None or driver is not None or not waits[1]:
            return wait_of(run, attrgetter("_children"))
        # Nobody tells of the runs below it: nothing works on them.
        below = partial(runs_below, store=store)
        return await pool.in_own_thread(wait_of, run, below)

    def _followed_below(self, run: Run) -> list[Run]:
        """Return the child runs of a run, as far as what was written of them is told."""
        below = {run_id: feed.run for run_id, feed in [*self._feed.below.feeds.items()]}
        below |= {child.id: child for child in run._children if child._driver is not None}
        return [one for one in below.values() if (one._core.parent or ("",))[0] == run.id]

    def _is_told(self, wait: Wait) -> bool:
        """Whether all events of the runs that wait are told to this watcher."""
        below = self._feed.below
        _, told = below.now()
        counts = {run.id: count for run, count in wait.runs}
        is_told = all(counts.get(run_id, 0) <= told[run_id] for run_id in told)
        return is_told and (
            self._position == counts[self._run.id] and below.count == self._others_seen
        )

    def _ending(self) -> Ending | None:
        """Return the end of the run if nothing more comes, unless a database has more.

        Raises:
            StoreError: The run was deleted, or its store was closed.
            BaseException: Its driver has left it, because of this.
        """
        feed = self._feed
        run = feed.run
        if run._driver is not None:
            return None
        # Before it is looked whether there is something to read.
        has_all_below = self._has_all_below()
        # Another thread may have made the feed while the driver was leaving.
        feed.publish()
        if self._position < feed.published or feed.below.count != self._others_seen:
            return None
        # It rests, or another process has it.
        if run._left is not None and not goes_on(run):
            feed.readers.has_raised = True
            raise run._left
        # Another thread may continue the run at this very moment.
        ending = run._core.ending
        if ending is not None and (has_all_below or feed.was_deleted):
            return ending
        if feed.was_deleted:
            raise UnknownRun(f"there is no run {run.id} in this store: it was deleted")
        if self._run._store is not None and self._run._store._closed:
            raise StoreError("this store is closed: open it again to use it")
        if self._followed is not None and (failure := self._followed.failure) is not None:
            raise StoreError(f"this run can't be followed: {failure}") from failure
        if run._store is None:
            raise UsageError(
                "nothing works on this run: use agent.start(…) or agent.stream(…), or pass store=… "
                "to the agent and call agent.resume(…)"
            )
        return None

    def _has_all_below(self) -> bool:
        """Whether the events of child runs that other processes have driven are told."""
        store = self._run._store
        if not self._children or self._began_over or store is None or store._shared is None:
            return True
        return self._followed is not None and self._followed.is_complete


class _Reply:
    """A reply as far as a watcher has read it.

    Args:
        reply: The reply.
    """

    __slots__ = ("_index", "reply")

    def __init__(self, reply: ReplyDeltas) -> None:
        self.reply = reply
        self._index = 0

    @property
    def is_read(self) -> bool:
        """Whether nothing of it is new."""
        return self._index >= len(self.reply.deltas)

    def take(self) -> list[Delta]:
        """Return the deltas that are new."""
        deltas = self.reply.deltas[self._index :]
        self._index += len(deltas)
        return deltas


def has_ended(run: Run, store: StoreOfRun) -> bool:
    """Whether a run is over, and was told nothing since. It waits for a database.

    Args:
        run: The run.
        store: A store that has it.

    Raises:
        StoreError: The database cannot be read.
    """
    if run._driver is not None or run._core.ending is None:
        return False
    shared = store._shared
    return shared is None or not shared.has_more(run.id, run._core.event_count)
