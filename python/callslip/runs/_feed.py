"""What happens in a run, for everyone who watches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from typing import TYPE_CHECKING
from typing import Protocol as TypingProtocol
from weakref import WeakValueDictionary

from callslip._base import _lazy
from callslip._core import Delta
from callslip.events import (
    ApprovalChecked,
    ArgumentsFilled,
    Event,
    Progress,
    TicketOpened,
    read_event,
)
from callslip.events._event import ticket_id
from callslip.runs._observers import current_observers
from callslip.runs._readers import Readers
from callslip.runs._recent import RecentReplies
from callslip.runs._runs_below import RunsBelow
from callslip.runs._wakers import Wakers

if TYPE_CHECKING:
    from callslip.runs._needs import StoreOfRun
    from callslip.runs._observer import Observer
    from callslip.runs._recent import ReplyDeltas
    from callslip.runs._run import Run

__all__ = [
    "DeltaFeed",
    "Feed",
    "FeedReader",
    "feed_of",
    "is_wanted",
    "merged",
    "read_deltas_alone",
    "take_over_feed",
    "tell_closed",
    "tell_deleted",
]

_RECENT = 512
"""Events that are kept as objects. Older ones are read from the log again."""

_feeds: WeakValueDictionary[tuple[str | int, str], Feed] = WeakValueDictionary()
"""The feeds of runs that stores keep, by store and id: several objects may be of one run."""

_feeds_lock = threading.Lock()


class FeedReader(TypingProtocol):
    """A reader that is passed everything at once, and that the run waits for."""

    def on_event(self, item: Event | Delta) -> None:
        """Take an event or a delta, in the thread of the driver."""

    def on_progress(self, progress: Progress) -> None:
        """Take a report of progress, in any thread."""

    async def backpressure(self) -> None:
        """Return once the reader has caught up."""


class Relaying(TypingProtocol):
    """Takes what the log does not have to other processes."""

    def put(self, run_id: str, item: Delta | Progress) -> None:
        """Take it, in any thread, without blocking."""


class Feed:
    """Tells watchers that there is news in a run, and keeps what the log does not have.

    Events are in the log, so a watcher reads them at its own pace, and a slow one holds up nobody.

    Args:
        run: The run.

    Attributes:
        run: The object of the run that is driven, or was driven last.
        published: How many events of the log were told of.
        reader: The reader that the run waits for; `None` without one.
        observers: The observers of the process, which are passed the events of the run.
        wants_children: Whether the events of child runs are told too.
        relay: Is passed what the log does not have; `None` without one.
        below: What is told of the runs below it.
        was_deleted: Whether the run was deleted before its end.
    """

    def __init__(self, run: Run) -> None:
        self.run: Run = run
        self.published: int = run._core.event_count
        self.reader: FeedReader | None = None
        self.observers: tuple[Observer, ...] = ()
        self._is_made_for_observers = False
        self.wants_children: bool = False
        self.relay: Relaying | None = None
        self.below: RunsBelow = RunsBelow()
        self.was_deleted: bool = False
        self._above: Feed | None = None
        # Watchers' threads may read the log too.
        self._publishing = threading.RLock()
        self._wakers = Wakers()
        self._recent: dict[int, Event] = {}
        self._replies = RecentReplies()

    @property
    def version(self) -> int:
        """Changes with everything that happens."""
        return self._wakers.version

    @property
    def readers(self) -> Readers:
        """Those who wait for the run, whom the failure of its driver is raised to."""
        return self._wakers.readers

    @property
    def is_for_observers(self) -> bool:
        """Whether it was made for observers, and no stream reads it."""
        return self._is_made_for_observers and self.reader is None

    def follow(self, run: Run) -> None:
        """Read the log of this object from now on: another driver takes over the run."""
        with self._publishing:
            self.run = run
            self.was_deleted = False

    def want_children(self) -> None:
        """Have the events of child runs told too, also of those that are in progress."""
        self.wants_children = True
        for child in self.run._children:
            feed_of(child).tell(self)

    def tell(self, above: Feed) -> None:
        """Tell the feed of the parent run too, whose driver drives this run."""
        self.relay = above.relay
        self.tell_events(above)

    def tell_events(self, above: Feed) -> None:
        """Tell the feed of the parent run too: all events if it is followed, or those from now on.

        Those that it was told before are not told again.
        """
        self._above = above
        above._add_below(self)
        self.want_children()
        above.on_news_below(self)

    def _add_below(self, below: Feed) -> None:
        self.below.add(below)
        if self._above is not None:
            self._above._add_below(below)

    def publish(self) -> None:
        """Tell of the events that are new in the log."""
        with self._publishing:
            core = self.run._core
            records = core.records(self.published, texts=True)
            for text in records:
                event = read_event(text, core.run_id)
                self._replies.on_event(event)
                self._recent[event.seq] = event
                self._recent.pop(event.seq - _RECENT, None)
                # A compacted log begins in the middle.
                self.published = event.seq + 1
                for observer in self.observers:
                    observer.on_event(self.run, event)
                if self.reader is not None:
                    self.reader.on_event(event)
            if records and self._above is not None:
                self._above.on_news_below(self)
        if records:
            self.notify()

    def on_delta(self, delta: Delta) -> None:
        """Tell of a part of a reply."""
        self._replies.on_delta(delta)
        if self.reader is not None:
            self.reader.on_event(delta)
        if self.relay is not None:
            self.relay.put(self.run.id, delta)
        self.notify()

    def on_news_below(self, below: Feed) -> None:
        """Tell of the events of a run below that were not told here."""
        self.below.take(below, self.reader)
        self.notify()
        if self._above is not None:
            self._above.on_news_below(below)

    def on_progress(self, progress: Progress) -> None:
        """Tell of the progress of a tool, from any thread."""
        if self.relay is not None and progress.run_id == self.run.id:
            self.relay.put(progress.run_id, progress)
        if self.reader is not None:
            self.reader.on_progress(progress)
        self.below.put(progress)
        self.notify()
        if self._above is not None:
            self._above.on_progress(progress)

    async def backpressure(self) -> None:
        """Wait for readers, also of the parent run, and let the watchers have their turn."""
        feed: Feed | None = self
        while feed is not None:
            if feed.reader is not None:
                await feed.reader.backpressure()
            feed = feed._above
        if self._wakers.take_woken():
            await _lazy.asyncio.sleep(0)

    def begin(self, at: float) -> str | None:
        """Tell observers that the run is about to begin.

        Returns:
            The trace that it begins in; `None` without one.
        """
        traces = [observer.on_start(self.run, at) for observer in self.observers]
        return next((trace for trace in traces if trace is not None), None)

    def leave(self) -> None:
        """Tell that the driver has left the run. A reply that is not complete is void."""
        self.publish()
        self._replies.drop_incomplete()
        for observer in self.observers:
            observer.on_left(self.run)
        self.notify()

    def enter_call(self, ticket: int) -> list[Callable[[], object]]:
        """Let observers prepare the context that a tool is about to run in.

        Returns:
            To be called when that context is left.
        """
        undo = (observer.enter_call(self.run, ticket_id(ticket)) for observer in self.observers)
        return [one for one in undo if one is not None]

    def events(self, position: int, published: int) -> list[Event]:
        """Return the events between two positions, or the first ones of them."""
        events = []
        while position < published and (event := self._recent.get(position)) is not None:
            events.append(event)
            position += 1
        if position < published and not events:
            texts = self.run._core.records(position, texts=True)[: published - position]
            events = [read_event(text, self.run.id) for text in texts]
        return events

    def events_from(self, position: int) -> Iterator[Event]:
        """Yield the events from a position on that were told of."""
        while position < self.published and (found := self.events(position, self.published)):
            yield from found
            position = found[-1].seq + 1

    def reply_at(self, position: int) -> ReplyDeltas | None:
        """Return the reply that arrived, or arrives, between this event and the one before."""
        return self._replies.at(position)

    def notify(self) -> None:
        """Wake all watchers that are waiting."""
        self._wakers.notify()

    async def wait(self, version: int) -> None:
        """Wait until something is newer than this version."""
        await self._wakers.wait(version)


class DeltaFeed(Feed):
    """The feed of a run that only one stream knows, and that wants deltas alone.

    Reading an event takes longer than many a whole run: that of the start has all tools.
    """

    def publish(self) -> None:
        """Tell that there are new events."""
        self.published = self.run._core.event_count
        self.notify()

    def on_delta(self, delta: Delta) -> None:
        """Tell of a part of a reply."""
        if self.reader is not None:
            self.reader.on_event(delta)


def read_deltas_alone(run: Run) -> None:
    """Let the stream of a new run receive no events, if nobody else can ask for them."""
    if run._feed is None and run._store is None:
        run._feed = DeltaFeed(run)


def is_wanted(item: Event | Delta | Progress, run_id: str, *, children: bool) -> bool:
    """Whether those who watch a run are told of this, which may be of one of its child runs.

    Args:
        item: The item.
        run_id: The id of the run.
        children: Whether they want to know of child runs more than calls that wait for somebody.
    """
    if children or isinstance(item, Delta) or item.run_id == run_id:
        return True
    if isinstance(item, Progress):
        return False
    if isinstance(item, TicketOpened) and item.external is not None:
        return True
    return (
        isinstance(item, TicketOpened | ArgumentsFilled | ApprovalChecked) and item.needs_approval
    )


def merged(deltas: list[Delta]) -> list[Delta]:
    """Return the deltas with parts of one text put together."""
    return [
        delta
        for (kind, call), group in groupby(enumerate(deltas), _text_of)
        for delta in _together(kind, call, [one for _, one in group])
    ]


def _text_of(numbered: tuple[int, Delta]) -> tuple[type[Delta], int | None]:
    number, delta = numbered
    kind = type(delta)
    if isinstance(delta, Delta.Arguments):
        return kind, delta.call
    # Parts that are no text stand alone.
    return kind, (None if hasattr(delta, "text") else number)


def _together(kind: type[Delta], call: int | None, group: list[Delta]) -> list[Delta]:
    if len(group) == 1:
        return group
    text = "".join(delta.text for delta in group)  # type: ignore[attr-defined]
    make: Callable[..., Delta] = kind
    turn = group[0].turn
    return [make(text, turn) if call is None else make(call, text, turn)]


def feed_of(run: Run) -> Feed:
    """Return the feed of a run, made if there is none yet."""
    with _feeds_lock:
        if run._feed is None:
            run._feed = _kept(run) or Feed(run)
            if run._store is not None:
                _feeds[_key(run)] = run._feed
        return run._feed


def take_over_feed(run: Run, published: int | None = None) -> None:
    """Pass a run that is to be driven the feed of those who watch another object of it.

    Args:
        run: The run.
        published: The number of events that observers have received. Default: all of the log.
    """
    if run._feed is None and run._store is not None and _feeds:
        with _feeds_lock:
            run._feed = _kept(run)
    observers = current_observers()
    if observers and run._feed is None:
        feed = feed_of(run)
        feed._is_made_for_observers = True
        if published is not None:
            feed.published = published
    if run._feed is not None:
        run._feed.follow(run)
        run._feed.observers = observers


def tell_deleted(store: StoreOfRun, run_ids: Collection[str]) -> None:
    """Tell those who watch these runs, or runs below them, that they were deleted."""
    with _feeds_lock:
        feeds = list(_feeds.items())
    for (identity, run_id), feed in feeds:
        is_below = any(run_id.startswith(f"{one}.T") for one in run_ids)
        if identity == store._identity and (is_below or run_id in run_ids):
            feed.was_deleted = True
            feed.notify()


def tell_closed(store: StoreOfRun) -> None:
    """Wake those who watch runs of a store that was closed."""
    with _feeds_lock:
        feeds = list(_feeds.items())
    for (identity, _), feed in feeds:
        if identity == store._identity:
            feed.notify()


def _kept(run: Run) -> Feed | None:
    kept = None if run._store is None else _feeds.get(_key(run))
    # Another run of the same id may have been imported since.
    return None if kept is None or kept.was_deleted else kept


def _key(run: Run) -> tuple[str | int, str]:
    store = run._store
    assert store is not None
    return store._identity, run.id
