"""Conversations that are handed over: the task of the new run, and what comes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip._runtime.calls import enclosing_session
from callslip.errors import UsageError
from callslip.limits import check_limits
from callslip.parts import Content
from callslip.runs import Run
from callslip.runs._conversation import check_message
from callslip.runs._told import last_said, told_conversation

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip.limits import Limits

__all__ = ["handed_over"]


def handed_over(
    agent: DrivenAgent, run: Run[Any], say: Content | None, limits: Limits | None
) -> tuple[Content, dict[str, Any]]:
    """Return the task of the new run, and what else `Agent.run` takes from the other one.

    Args:
        agent: The agent that takes over.
        run: The run that is handed over.
        say: The task; `None` for the last message of the user.
        limits: Those of the new run; `None` for those of the agent.

    Raises:
        UsageError: `run` is no `Run` or a script, or `say` is no message; or there is no last
            message.
    """
    if not isinstance(run, Run):
        raise UsageError(
            f"expected the run to hand over as a Run: got {type(run).__name__}; pass "
            "result.run, or store.run(run_id)"
        )
    if _core.script_printed(run._core) is not None:
        raise UsageError(
            f"expected the run of a model: got {run.id}, which is a script; pass the run above it"
        )
    if say is not None:
        check_message(say)
    bounds = agent._in_effect().limits if limits is None else check_limits(limits)
    task = last_said(run) if say is None else say
    # A run that begins inside a tool has the owner of the run that calls.
    owner = None if enclosing_session() is not None else run._core.owner
    return task, {"messages": told_conversation(run, bounds.result_bytes), "owner": owner}
