"""What is told of the runs below another one: each event once, whoever drives them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from callslip.events import Event, Progress, read_event
from callslip.runs._recent import RecentItems, Since

if TYPE_CHECKING:
    from callslip.runs._feed import Feed, FeedReader
    from callslip.runs._run import Run

__all__ = ["RunsBelow"]

_RECENT = 1024
"""Events of runs below, and reports of progress, that are kept for slow watchers."""


class _Below:
    """A run below, as far as it is told.

    Args:
        run: The run.
        begin: The position of the first event that is told.

    Attributes:
        told: The position of the next event that is told.
    """

    __slots__ = ("begin", "run", "told")

    def __init__(self, run: Run, begin: int) -> None:
        self.run = run
        self.begin = self.told = begin


class RunsBelow:
    """The runs below the run of a feed. Each may be driven here and elsewhere in turn.

    Attributes:
        is_followed: Whether what other processes write is told, with all events of new runs.
        feeds: The feeds of the runs that the store has, by their ids, where it is followed.
    """

    __slots__ = ("_lock", "_recent", "_runs", "feeds", "is_followed")

    def __init__(self) -> None:
        self.is_followed: bool = False
        self.feeds: dict[str, Feed] = {}
        # Drivers, followers and watchers tell of the same run, in different threads.
        self._lock = threading.Lock()
        self._runs: dict[str, _Below] = {}
        self._recent: RecentItems[Event | Progress] = RecentItems(_RECENT)

    @property
    def count(self) -> int:
        """How many events and reports of progress there were."""
        return self._recent.count

    def add(self, below: Feed) -> None:
        """Have a run told: from its beginning if it is followed, or from now on."""
        with self._lock:
            if below.run.id not in self._runs:
                begin = 0 if self.is_followed else below.published
                self._runs[below.run.id] = _Below(below.run, begin)

    def take(self, below: Feed, reader: FeedReader | None) -> None:
        """Tell the events of a run that were not told."""
        with self._lock:
            # A run above it may be linked at this very moment.
            if (known := self._runs.get(below.run.id)) is None:
                return
            known.run = below.run
            for event in below.events_from(known.told):
                if reader is not None:
                    reader.on_event(event)
                self._recent.append(event)
                known.told = event.seq + 1

    def put(self, progress: Progress) -> None:
        """Tell of the progress of a tool."""
        self._recent.append(progress)

    def since(self, count: int) -> Since[Event | Progress]:
        """Return what came after so many, as far as it is kept."""
        return self._recent.since(count)

    def now(self) -> tuple[int, dict[str, int]]:
        """Return how many there were, and how far the runs are told, by their ids."""
        with self._lock:
            return self._recent.count, {run_id: one.told for run_id, one in self._runs.items()}

    def events(self, positions: Mapping[str, int]) -> list[Event]:
        """Return the events that were told, from the logs of the runs.

        Args:
            positions: Where to begin, by the ids of the runs. Default: all that were told.
        """
        with self._lock:
            known = {run_id: (one.run, one.begin, one.told) for run_id, one in self._runs.items()}
        return [
            event
            for run_id, (run, begin, told) in known.items()
            for text in run._core.records(positions.get(run_id, begin), texts=True)
            if (event := read_event(text, run_id)).seq < told
        ]
