"""Strategies of hypothesis: what a model may reply. Needs the package `hypothesis`.

@given(st.lists(replies("react", tools), max_size=5))
def test_nothing_that_a_model_says_is_paid_twice(said): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from callslip._base.extras import needs
from callslip._base.options import check_flag
from callslip.errors import UsageError
from callslip.models import ModelReply
from callslip.protocols import Protocol, ProtocolName
from callslip.testing import faults
from callslip.testing._say import Say
from callslip.tools import Tool, Tools
from callslip.tools._toolbox import Toolbox

with needs("hypothesis"):
    from hypothesis import strategies as st

    from callslip.testing._arguments import arguments_of

__all__ = ["replies"]

_FAULTS: Final = (
    faults.cut,
    faults.duplicate_key,
    faults.empty,
    faults.invented_observation,
    faults.missing_argument,
    faults.prose_around,
    faults.two_moves,
    faults.unknown_tool,
    faults.wrong_type,
)


def replies(
    protocol: ProtocolName | Protocol, tools: Tools, *, broken: bool = True
) -> st.SearchStrategy[str | ModelReply]:
    """Return a strategy for one reply of a model.

    A reply calls a tool with arguments that its schema allows, or ends the run. Where `broken`
    allows it, some have a fault of `callslip.testing.faults`, and some are any text.

    Args:
        protocol: The protocol of the agent, or its name.
        tools: The tools, as for `Agent`.
        broken: Whether some replies break the protocol. Default: true.

    Raises:
        UsageError: There is no such protocol.
        ToolError: As for `Agent`.
    """
    say = Say(protocol)
    check_flag("broken", broken)
    answers = st.text(min_size=1).filter(str.strip)
    right = st.one_of(answers.map(say.finish), *(_calls(say, one) for one in Toolbox(tools)))
    if not broken:
        return right
    wrong = st.tuples(right, st.sampled_from(_FAULTS)).map(lambda drawn: _with_fault(*drawn, say))
    return st.one_of(right, wrong, st.text())


def _calls(say: Say, tool: Tool[..., Any]) -> st.SearchStrategy[str]:
    return arguments_of(tool).map(lambda arguments: say.call(tool.name, **arguments))


def _with_fault(reply: str, fault: Callable[[str, Say], object], say: Say) -> str | ModelReply:
    try:
        broken = fault(reply, say)
    except UsageError:
        # The reply has no place for it.
        return reply
    return broken if isinstance(broken, (str, ModelReply)) else str(broken)
