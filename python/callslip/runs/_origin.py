"""Whose data a run is, and what its caller calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from callslip.events import Compacted, RunStarted

if TYPE_CHECKING:
    from callslip.runs._run import Run

__all__ = ["Origin", "keep_origin", "origin_of"]

_SUBMITTED = "SELECT owner, submit_key FROM callslip.run WHERE id = $1"


class Origin(NamedTuple):
    """The owner and the key of a run, which never change."""

    owner: str | None = None
    key: str | None = None


_unbegun: WeakKeyDictionary[Run[Any], Origin] = WeakKeyDictionary()
"""The origins of runs of this process, which stand in their logs once they have begun."""


def origin_of(run: Run[Any]) -> Origin:
    """Return the owner and the key of a run, also of one that has not begun.

    Raises:
        StoreError: The store cannot be read.
    """
    if run._core.event_count:
        first = run._reads.events.between()[0]
        if isinstance(first, Compacted):
            return Origin(first.start.get("owner"), first.start.get("key"))
        assert isinstance(first, RunStarted)
        return Origin(first.owner, first.key)
    if (origin := _unbegun.get(run)) is not None:
        return origin
    if run._store is not None and run._store._shared is not None:
        # It waits in a queue, and has no log yet.
        for row in run._store.query(_SUBMITTED, [run.id]):
            return Origin(row["owner"], row["submit_key"])
    return Origin()


def keep_origin(run: Run[Any], owner: str | None, key: str | None) -> None:
    """Keep the owner and the key of a new run until it begins."""
    if owner is not None or key is not None:
        _unbegun[run] = Origin(owner, key)
