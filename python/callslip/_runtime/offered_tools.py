"""The tools that a request of a native run offers to the model."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from callslip.models._items import ToolChoice, ToolForm

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["OfferedTools"]

Mode: TypeAlias = Literal["auto", "required", "none"]


class OfferedTools:
    """The tools of one run. They are the same in each request, so that services cache them.

    Args:
        core: The run.
    """

    __slots__ = ("_choice", "_core", "_forms", "_options")

    def __init__(self, core: _core.Run) -> None:
        self._core = core
        self._forms: tuple[ToolForm, ...] | None = None
        # Most requests have the same choice as the one before.
        self._choice: tuple[Mode, str | None, bool] | None = None
        self._options: dict[str, object] = {}

    def options(self) -> dict[str, object]:
        """Return the keywords `tools` and `tool_choice` of the next request. Do not change them."""
        choice = self._core.tool_choice()
        if choice != self._choice:
            self._choice, self._options = choice, self._options_of(choice)
        return self._options

    def _options_of(self, choice: tuple[Mode, str | None, bool]) -> dict[str, object]:
        if self._forms is None:
            self._forms = _forms_of(self._core.tool_forms())
        mode, tool, parallel = choice
        offered = _choice_of(mode if self._forms else "none", tool, parallel)
        return {"tools": self._forms, "tool_choice": offered}


_choice_of = lru_cache(maxsize=64)(ToolChoice)


# The runs of one agent have the same tools.
@lru_cache(maxsize=64)
def _forms_of(text: str) -> tuple[ToolForm, ...]:
    return tuple(ToolForm(**form) for form in json.loads(text))
