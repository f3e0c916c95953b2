"""A model behind the gateway: its line, and how it answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from callslip.agent._one_turn import OneTurn, TurnReply
from callslip.agent._sent_tools import ANSWER_TOOL
from callslip.agent._turn_changes import Changes, changes_of
from callslip.agent._turn_engine import TurnEngine
from callslip.events import Delta
from callslip.gateway._asked import Answered, Asked, Piece, answer_form
from callslip.gateway._line import Line
from callslip.gateway._live import LiveText
from callslip.gateway._refused import Refused
from callslip.models import Message, ModelReply, ToolChoice, ToolForm
from callslip.models._call import ModelCall
from callslip.models._context import estimate
from callslip.models._items import CallItem, FaultItem, TextItem
from callslip.models._token_counts import read_usage

__all__ = ["Served"]


@dataclass(frozen=True, slots=True)
class Served:
    """A model with its name.

    Attributes:
        name: The name for clients.
        call: The model.
        engine: Makes turns of requests with tools.
        line: The requests that wait for it.
        is_live: Whether answers may be sent before their end.
        is_verbose: Whether clients and the log receive repairs and violations.
    """

    name: str
    call: ModelCall
    engine: TurnEngine
    line: Line
    is_live: bool
    is_verbose: bool = False

    async def answer(self, asked: Asked) -> AsyncGenerator[Piece | Answered]:
        """Yield the pieces of an answer, and its end. Leaving early stops the model.

        Raises:
            Refused: The request can't be served, or no reply of the model was valid.
            Exception: The model failed.
        """
        self._check_parts(asked.messages)
        pieces = self._pieces(*self._turn(asked), asked)
        async with self.line.turn(), aclosing(pieces):
            async for piece in pieces:
                yield piece

    def count(self, asked: Asked) -> int:
        """Return the number of tokens of the prompt. Blocks while the model counts.

        Raises:
            Refused: The request can't be served.
        """
        count = self.call.count_tokens or estimate
        tools, choice = _with_tools(asked) or ((), ToolChoice("none"))
        return sum(map(count, self.engine.texts(asked.messages, tools, choice)))

    def _turn(self, asked: Asked) -> tuple[OneTurn, Sequence[str]]:
        """Return the turn of a request, and the stop sequences of its answer.

        Raises:
            Refused: The tools can't be used.
        """
        options = {k: v for k, v in asked.options.items() if k in self.call.accepts}
        stop = asked.options.get("stop", ())
        request = _with_tools(asked)
        if request is None:
            # A model that takes no stop sequences writes past them.
            cut = () if "stop" in options else stop
            return self.engine.plain(asked.messages, options), cut
        # In the reply of a protocol, a stop sequence would cut the form.
        options.pop("stop", None)
        return self.engine.turn(asked.messages, *request, options), stop

    async def _pieces(
        self, turn: OneTurn, stop: Sequence[str], asked: Asked
    ) -> AsyncGenerator[Piece | Answered]:
        is_plain = turn.ends.is_plain
        is_live = asked.is_streamed and not stop and turn.is_live and (self.is_live or is_plain)
        live = LiveText(is_on=is_live, lag=0) if is_plain else LiveText(is_on=is_live)
        reasoning: list[str] = []
        events = turn.stream()
        async with aclosing(events):
            async for event in events:
                if isinstance(event, TurnReply):
                    ended = _ended(event.reply, asked, stop)
                    yield replace(
                        ended,
                        rest=live.rest(ended.text),
                        reasoning="".join(reasoning),
                        attempts=event.attempts,
                        changes=changes_of(event.run) if self.is_verbose else Changes(),
                    )
                elif isinstance(event, Delta.Reasoning):
                    reasoning.append(event.text)
                    yield Piece(reasoning=event.text)
                elif isinstance(event, Delta.Answer) or (
                    is_plain and isinstance(event, Delta.Text)
                ):
                    piece = live.add(event.text, event.turn)
                    if piece:
                        yield Piece(piece)

    def _check_parts(self, messages: Sequence[Message]) -> None:
        for message in messages:
            for part in message.get("parts", ()):
                if part.kind not in self.call.parts:
                    raise Refused(
                        400,
                        f"expected text alone: got a part of the kind {part.kind}, which the model "
                        f"{self.name} does not take; leave it out",
                        param="messages",
                    )


def _with_tools(asked: Asked) -> tuple[tuple[ToolForm, ...], ToolChoice] | None:
    """Return the tools of a request, with one for a typed answer; `None` for plain text.

    Raises:
        Refused: The tools can't be used.
    """
    tools, choice = asked.tools, asked.choice
    if not tools:
        if choice.mode == "required":
            raise Refused(
                400,
                "expected tools for a choice that requires a call: got none that can be called; "
                "pass functions as tools, or leave tool_choice out",
                param="tool_choice",
            )
        # Earlier calls and results keep the form in which the model wrote them.
        tools = _called(asked.messages)
        choice = ToolChoice("none")
    must_call = choice.mode == "required"
    if asked.schema is not None and not must_call:
        _check_no_answer_tool(tools)
        only = ANSWER_TOOL if choice.mode == "none" or not asked.tools else None
        tools = (*tools, answer_form(asked.schema))
        choice = ToolChoice("required", only, choice.parallel)
    if not tools:
        return None
    return tools, choice


def _check_no_answer_tool(tools: Sequence[ToolForm]) -> None:
    if any(form.name == ANSWER_TOOL for form in tools):
        raise Refused(
            400,
            f"expected other names of tools beside a schema of the answer: got {ANSWER_TOOL}; use "
            "another name",
            param="tools",
        )


def _called(messages: Sequence[Message]) -> tuple[ToolForm, ...]:
    items = (item for message in messages for item in message.get("items", ()))
    names = dict.fromkeys(item["tool"] for item in items if "call" in item)
    return tuple(ToolForm(name, "", {"type": "object"}) for name in names)


def _ended(reply: ModelReply, asked: Asked, stop: Sequence[str]) -> Answered:
    """Return the end of an answer, from the reply of a turn.

    Raises:
        Refused: No reply was valid.
    """
    counts: Mapping[str, Any] = read_usage(reply.usage) or {}
    fault = next((one for one in reply.items if isinstance(one, FaultItem)), None)
    if fault is not None:
        raise Refused(
            422,
            f"expected a reply that follows the protocol from the model: {fault.message}",
            "invalid_model_output",
        )
    calls = tuple(one for one in reply.items if isinstance(one, CallItem))
    text = "\n\n".join(one.text for one in reply.items if isinstance(one, TextItem))
    if asked.schema is not None and calls and calls[0].tool == ANSWER_TOOL:
        value = json.loads(calls[0].arguments)["answer"]
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return Answered(written, counts=counts)
    if calls:
        # The protocols for text have no way to ask for one call alone.
        made = calls if asked.choice.parallel else calls[:1]
        return Answered(text, calls=made, counts=counts)
    before, stopped_at = _cut(text, stop)
    is_cut = reply.finish_reason == "length" and stopped_at is None
    return Answered(before, counts=counts, is_cut=is_cut, stopped_at=stopped_at)


def _cut(text: str, stop: Sequence[str]) -> tuple[str, str | None]:
    """Return the text before the first stop sequence, and that sequence."""
    found = [(at, one) for one in stop if (at := text.find(one)) >= 0]
    if not found:
        return text, None
    at, first = min(found)
    return text[:at], first
