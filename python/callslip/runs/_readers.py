"""Those who wait for a run, and whom the failure of its driver is raised to."""

from __future__ import annotations

import threading

__all__ = ["Readers"]


class Readers:
    """Those who wait for a run. Each of them enters it while waiting.

    Attributes:
        has_raised: Whether one of them was raised a failure.
    """

    __slots__ = ("_count", "_lock", "has_raised")

    def __init__(self) -> None:
        self.has_raised = False
        self._lock = threading.Lock()
        self._count = 0

    @property
    def are_there(self) -> bool:
        """Whether a failure is raised to one of them, or was."""
        return self.has_raised or self._count > 0

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._count -= 1
            # One that is cancelled has learned nothing.
            if kind is not None and issubclass(kind, Exception):
                self.has_raised = True
