"""Objects that tools keep for the length of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

__all__ = ["Resource", "Resources"]


class Resource(Protocol):
    """An object that is closed when the run is left, such as a session of scripts."""

    def close(self) -> None:
        """Close it. A second call does nothing."""


R = TypeVar("R", bound=Resource)


class Resources:
    """The resources of one run, by the tool that owns them."""

    __slots__ = ("_by_owner", "_is_closed", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._by_owner: dict[object, Resource] = {}
        self._is_closed = False

    def get(self, owner: object, make: Callable[[], R]) -> R | None:
        """Return the resource of an owner, made on first use; `None` once the run was left."""
        with self._lock:
            if self._is_closed:
                return None
            if owner not in self._by_owner:
                self._by_owner[owner] = make()
            return cast("R", self._by_owner[owner])

    def close(self) -> None:
        """Close all resources. No others are made afterwards."""
        with self._lock:
            self._is_closed = True
            resources, self._by_owner = self._by_owner, {}
        for resource in resources.values():
            resource.close()
