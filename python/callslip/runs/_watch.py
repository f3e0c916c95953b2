"""Watching a run: from its log, then live."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Self

from callslip._threads.current_loop import check_loop
from callslip.errors import NoLease, RunCancelled, TakenOver, UsageError
from callslip.events import Event, Progress
from callslip.runs._ending import raise_failure
from callslip.runs._feed import feed_of, is_wanted, merged
from callslip.runs._followers import follow

if TYPE_CHECKING:
    from callslip.events import Delta
    from callslip.runs._followers import Followed
    from callslip.runs._recent import ReplyDeltas
    from callslip.runs._run import Run

__all__ = ["RunWatch"]


class RunWatch:
    """The events of a run, first those of its log, then as they happen. Made by `Run.watch`.

    Leaving the iteration ends the watching, and nothing else.

    Args:
        run: The run.
        after: The `seq` of the event to begin after; `None` for the beginning.
        children: Whether all events of child runs are told, and not only calls to approve.

    Raises:
        UsageError: The log has no such event.
    """

    def __init__(self, run: Run, *, after: int | None, children: bool) -> None:
        position = 0 if after is None else _position(run, after)
        self._run = run
        self._children = children
        self._feed = feed_of(run)
        needs_approval = run._agent is not None and run._agent._asks_for_approval is not None
        if children or needs_approval:
            self._feed.want_children()
        self._position = position
        # Tasks and threads that share it share its items.
        self._reading = threading.Lock()
        self._ready: deque[Event | Delta | Progress] = deque()
        self._reply: ReplyDeltas | None = None
        self._index = 0
        self._others_seen = self._feed.others_count
        self._began_over = run._core.ending is not None
        self._followed: Followed | None = None

    @property
    def run(self) -> Run:
        """The object of the run that is driven, or that follows what is written elsewhere."""
        return self._feed.run

    def __aiter__(self) -> Self:
        check_loop("asyncio.run, main()")
        return self

    async def __anext__(self) -> Event | Delta | Progress:
        feed = self._feed
        while True:
            with self._reading:
                version = feed.version
                if not self._ready:
                    self._read()
                if self._ready:
                    return self._ready.popleft()
                if self._is_over():
                    raise StopAsyncIteration
            store = self._run._store
            if store is not None and store._shared is not None and feed.run._driver is None:
                before, self._followed = self._followed, follow(self, feed, store)
                if self._followed is not before and self._followed.is_complete:
                    # Nothing may be told any more.
                    continue
            await feed.wait(version)

    def _read(self) -> None:
        """Take what is new: deltas of the reply, then the events that come after them."""
        feed = self._feed
        # Read before the deltas, which come before the event that ends their reply.
        published = feed.published
        if self._reply is None or self._index >= len(self._reply.deltas):
            following = feed.reply_at(self._position)
            if following is not None and following is not self._reply:
                self._reply, self._index = following, 0
        if (reply := self._reply) is not None and self._index < len(reply.deltas):
            deltas = reply.deltas[self._index :]
            self._index += len(deltas)
            self._ready += merged(deltas) if len(deltas) > 1 else deltas
            return
        for event in feed.events(self._position, published):
            self._ready.append(event)
            self._position = event.seq + 1
            if feed.reply_at(self._position) not in (None, self._reply):
                break
        if feed.others_count != self._others_seen:
            others, self._others_seen = feed.others_since(self._others_seen)
            self._ready += (
                item for item in others if is_wanted(item, self._run.id, children=self._children)
            )

    def _is_over(self) -> bool:
        """Whether nothing more comes.

        Raises:
            RunFailed: The run has failed.
            BaseException: Its driver has left it, because of this.
        """
        feed = self._feed
        run = feed.run
        if run._driver is not None:
            return False
        # Before it is looked whether there is something to read.
        has_all_below = self._has_all_below()
        # Another thread may have made the feed while the driver was leaving.
        feed.publish()
        if self._position < feed.published or feed.others_count != self._others_seen:
            return False
        is_stored = run._store is not None
        # It rests, or another process has it.
        goes_on = is_stored and isinstance(run._left, RunCancelled | TakenOver | NoLease)
        if run._left is not None and not goes_on:
            raise run._left
        # Another thread may continue the run at this very moment.
        if (ending := run._core.ending) is not None:
            # Not the store of the driver, which may be closed by now.
            store = self._run._store
            shared = None if store is None else store._shared
            # So may another process.
            if shared is not None and (
                not has_all_below or shared.has_more(run.id, run._core.event_count)
            ):
                return False
            raise_failure(run, ending, run._raised)
            return True
        if not is_stored:
            raise UsageError(
                "nothing works on this run: use agent.start(…) or agent.stream(…), or pass store=… "
                "to the agent and call agent.resume(…)"
            )
        return False

    def _has_all_below(self) -> bool:
        """Whether the events of child runs that other processes have driven are told."""
        is_complete = self._followed is not None and self._followed.is_complete
        return not self._children or self._began_over or is_complete


def _position(run: Run, after: int) -> int:
    if isinstance(after, bool) or not isinstance(after, int):
        raise UsageError(f"expected after= as the seq of an event: got {after!r}")
    count = run._core.event_count
    if not -1 <= after < count:
        raise UsageError(
            f"expected after= as the seq of an event of this log, which has {count}: got {after}"
        )
    return after + 1
