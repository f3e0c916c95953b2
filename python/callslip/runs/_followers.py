"""Following the runs that other processes of a shared store work on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

from callslip import _core
from callslip._base import _lazy
from callslip._threads import pool
from callslip._threads.descriptors import unwatch, watch
from callslip.errors import CallslipError
from callslip.runs._feed import feed_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Event, Task

    from callslip.runs._feed import Feed
    from callslip.runs._needs import StoreOfRun

__all__ = ["Followed", "follow"]

_LOOK = 1.0
"""Seconds between two looks at runs of which nothing is heard: a notice may be lost."""

_TOLD_FOR = 60.0
"""Seconds for which whoever writes to a run tells it."""

_followers: WeakKeyDictionary[AbstractEventLoop, dict[StoreOfRun, _Follower]] = WeakKeyDictionary()


def follow(watcher: object, feed: Feed, store: StoreOfRun) -> Followed:
    """Tell a feed what other processes write, for as long as this watcher lives.

    Args:
        watcher: Who is told. It is held weakly.
        feed: The feed of a run.
        store: The shared store that has the run.

    Returns:
        How far the run and those below it are told.
    """
    loop = _lazy.asyncio.get_running_loop()
    of_loop = _followers.setdefault(loop, {})
    # Another object of the same store may be closed before this one.
    follower = of_loop.get(store)
    if follower is None or follower.is_done:
        follower = of_loop[store] = _Follower(store)
    return follower.add(watcher, feed)


class Followed:
    """One run that is followed, with its child runs.

    Args:
        feed: The feed of the run.

    Attributes:
        complete_at: The number of events of the run that was over, and all events of the runs below
            it were told.
        failure: Why its log can't be read, or that of a run below it.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.watchers: WeakSet[Any] = WeakSet()
        self.told_until = 0.0
        self.complete_at = -1
        self.failure: CallslipError | None = None
        self.doubt = ""

    @property
    def children(self) -> dict[str, Feed]:
        """The feeds of the runs below it that the store has, by their ids."""
        return self.feed.below.feeds

    @property
    def is_complete(self) -> bool:
        """Whether the run is over, and all events of the runs below it are told."""
        return self.complete_at == self.feed.run._core.event_count


class _Follower:
    """Follows the runs of one store on one event loop, as long as somebody watches.

    Args:
        store: The store.
    """

    def __init__(self, store: StoreOfRun) -> None:
        self._store = store
        self._followed: dict[str, Followed] = {}
        self._news: Event = _lazy.asyncio.Event()
        self._changed: set[str] = set()
        self._task: Task[None] | None = None

    @property
    def store(self) -> StoreOfRun:
        """The store."""
        return self._store

    @property
    def _shared(self) -> _core.SharedRuns:
        # After a failure, the store opens another one.
        assert self._store._shared is not None
        return self._store._shared

    @property
    def is_done(self) -> bool:
        """Whether nothing is followed any more."""
        return self._task is None or self._task.done()

    def add(self, watcher: object, feed: Feed) -> Followed:
        run_id = feed.run.id
        followed = self._followed.get(run_id)
        if followed is None or followed.feed is not feed:
            followed = self._followed[run_id] = Followed(feed)
        feed.below.is_followed = True
        followed.watchers.add(watcher)
        self._changed.add(run_id)
        self._news.set()
        if self._task is None or self._task.done():
            loop = _lazy.asyncio.get_running_loop()
            self._task = loop.create_task(
                _run(ref(self), self._shared.notices()), name="callslip follow"
            )
        return followed

    def hear(self, notices: _core.Notices) -> None:
        """Take what other processes have told."""
        for kind, name in notices.take():
            if kind == "written":
                self._changed.add(name)
            elif kind == "anything":
                self._changed.update(self._followed)
        self._news.set()

    async def turn(self) -> bool:
        """Wait for news, and tell them. Returns whether somebody still watches."""
        asyncio = _lazy.asyncio
        try:
            async with asyncio.timeout(_LOOK):
                await self._news.wait()
        except TimeoutError:
            self._changed.update(self._followed)
        self._news.clear()
        self._followed = {
            run_id: followed for run_id, followed in self._followed.items() if followed.watchers
        }
        if not self._followed:
            return False
        changed, self._changed = self._changed, set()
        now = asyncio.get_running_loop().time()
        for followed in list(self._followed.values()):
            known = {followed.feed.run.id, *followed.children}
            if known & changed or followed.told_until - now < _TOLD_FOR / 2:
                try:
                    await pool.in_own_thread(self._look, followed, now)
                except CallslipError as error:
                    await self._take_failure(followed, error)
                else:
                    followed.doubt, followed.failure = "", None
        return True

    async def _take_failure(self, followed: Followed, error: CallslipError) -> None:
        """Tell what waiting does not mend: the database is there, and the same fails again."""
        run_id = followed.feed.run.id
        if not self._store._closed:
            if followed.doubt != str(error):
                followed.doubt = str(error)
                self._changed.add(run_id)
                return
            try:
                await pool.in_own_thread(self._shared.positions, [run_id])
            except CallslipError:
                # It is away.
                return
            followed.failure = error
        followed.feed.notify()

    def _look(self, followed: Followed, now: float) -> None:
        feed = followed.feed
        run = feed.run
        if followed.told_until - now < _TOLD_FOR / 2:
            self._shared.follow([run.id, *followed.children], _TOLD_FOR)
            followed.told_until = now + _TOLD_FOR
        # The last event of the run ends the watch: it is told after those of all runs below it,
        # which were written before.
        is_here = run._driver is not None
        if not is_here:
            run._core.catch_up(self._store._native)
        complete_at = -1 if run._core.ending is None else run._core.event_count
        known = -1
        while known < len(followed.children):
            known = len(followed.children)
            is_there = self._look_below(followed)
        if not is_here:
            feed.publish()
        if not (is_there or is_here or feed.was_deleted or run._driver is not None):
            feed.was_deleted = True
            feed.notify()
        if complete_at != followed.complete_at:
            followed.complete_at = complete_at
            feed.notify()

    def _look_below(self, followed: Followed) -> bool:
        """Tell what is new in the runs below a run. Returns whether the store has that run."""
        top = followed.feed.run.id
        is_there = False
        for run_id, _, position in self._shared.positions([top, *followed.children]):
            if run_id == top:
                is_there = True
            elif position > 0:
                feed = followed.children.get(run_id) or self._add_child(followed, run_id)
                run = feed.run
                if run._driver is None and position > run._core.event_count:
                    run._core.catch_up(self._store._native)
                    feed.publish()
        return is_there

    def _add_child(self, followed: Followed, run_id: str) -> Feed:
        """Return the feed of a run below that is new here, whose events are told from now on."""
        run = self._store.run(run_id)
        feed = feed_of(run)
        parent: dict[str, Any] = json.loads(run._core.origin).get("parent") or {}
        feed.tell_events(followed.children.get(parent.get("run_id", ""), followed.feed))
        followed.children[run_id] = feed
        self._shared.follow([run_id], _TOLD_FOR)
        return feed


async def _run(follower: ref[_Follower], notices: _core.Notices) -> None:
    loop = _lazy.asyncio.get_running_loop()
    present = follower()
    store = None if present is None else present.store
    del present

    def hear() -> None:
        if (present := follower()) is not None:
            present.hear(notices)

    watch(loop, notices.fileno(), hear)
    try:
        while (present := follower()) is not None:
            if not await present.turn():
                return
            del present
    finally:
        unwatch(loop, notices.fileno())
        if store is not None:
            # The loop may end with this: nothing is to keep it.
            _followers.get(loop, {}).pop(store, None)
