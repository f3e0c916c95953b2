"""Requests with tools, as turns of a text protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callslip._base.options import check_flag, check_whole
from callslip.agent._one_turn import Ids, OneTurn
from callslip.agent._retold import retell
from callslip.agent._sent_tools import ANSWER_TOOL
from callslip.agent._turn_agents import TurnAgents, with_options
from callslip.errors import UsageError
from callslip.models import Messages, ToolChoice, ToolForm
from callslip.models._call import ModelCall
from callslip.models.native._turns import Call, Result, Turn, system_of, turns_of
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.store import TicketStore

__all__ = ["TurnEngine"]

_SERVICE = "callslip"
_SAME = 3
"""After so many equal calls with equal results in a row, only an answer may come."""
_NOTE = "\n(note: this is the same call with the same result as before"
"""How the note begins that a run puts behind such a result."""


class TurnEngine:
    """Makes one turn of a text protocol of each request, for `WithTools` and for the gateway.

    Args:
        model: The model that writes text.
        protocol: As for `WithTools`.
        max_violations: As for `WithTools`.
        calls_first: As for `WithTools`.
        store: Keeps the run of each request. Default: no store.

    Raises:
        UsageError: An option has a wrong value.
    """

    def __init__(
        self,
        model: ModelCall,
        protocol: Protocol | ProtocolName,
        *,
        max_violations: int,
        calls_first: bool,
        store: TicketStore | None = None,
    ) -> None:
        chosen = find_protocol(protocol)
        if not chosen._retells:
            raise UsageError(
                f"expected protocol='react' or 'chatty' for WithTools: got {protocol!r}; use "
                "'react' for one call in a reply, 'chatty' for several"
            )
        check_whole("max_violations", max_violations, 0)
        check_flag("calls_first", calls_first)
        self._calls_first = calls_first
        self._agents = TurnAgents(model, chosen, max_violations, store)

    def turn(
        self,
        messages: Messages,
        tools: Sequence[ToolForm],
        choice: ToolChoice,
        options: Mapping[str, Any],
    ) -> OneTurn:
        """Return the turn that answers the last message.

        Args:
            messages: The conversation, as a native run has it.
            tools: The tools. The same tuple in a later request is found faster.
            choice: The allowed calls.
            options: `stop`, `seed` and `max_tokens` for the model.

        Raises:
            UsageError: The conversation does not end with the user, the choice names another tool,
                or a schema cannot be used.
            ToolError: The tools do not fit into the prompt, or share a name.
        """
        turns = turns_of(messages, _SERVICE)
        if not turns or turns[-1].role != "user":
            raise UsageError(
                "expected a message of the user at the end: got "
                f"{'one of the ' + turns[-1].role if turns else 'no message'}; pass the whole "
                "conversation up to the message to answer"
            )
        if choice.tool is None and _repeats(turns):
            choice = _without_calls(choice, tools)
        results = any(isinstance(item, Result) for item in turns[-1].items)
        calls_first = self._calls_first and choice.mode != "none" and not results
        instructions = system_of(turns)
        agent, words = self._agents.find(tools, choice, instructions, calls_first=calls_first)
        used = {item.id for turn in turns for item in turn.items if isinstance(item, Call)}
        return OneTurn(
            with_options(agent, options),
            words.tools,
            retell(turns, words),
            Ids(len(turns), used),
        )


def _without_calls(choice: ToolChoice, tools: Sequence[ToolForm]) -> ToolChoice:
    """Return a choice that leaves the answer alone, if this one admits an answer."""
    if choice.mode == "auto":
        return ToolChoice("none")
    has_answer = any(form.name == ANSWER_TOOL for form in tools)
    return ToolChoice("required", ANSWER_TOOL) if has_answer else choice


def _repeats(turns: Sequence[Turn]) -> bool:
    """Whether a conversation ends with the same call again and again, with the same result."""
    last: tuple[Any, ...] | None = None
    count = 0
    for at in range(len(turns) - 1, 0, -2):
        results = [item for item in turns[at].items if isinstance(item, Result)]
        calls = [item for item in turns[at - 1].items if isinstance(item, Call)]
        if len(results) != 1 or len(calls) != 1:
            return False
        content = results[0].content.partition(_NOTE)[0]
        pair = (calls[0].tool, calls[0].object, content)
        if last is not None and pair != last:
            return False
        last, count = pair, count + 1
        if count == _SAME:
            return True
    return False
