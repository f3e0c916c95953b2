"""The events of a run: each is read once from the log of the core."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from callslip.errors import UsageError
from callslip.events import Event, read_event

if TYPE_CHECKING:
    from callslip import _core
    from callslip.runs._messages import MessageCache
    from callslip.runs._ticket_cache import TicketCache

__all__ = ["LogCache", "Reads", "check_seq"]


_seq = attrgetter("seq")


class LogCache:
    """The log of a run as events. Any thread may read it, beside the driver.

    Args:
        core: The run.
        run_id: Its id.
    """

    __slots__ = ("_core", "_events", "_lock", "_run_id")

    def __init__(self, core: _core.Run, run_id: str) -> None:
        self._core = core
        self._run_id = run_id
        self._lock = threading.Lock()
        self._events: list[Event] = []

    def between(self, after: int = -1, before: int | None = None) -> list[Event]:
        """Return the events between two positions, neither of them included."""
        with self._lock:
            known = self._events
            if not known or known[-1].seq + 1 < self._core.event_count:
                first = known[-1].seq + 1 if known else 0
                records = self._core.records(first, texts=True)
                known += [read_event(text, self._run_id) for text in records]
            # The log of a compacted run begins later, or goes on later than it was read.
            end = len(known) if before is None else bisect_left(known, before, key=_seq)
            return known[bisect_right(known, after, key=_seq) : end]


class Reads(NamedTuple):
    """What was read of a run: each message, event and change of a ticket is read once."""

    messages: MessageCache
    tickets: TicketCache
    events: LogCache


def check_seq(name: str, seq: int, count: int) -> None:
    """Check a position in a log of so many events: -1 is before the first.

    Raises:
        UsageError: It is no number, or not in the log.
    """
    if isinstance(seq, bool) or not isinstance(seq, int):
        raise UsageError(f"expected {name}= as the seq of an event: got {seq!r}; pass event.seq")
    if not -1 <= seq < count:
        raise UsageError(
            f"expected {name}= as the seq of an event of this log, which has {count}: got {seq}; "
            "pass event.seq of one, or leave it out"
        )
