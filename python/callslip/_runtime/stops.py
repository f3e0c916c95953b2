"""The two ways in which the sync driver stops waiting for another thread."""

from __future__ import annotations

__all__ = ["DeadlineReached", "Stopped"]


class DeadlineReached(Exception):  # noqa: N818
    """The run's time is over."""


class Stopped(Exception):  # noqa: N818
    """The run was ended from outside while the driver waited for another thread."""
