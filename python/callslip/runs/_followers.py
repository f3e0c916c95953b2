"""Following the runs that other processes of a shared store work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

from callslip import _core, _lazy
from callslip._threads.descriptors import unwatch, watch
from callslip.errors import CallslipError
from callslip.runs._feed import feed_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Event, Task

    from callslip.runs._feed import Feed
    from callslip.runs._run import Run
    from callslip.store import TicketStore

__all__ = ["Followed", "follow"]

_LOOK = 1.0
"""Seconds between two looks at runs of which nothing is heard: a notice may be lost."""

_TOLD_FOR = 60.0
"""Seconds for which whoever writes to a run tells it."""

_followers: WeakKeyDictionary[AbstractEventLoop, dict[str | int, _Follower]] = WeakKeyDictionary()


def follow(watcher: object, feed: Feed, store: TicketStore) -> Followed:
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
    follower = of_loop.get(store._identity)
    if follower is None or follower.is_done:
        follower = of_loop[store._identity] = _Follower(store)
    return follower.add(watcher, feed)


class Followed:
    """One run that is followed, with its child runs.

    Args:
        feed: The feed of the run.

    Attributes:
        is_complete: Whether the run is over, and all events of the runs below it are told.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.watchers: WeakSet[Any] = WeakSet()
        self.told_until = 0.0
        self.is_complete = False

    @property
    def children(self) -> dict[str, Run]:
        """The child runs whose events the feed has been told, by their ids."""
        return self.feed.followed_children

    def run_of(self, run_id: str) -> Run | None:
        """Return the object of the run or of one of its child runs, if there is one."""
        return self.feed.run if run_id == self.feed.run.id else self.children.get(run_id)


class _Follower:
    """Follows the runs of one store on one event loop, as long as somebody watches.

    Args:
        store: The store.
    """

    def __init__(self, store: TicketStore) -> None:
        assert store._shared is not None
        self._store = store
        self._shared: _core.SharedRuns = store._shared
        self._followed: dict[str, Followed] = {}
        self._news: Event = _lazy.asyncio.Event()
        self._changed: set[str] = set()
        self._task: Task[None] | None = None

    @property
    def identity(self) -> str | int:
        """What is common to all objects of its store."""
        return self._store._identity

    @property
    def is_done(self) -> bool:
        """Whether nothing is followed any more."""
        return self._task is None or self._task.done()

    def add(self, watcher: object, feed: Feed) -> Followed:
        run_id = feed.run.id
        followed = self._followed.get(run_id)
        if followed is None:
            followed = self._followed[run_id] = Followed(feed)
        followed.watchers.add(watcher)
        self._changed.add(run_id)
        self._news.set()
        if self._task is None or self._task.done():
            loop = _lazy.asyncio.get_running_loop()
            self._task = loop.create_task(_run(ref(self), self._shared), name="callslip follow")
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
                    await asyncio.to_thread(self._look, followed, now)
                except CallslipError:
                    # The database is away for a moment, or the run was deleted.
                    continue
        return True

    def _look(self, followed: Followed, now: float) -> None:
        run = followed.feed.run
        if followed.told_until - now < _TOLD_FOR / 2:
            self._shared.follow([run.id, *followed.children], _TOLD_FOR)
            followed.told_until = now + _TOLD_FOR
        # The last event of the run ends the watch: it is told after those of all runs below it,
        # which were written before.
        is_here = run._driver is not None
        if not is_here:
            run._core.catch_up(self._store._native)
        is_over = run._core.ending is not None
        known = -1
        while known < len(followed.children):
            known = len(followed.children)
            self._look_below(followed)
        if not is_here and run._feed is not None:
            run._feed.publish()
        if is_over != followed.is_complete:
            followed.is_complete = is_over
            followed.feed.notify()

    def _look_below(self, followed: Followed) -> None:
        run = followed.feed.run
        for run_id, _, position in self._shared.positions([run.id, *followed.children]):
            if run_id == run.id:
                continue
            one = followed.run_of(run_id)
            if one is None and position > 0:
                one = self._add_child(followed, run_id)
            if one is None or one._driver is not None or position <= one._core.event_count:
                continue
            one._core.catch_up(self._store._native)
            if one._feed is None:
                feed_of(one).tell(followed.feed)
            if one._feed is not None:
                one._feed.publish()

    def _add_child(self, followed: Followed, run_id: str) -> Run | None:
        """Return a child run that is new here: all its events are told from now on."""
        child = self._store.run(run_id)
        if child._driver is not None:
            return None
        followed.children[run_id] = child
        feed = feed_of(child)
        feed.published = 0
        feed.tell(followed.feed)
        feed.publish()
        self._shared.follow([run_id], _TOLD_FOR)
        return child


async def _run(follower: ref[_Follower], shared: _core.SharedRuns) -> None:
    notices = shared.notices()
    loop = _lazy.asyncio.get_running_loop()
    present = follower()
    identity = None if present is None else present.identity
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
        if identity is not None:
            # The loop may end with this: nothing is to keep it.
            _followers.get(loop, {}).pop(identity, None)
