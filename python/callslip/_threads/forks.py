"""Calls in forked children, where other threads and their locks are gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

__all__ = ["after_in_child"]


def after_in_child(function: Callable[[], object]) -> None:
    """Call a function in every forked child. Windows has none."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=function)
