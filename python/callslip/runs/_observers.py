"""Observers of runs: each is passed the events of every run that is driven in this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from typing import Protocol as TypingProtocol

from callslip.runs._event_log import logger_if_heard

if TYPE_CHECKING:
    from callslip.events import Event
    from callslip.runs._run import Run

__all__ = ["Observer", "current_observers"]


class Observer(TypingProtocol):
    """A receiver of the events of a run, in the order of its log."""

    def on_event(self, run: Run, event: Event) -> None:
        """Receive an event that was added to the log.

        Args:
            run: The run. Its state may be ahead of the event.
            event: The event.
        """


def current_observers() -> tuple[Observer, ...]:
    """Return the observers of a run that is about to be driven."""
    # Without the module, no handler can have been configured.
    if "logging" not in sys.modules:
        return ()
    log = logger_if_heard()
    return () if log is None else (log,)
