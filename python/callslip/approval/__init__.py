"""Approvers: functions that decide on calls, for `Agent.run(task, approve=…)`.

agent.run_sync("Pay the bills.", approve=at_terminal)

`view` returns a call as shown to a person, for your own interface:

    for ticket in run.awaiting_approval:
        for line in view(ticket).lines(width=80):
            print(line)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from callslip.approval._ask import at_terminal, in_notebook
from callslip.approval._view import CallRow, CallView, view

if TYPE_CHECKING:
    from callslip.runs import Ticket

__all__ = [
    "Answerer",
    "ApprovalDecision",
    "Approver",
    "CallRow",
    "CallView",
    "at_terminal",
    "in_notebook",
    "view",
]

ApprovalDecision: TypeAlias = "bool | str | Mapping[str, Any]"
"""The decision on a call.

`True` approves it, `False` denies it, text denies it with this reason for the model, and a mapping
approves it with these arguments.
"""

Approver: TypeAlias = "Callable[[Ticket], ApprovalDecision | Awaitable[ApprovalDecision]]"
"""Decides on a call that is awaiting approval. Sync or async.

If it has a parameter `problem`, it is called again for a mapping of arguments that the tool does
not take, with the problems as text.
"""

Answerer: TypeAlias = "Callable[[Ticket], Any]"
"""Answers a call with an external result. Sync, or an awaitable of the result.

It returns a value of the type in `Ticket.answers`, or raises `Fail` with a message for the model.
If it has a parameter `problem`, it is called again after a value of the wrong type, with the
problems as text.
"""
