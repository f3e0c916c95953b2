"""The import of the views of runs: most programs never need them, and their classes take time."""

from __future__ import annotations

from types import ModuleType

__all__ = ["import_views"]


def import_views() -> ModuleType:
    """Return the module of the views."""
    from callslip.runs import _views

    return _views
