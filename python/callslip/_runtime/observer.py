"""The reader of a run that is being streamed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from callslip._core import Delta
from callslip.events import Event, Progress

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Observer"]

OnEvent: TypeAlias = Callable[[Event | Delta], None]


class Observer:
    """Receives the events of a run as they happen, and can slow the run down.

    Args:
        on_event: Called with each event and each delta, in the thread of the driver.
        on_progress: Called with each report of progress, in any thread.
        backpressure: Awaited before further commands are performed; returns once the reader has
            caught up.
        children: Whether child runs are observed too.
        published: How many events of the log are not passed on, because they are older.
    """

    __slots__ = ("_on_event", "backpressure", "children", "on_progress", "published")

    def __init__(
        self,
        *,
        on_event: OnEvent,
        on_progress: Callable[[Progress], None],
        backpressure: Callable[[], Awaitable[None]],
        children: bool,
        published: int,
    ) -> None:
        self._on_event = on_event
        self.on_progress: Callable[[Progress], None] = on_progress
        self.backpressure: Callable[[], Awaitable[None]] = backpressure
        self.children: bool = children
        self.published: int = published

    def for_child(self, core: _core.Run) -> Observer:
        """Return the observer of a child run, which gets its events but no deltas."""
        return Observer(
            on_event=self._on_event_of_child,
            on_progress=self.on_progress,
            backpressure=self.backpressure,
            children=True,
            published=core.event_count,
        )

    def publish(self, core: _core.Run) -> None:
        """Pass on the events that are new in the log."""
        for text in core.records(self.published):
            self.published += 1
            self._on_event(Event.from_json(text, core.run_id))

    def mute(self) -> None:
        """Pass nothing on any more: another observer of the run has taken over."""
        self._on_event = _ignore

    def on_delta(self, delta: Delta) -> None:
        """Pass on a part of a reply."""
        self._on_event(delta)

    def _on_event_of_child(self, item: Event | Delta) -> None:
        if isinstance(item, Event):
            self._on_event(item)


def _ignore(_: Event | Delta) -> None:
    pass
