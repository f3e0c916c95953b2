"""Observers of runs: each is passed the events of every run that is driven in this process."""

from __future__ import annotations

import sys
import threading

from callslip.runs._event_log import logger_if_heard
from callslip.runs._observer import Observer

__all__ = ["add_observer", "current_observers", "remove_observers"]


_added: tuple[Observer, ...] = ()
_adding = threading.Lock()


def add_observer(observer: Observer) -> None:
    """Have an observer receive the events of all runs that begin or continue from now on."""
    global _added  # noqa: PLW0603
    with _adding:
        _added = (*_added, observer)


def remove_observers(kind: type[Observer]) -> None:
    """Remove the observers of a class. Runs that are in progress keep theirs."""
    global _added  # noqa: PLW0603
    with _adding:
        _added = tuple(one for one in _added if not isinstance(one, kind))


def current_observers() -> tuple[Observer, ...]:
    """Return the observers of a run that is about to be driven."""
    # Without the module, no handler can have been configured.
    if "logging" not in sys.modules:
        return _added
    log = logger_if_heard()
    return _added if log is None else (log, *_added)
