"""The tools that a request of a native run offers to the model."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from callslip.models._items import ToolChoice, ToolForm

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["OfferedTools"]


class OfferedTools:
    """The tools of one run. They are the same in each request, so that services cache them.

    Args:
        core: The run.
    """

    __slots__ = ("_core", "_forms")

    def __init__(self, core: _core.Run) -> None:
        self._core = core
        self._forms: tuple[ToolForm, ...] | None = None

    def options(self) -> dict[str, object]:
        """Return the keywords `tools` and `tool_choice` of the next request."""
        if self._forms is None:
            self._forms = _forms_of(self._core.tool_forms())
        mode, tool, parallel = self._core.tool_choice()
        if not self._forms:
            mode = "none"
        return {"tools": self._forms, "tool_choice": _choice_of(mode, tool, parallel)}


# Most requests have the same choice as the one before.
_choice_of = lru_cache(maxsize=64)(ToolChoice)


# The runs of one agent have the same tools.
@lru_cache(maxsize=64)
def _forms_of(text: str) -> tuple[ToolForm, ...]:
    return tuple(ToolForm(**form) for form in json.loads(text))
