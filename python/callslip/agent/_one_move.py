"""Agents for one move: a run ends at the first valid one, without a call of a tool."""

from __future__ import annotations

from typing import Any

from callslip.agent._agent import Agent
from callslip.agent._ends import Ends, Enough
from callslip.agent._roles import Waiting
from callslip.runs import Run, RunResult

__all__ = ["OneMoveAgent", "calls_of"]


class OneMoveAgent(Agent[Any]):
    """An agent for one move: a call is checked, and made by somebody else.

    A run ends with an answer, or with the first valid calls as its value. Tools without a function
    (`external=True`) are enough. References between calls, child runs, the search for tools and
    calls before the end of a reply are off.

    Raises:
        ToolError: The tools do not fit into the prompt; or as for `Agent`.
    """

    _ends_at_call = True
    _ends: Ends | None = None

    def _refuses_next(self, run: Run[Any]) -> Exception | None:
        """Return why the run ends before its model is asked again; `None` if it goes on."""
        if self._ends is None or not run._core.violations:
            return None
        ended = self._ends.before_next(self, run)
        return None if ended is None else Enough(ended)

    @property
    def _waits_for(self) -> Waiting:
        """No tools: no call is made."""
        return Waiting(None, None)


def calls_of(result: RunResult[Any]) -> list[dict[str, Any]] | None:
    """Return the checked calls with which a run has ended; `None` if it has an answer.

    Args:
        result: The result of a run of a `OneMoveAgent`, before that continues.

    Returns:
        For each call its `tool`, its `arguments`, its `id` if the model gave one (chatty), and
        `coerced`, the JSON pointers of the arguments that were read as another type, if any were.
    """
    ending = result.run._core.ending
    if ending is None or not ending.at_calls:
        return None
    calls: list[dict[str, Any]] = ending.value
    return calls
