"""Requests with tools, as turns of a text protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from callslip._base.options import check_flag, check_whole
from callslip._protocols import SERVED_PROTOCOLS
from callslip.agent._as_given import AsGiven, Given
from callslip.agent._one_turn import Ends, Ids, OneTurn
from callslip.agent._options import check_takes_tools
from callslip.agent._retold import Retold, read_out, retell
from callslip.agent._sent_tools import ANSWER_TOOL, SentTools
from callslip.agent._turn_agents import TurnAgents, with_model, with_options
from callslip.errors import UsageError
from callslip.models import Message, Messages, ToolChoice, ToolForm
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
    """Makes one turn of a protocol of each request, for `WithTools` and for the gateway.

    Args:
        model: The model. With the native protocol it takes tools, otherwise it writes text.
        protocol: The protocol: react, chatty or native.
        max_violations: As for `WithTools`.
        calls_first: As for `WithTools`.
        plain_answers: Whether plain text is an answer in react too, where the model has no grammar
            and may answer. Default: `False`.
        store: Keeps the run of each request. Default: no store.

    Raises:
        UsageError: An option has a wrong value, or the model takes no tools.
    """

    def __init__(
        self,
        model: ModelCall,
        protocol: Protocol | ProtocolName,
        *,
        max_violations: int,
        calls_first: bool,
        plain_answers: bool = False,
        store: TicketStore | None = None,
    ) -> None:
        chosen = find_protocol(protocol)
        self._is_native = chosen.native.takes_calls
        if not (chosen._retells or self._is_native):
            *others, last = map(repr, SERVED_PROTOCOLS)
            raise UsageError(
                f"expected protocol={', '.join(others)} or {last}: got {protocol!r}; pass "
                f"{SERVED_PROTOCOLS[0]!r} for one call in a reply, {SERVED_PROTOCOLS[1]!r} for "
                f"several, or {last} for a model that takes tools itself"
            )
        if chosen.examples is None and not self._is_native:
            # Models that are trusted with tools need no engine that makes calls of their text.
            chosen = replace(chosen, examples=True)
        check_whole("max_violations", max_violations, 0)
        check_flag("calls_first", calls_first)
        check_flag("plain_answers", plain_answers)
        if self._is_native:
            check_takes_tools(model, chosen)
        self._calls_first = calls_first
        self._plain_answers = plain_answers and chosen._answers_in_json
        self._model = model
        self._agents = TurnAgents(
            ModelCall(AsGiven(model, Given())) if self._is_native else model,
            chosen,
            max_violations,
            store,
        )

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
        turns = _turns(messages)
        if choice.tool is None and _repeats(turns):
            choice = _without_calls(choice, tools)
        results = any(isinstance(item, Result) for item in turns[-1].items)
        calls_first = self._calls_first and choice.mode != "none" and not results
        instructions = system_of(turns)
        agent, words = self._agents.find(tools, choice, instructions, calls_first=calls_first)
        agent = with_options(agent, options)
        told: list[Retold]
        if self._is_native:
            told = read_out(turns)
            named = _named(messages, words.tools)
            given = Given(named, len(told) + 1, _offered(words.tools, choice))
            agent = with_model(agent, ModelCall(AsGiven(self._model, given)))
        else:
            told = retell(turns, words)
        may_answer = choice.mode == "auto" and not calls_first
        ends = Ends(at_limit="max_tokens" in options, at_text=self._plain_answers and may_answer)
        return OneTurn(agent, words.tools, told, Ids(len(turns), _used(turns)), ends)

    def plain(self, messages: Messages, options: Mapping[str, Any]) -> OneTurn:
        """Return the turn of a request without tools: the model's text is the answer.

        Args:
            messages: The conversation, which the model receives as it is.
            options: As for `turn`.

        Raises:
            UsageError: The conversation does not end with the user.
        """
        turns = _turns(messages)
        told = read_out(turns)
        given = Given(messages, len(told) + 1, is_plain=True)
        agent = self._agents.for_text(ModelCall(AsGiven(self._model, given)))
        ends = Ends(is_plain=True)
        return OneTurn(with_options(agent, options), _NO_TOOLS, told, Ids(len(turns), set()), ends)

    def texts(self, messages: Messages, tools: Sequence[ToolForm], choice: ToolChoice) -> list[str]:
        """Return the texts of a request, to count their tokens.

        Args:
            messages: The conversation.
            tools: The tools; none for a request without.
            choice: The allowed calls.

        Raises:
            UsageError: As for `turn`, like the other exceptions.
        """
        if tools and not self._is_native:
            turn = self.turn(messages, tools, choice, {})
            return [turn.agent.system_prompt, *(told.said.text for told in turn.told)]
        turns = _turns(messages)
        told = read_out(turns)
        forms = [json.dumps([one.name, one.description, one.parameters]) for one in tools]
        return [system_of(turns), *forms, *(one.said.text for one in told)]


_NO_TOOLS = SentTools((), {})


def _turns(messages: Messages) -> list[Turn]:
    turns = turns_of(messages, _SERVICE)
    if not turns or turns[-1].role != "user":
        raise UsageError(
            "expected a message of the user at the end: got "
            f"{'one of the ' + turns[-1].role if turns else 'no message'}; pass the whole "
            "conversation up to the message to answer"
        )
    return turns


def _used(turns: Sequence[Turn]) -> set[str]:
    return {item.id for turn in turns for item in turn.items if isinstance(item, Call)}


def _named(messages: Messages, tools: SentTools) -> Messages:
    """Return a conversation in which tools have the names that the model reads."""
    others = {tool: name for tool, name in tools.names.items() if tool != name}
    if not others:
        return messages
    renamed: list[Message] = []
    for message in messages:
        items = message.get("items")
        if items is not None:
            rows = [
                {**item, "tool": others[item["tool"]]} if item.get("tool") in others else item
                for item in items
            ]
            message = {**message, "items": rows}  # noqa: PLW2901  # a copy: it is the client's
        renamed.append(message)
    return renamed


def _offered(
    tools: SentTools, choice: ToolChoice
) -> tuple[tuple[ToolForm, ...], ToolChoice] | None:
    """Return all tools where the run offers some of them, so that services find their cache."""
    if tools.answer is not None or (choice.mode != "none" and choice.tool is None):
        return None
    forms = tuple(replace(form, name=tools.names[form.name]) for form in tools.forms)
    tool = None if choice.tool is None else tools.names[choice.tool]
    return forms, replace(choice, tool=tool)


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
