"""The two ways in which the sync driver stops waiting for another thread.

No `Exception`, so that nothing takes them for a failure of a model or a tool.
"""

from __future__ import annotations

__all__ = ["DeadlineReached", "Stopped"]


class DeadlineReached(BaseException):
    """The run's time is over."""


class Stopped(BaseException):
    """The run was ended from outside while the driver waited for another thread."""
