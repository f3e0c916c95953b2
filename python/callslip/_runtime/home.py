"""Where a run is driven, and whether nothing goes on there any more."""

from __future__ import annotations

import threading

from callslip._base import _lazy
from callslip._threads.current_loop import is_in_loop

__all__ = ["Home"]


class Home:
    """The event loop, or the thread, in which it is made."""

    __slots__ = ("_loop", "_thread")

    def __init__(self) -> None:
        self._thread = threading.current_thread()
        self._loop = _lazy.asyncio.get_running_loop() if is_in_loop() else None

    @property
    def is_here(self) -> bool:
        """Whether this event loop is the one that is running."""
        return is_in_loop() and self._loop is _lazy.asyncio.get_running_loop()

    @property
    def has_ended(self) -> bool:
        """Whether nothing goes on there any more: nobody has ended what the loop still had to do.

        A loop that was only stopped may be run again by its thread.
        """
        loop = self._loop
        if loop is not None and (loop.is_closed() or loop.is_running()):
            return loop.is_closed()
        return not self._thread.is_alive()
