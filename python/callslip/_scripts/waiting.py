"""The interpreters of scripts that wait: a process keeps so many of them and no more."""

from __future__ import annotations

import threading
from typing import Final, Protocol

__all__ = ["WAITING", "Droppable", "WaitingEngines"]


class Droppable(Protocol):
    """An interpreter that can be made again from the log of its run."""

    def drop(self) -> None:
        """End the interpreter, unless it is at work at this moment."""


class WaitingEngines:
    """The interpreters that wait. The one that has waited longest makes room for another.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._lock = threading.Lock()
        # In the order in which they began to wait.
        self._waiting: dict[Droppable, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, engine: Droppable) -> None:
        """Keep an interpreter that begins to wait, and end the oldest one if there are too many."""
        with self._lock:
            self._waiting[engine] = None
            oldest = next(iter(self._waiting)) if len(self._waiting) > self._most else None
            if oldest is not None:
                del self._waiting[oldest]
        if oldest is not None:
            oldest.drop()

    def remove(self, engine: Droppable) -> None:
        """Forget an interpreter that goes on or has ended."""
        with self._lock:
            self._waiting.pop(engine, None)


WAITING: Final = WaitingEngines()
"""The waiting interpreters of this process."""
