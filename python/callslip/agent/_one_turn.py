"""One request with tools to a model that writes text: a run that ends at its first valid move."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from callslip._base.usage import Usage
from callslip.agent._agent import Agent
from callslip.agent._ends import Ended, Ends, Enough
from callslip.agent._one_move import OneMoveAgent, calls_of
from callslip.agent._retold import Retold
from callslip.agent._sent_tools import ANSWER_TOOL, SentTools
from callslip.errors import CallslipError, ModelError, ProtocolError
from callslip.events import Delta, Moved, read_event
from callslip.models import ModelReply
from callslip.models._items import CallItem, FaultItem, Item, TextItem
from callslip.models.native._turns import made_id
from callslip.protocols import Protocol
from callslip.runs import Run, RunResult
from callslip.runs._feed import read_deltas_alone
from callslip.tools._context import enclosing_call

__all__ = ["Ends", "Ids", "OneTurn", "TurnReply"]


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of the calls of one reply: they depend on the place in the conversation alone."""

    turn: int
    used: set[str]

    def make(self, count: int) -> list[str]:
        """Return new ids for the calls of one reply."""
        ids: list[str] = []
        at = 0
        while len(ids) < count:
            name = made_id(self.turn, at)
            at += 1
            if name not in self.used:
                ids.append(name)
        return ids


class TurnReply(NamedTuple):
    """The reply of a turn, and its run.

    Attributes:
        reply: The reply. Its finish reason is `"length"` if it was cut.
        run: The run.
    """

    reply: ModelReply
    run: Run[Any]

    @property
    def attempts(self) -> int:
        """The replies that the model has written."""
        is_refused = isinstance(self.run._raised, Enough)
        return self.run.turns - is_refused


@dataclass(frozen=True, slots=True)
class OneTurn:
    """One request: a run that ends at its first valid move.

    Attributes:
        agent: The agent of the run, a `OneMoveAgent`.
        tools: The tools of the request.
        told: The conversation in the form of the protocol.
        ids: The ids of new calls.
        ends: The replies that end it without a valid move.
    """

    agent: Agent[Any]
    tools: SentTools
    told: list[Retold]
    ids: Ids
    ends: Ends

    @property
    def is_live(self) -> bool:
        """Whether the beginning of an answer in text can be shown before its end.

        A grammar holds the model to the protocol, so that no later violation is likely.
        """
        if self.ends.is_plain:
            return True
        return "grammar" in self.agent._options and self.tools.answer is None

    def ask(self) -> ModelReply:
        """Return the reply, in this thread."""
        with _apart():
            try:
                task, earlier = self._content()
                return self._reply(self.agent.run_sync(task, messages=earlier))
            except CallslipError as error:
                return self._failed(error)

    async def ask_on_loop(self) -> ModelReply:
        """Return the reply, on an event loop."""
        with _apart():
            try:
                task, earlier = self._content()
                return self._reply(await self.agent.run(task, messages=earlier))
            except CallslipError as error:
                return self._failed(error)

    async def stream(self) -> AsyncGenerator[Delta | TurnReply]:
        """Yield the deltas of all attempts, and then the reply. Leaving early cancels the run.

        Raises:
            Exception: The model failed, or the request can't be made.
        """
        task, earlier = self._content()
        agent = self.agent
        if self.ends.at_limit or self.ends.at_text:
            twin = copy(agent)
            assert isinstance(twin, OneMoveAgent)
            twin._ends = self.ends
            agent = twin
        stream = agent.stream(task, messages=earlier)
        read_deltas_alone(stream.run)
        try:
            async with stream:
                async for item in stream:
                    if isinstance(item, Delta):
                        yield item
            reply = self._reply(stream.result)
        except CallslipError as error:
            ended = self._ended(error)
            reply = self._failed(error) if ended is None else _text_reply(ended, stream.run)
        yield TurnReply(reply, stream.run)

    def _content(self) -> tuple[Any, list[dict[str, Any]]]:
        *earlier, last = self.told
        return last.said, [{"role": one.role, "content": one.said} for one in earlier]

    def _reply(self, result: RunResult[Any]) -> ModelReply:
        items: list[Item] = []
        made = calls_of(result)
        if made is not None:
            text = _text_before(result.run, self.agent.protocol)
            items = [TextItem(text)] if text else []
            for at, (call, own) in enumerate(zip(made, self.ids.make(len(made)), strict=True)):
                tool = self.tools.own_name(call["tool"])
                items.append(_call(at, own, tool, call["arguments"]))
        elif self.tools.answer is not None:
            (own,) = self.ids.make(1)
            items.append(_call(0, own, ANSWER_TOOL, self.tools.answer_arguments(result.value)))
        else:
            items.append(TextItem(result.value))
        return ModelReply("", "stop", _counts(result.run), items=tuple(items))

    def _ended(self, error: CallslipError) -> Ended | None:
        """Return the end of a turn without a valid move; `None` for a failure."""
        run = getattr(error, "run", None)
        if not isinstance(run, Run):
            return None
        if isinstance(run._raised, Enough):
            return run._raised.ended
        return self.ends.at_end(self.agent, run) if isinstance(error, ProtocolError) else None

    def _failed(self, error: CallslipError) -> ModelReply:
        """Return the fault of a model that gave no valid reply.

        Raises:
            Exception: The model failed, or the request can't be made.
        """
        run = getattr(error, "run", None)
        if isinstance(error, ProtocolError) and isinstance(run, Run):
            ending = run._core.ending
            assert ending is not None
            raw = _last_reply(run)
            fault = FaultItem(ending.error or str(error), raw)
            return ModelReply("", "stop", _counts(run), items=(fault,))
        raised = run._raised if isinstance(run, Run) else None
        if isinstance(error, ModelError) and raised is not None and raised is not error:
            raise raised
        if run is not None and hasattr(error, "run"):
            # The run that asked is not this one.
            error.run = None
        raise error


def _text_reply(ended: Ended, run: Run[Any]) -> ModelReply:
    return ModelReply("", ended.reason, _counts(run), items=(TextItem(ended.text),))


def _call(at: int, own: str, tool: str, arguments: Any) -> CallItem:
    written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return CallItem(at, own, tool, written, is_whole=True)


def _counts(run: Run[Any]) -> dict[str, float] | None:
    """Return the usage of all replies; `None` if the model reports none."""
    usage = Usage._from_core(run._core.turn_usage)
    counts: dict[str, float] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
    }
    if usage.cost:
        counts["cost"] = usage.cost
    return counts if any(counts.values()) else None


def _text_before(run: Run[Any], protocol: Protocol) -> str:
    """Return the text before the calls of a run that has ended at them."""
    if not protocol._tells_before_calls:
        return ""
    core = run._core
    # The move is the last event before the end.
    for record in core.records(max(1, core.event_count - 2), texts=True):
        if '"moved"' in record:
            event = read_event(record, run.id)
            if isinstance(event, Moved):
                return event.narration or ""
    return ""


def _last_reply(run: Run[Any]) -> str:
    replies = (one["content"] for one in reversed(run.messages) if one["role"] == "assistant")
    return next(replies, "")


@contextmanager
def _apart() -> Iterator[None]:
    """Begin runs that belong to no call of a tool, even if this model answers in one."""
    token = enclosing_call.set(None)
    try:
        yield
    finally:
        # A coroutine that is never closed properly is collected in another context.
        with suppress(ValueError):
            enclosing_call.reset(token)
