"""The tools that a request of a native run offers to the model."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Literal, TypeAlias

from callslip import _core
from callslip.models._items import ToolChoice, ToolForm

__all__ = ["OfferedTools"]

Mode: TypeAlias = Literal["auto", "required", "none"]


class OfferedTools:
    """The tools of one run. They are the same in each request, so that services cache them.

    Only `read_result` joins them, once a result of the run was cut.

    Args:
        core: The run.
    """

    __slots__ = ("_choice", "_core", "_forms", "_options", "_reads_results")

    def __init__(self, core: _core.Run) -> None:
        self._core = core
        self._forms: tuple[ToolForm, ...] | None = None
        self._reads_results = False
        # Most requests have the same choice as the one before.
        self._choice: tuple[Mode, str | None, bool] | None = None
        self._options: dict[str, object] = {}

    def options(self) -> dict[str, object]:
        """Return the keywords `tools` and `tool_choice` of the next request. Do not change them."""
        choice = self._core.tool_choice()
        if self._reads_results != _core.offers_read_result(self._core):
            self._reads_results, self._forms, self._choice = True, None, None
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
