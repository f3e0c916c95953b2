"""The latest parts of a run that its log does not have: deltas, and events of child runs."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, NamedTuple, TypeVar

from callslip._core import Delta
from callslip.events import Event, ModelAsked, ModelAttemptFailed, ModelReplied, Noted, RunFinished

__all__ = ["RecentItems", "RecentReplies", "ReplyDeltas", "Since"]

_REPLIES = 8
"""Replies whose deltas are kept."""

T = TypeVar("T")


class ReplyDeltas:
    """The deltas of one reply.

    Attributes:
        begin: The position in the log at which the reply began to arrive.
        deltas: Its deltas so far.
    """

    __slots__ = ("begin", "deltas")

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.deltas: list[Delta] = []


class RecentReplies:
    """The deltas of the latest replies, and of the one that is arriving."""

    __slots__ = ("_arriving", "_replies")

    def __init__(self) -> None:
        self._replies: dict[int, ReplyDeltas] = {}
        self._arriving: ReplyDeltas | None = None

    def on_event(self, event: Event) -> None:
        """Begin or end a reply where an event of the log does."""
        if isinstance(event, ModelReplied | ModelAttemptFailed | RunFinished):
            self._arriving = None
        is_resumed = isinstance(event, Noted) and event.note == "resumed"
        if isinstance(event, ModelAsked | ModelAttemptFailed) or is_resumed:
            begin = event.seq + 1
            self._arriving = self._replies[begin] = ReplyDeltas(begin)
            while len(self._replies) > _REPLIES:
                del self._replies[next(iter(self._replies))]

    def on_delta(self, delta: Delta) -> None:
        """Add a delta to the reply that is arriving."""
        if self._arriving is not None:
            self._arriving.deltas.append(delta)

    def drop_incomplete(self) -> None:
        """Remove the reply that is arriving: it is void."""
        if self._arriving is not None:
            del self._replies[self._arriving.begin]
            self._arriving = None

    def at(self, position: int) -> ReplyDeltas | None:
        """Return the reply that arrived, or arrives, between this event and the one before."""
        reply = self._replies.get(position)
        live = self._arriving
        if reply is None and live is not None and live.begin <= position:
            # Events of calls that start early stand within the reply.
            return live
        return reply


class Since(NamedTuple, Generic[T]):
    """The latest items of a sequence.

    Attributes:
        items: Those that are kept.
        total: How many there were in all.
        has_dropped: Whether others before them are not kept.
    """

    items: list[T]
    total: int
    has_dropped: bool


class RecentItems(Generic[T]):
    """The latest items of a sequence, and how many there were. Any thread may use it.

    Args:
        limit: The number of items that are kept.
    """

    __slots__ = ("_items", "_lock", "count")

    def __init__(self, limit: int) -> None:
        self._items: deque[T] = deque(maxlen=limit)
        self._lock = threading.Lock()
        self.count = 0

    def append(self, item: T) -> None:
        """Add an item."""
        with self._lock:
            self._items.append(item)
            self.count += 1

    def since(self, count: int) -> Since[T]:
        """Return the kept items that came after so many, and how many there are now."""
        with self._lock:
            new = min(self.count - count, len(self._items))
            items = list(self._items)[len(self._items) - new :]
            return Since(items, self.count, self.count - count > new)
