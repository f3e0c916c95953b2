"""Models that take tools, made of models that write text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_flag, check_whole
from callslip._base.usage import Usage
from callslip._protocols import DEFAULT_PROTOCOL
from callslip._threads.gate import Gate
from callslip.agent._agent import Agent
from callslip.agent._one_move import calls_of
from callslip.agent._retold import Retold, retell
from callslip.agent._sent_tools import ANSWER_TOOL, SentTools
from callslip.agent._turn_agents import TurnAgents, with_options
from callslip.errors import CallslipError, ModelError, ProtocolError, UsageError
from callslip.models import Messages, ModelReply, ToolChoice, ToolForm
from callslip.models._bounds import Bounds
from callslip.models._call import ModelCall
from callslip.models._context import CountTokens
from callslip.models._items import CallItem, FaultItem, Item, TextItem
from callslip.models._offered import check_messages, check_offered
from callslip.models.native._turns import Call, Result, Turn, made_id, system_of, turns_of
from callslip.parts import PartKind
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.runs import Run, RunResult
from callslip.tools._context import enclosing_call

__all__ = ["WithTools"]

_SERVICE = "callslip"
_SAME = 3
"""After so many equal calls with equal results in a row, only an answer may come."""
_NOTE = "\n(note: this is the same call with the same result as before"
"""How the note begins that a run puts behind such a result."""
_AUTO = ToolChoice()


@knows_names_of_class({"max_retries": "max_violations=…", "retries": "max_violations=…"})
class WithTools:
    """A model that takes tools, made of one that only writes text.

    Each request is one turn of a text protocol. The prompt describes the tools, and the earlier
    calls and results are in the form of the protocol. Models with constrained decoding receive a
    grammar. Invalid replies are refused, and the model tries again, up to `max_violations` times in
    a row. The result is an answer, or calls that fit the schemas of the tools. If no reply is
    valid, the result is a fault: the run counts one violation, and asks again.

    Without tools, a request goes to the model as it is.

    Args:
        model: Any model, as for `Agent`.
        protocol: `"react"` (default) for one call in a reply, `"chatty"` for several; or an object
            of one of them with its options.
        max_violations: Invalid replies in a row that are allowed; one more is a fault. Default: 3.
        calls_first: Whether each message of the user is answered with a call first, for models that
            would answer from memory. Default: `False`.

    Attributes:
        accepts: The accepted keywords of a run: `tools` and `tool_choice`, and `stop`, `seed` and
            `max_tokens` if the model accepts them.
        context: The tokens of the model's context; `None` if that is not known.
        count_tokens: Counts tokens as the model does; `None` if it doesn't.
        bounds: The limits of the model on the text at one place; `None` for none.
        gate: The gate of a `BoundedModel`; `None` without one.
        is_async: Whether the model is known to be async.
        model: The name of the model at its server; `None` if that is not known.
        provider: The name of its provider; `None` if that is not known.

    Raises:
        UsageError: The model cannot be called, or an option has a wrong value.
    """

    def __init__(
        self,
        model: object,
        protocol: Protocol | ProtocolName = DEFAULT_PROTOCOL,
        *,
        max_violations: int = 3,
        calls_first: bool = False,
    ) -> None:
        chosen = find_protocol(protocol)
        if not chosen._retells:
            raise UsageError(
                f"expected protocol='react' or 'chatty' for WithTools: got {protocol!r}; use "
                "'react' for one call in a reply, 'chatty' for several"
            )
        check_whole("max_violations", max_violations, 0)
        check_flag("calls_first", calls_first)
        self._options = {
            "protocol": chosen,
            "max_violations": max_violations,
            "calls_first": calls_first,
        }
        self._call = call = ModelCall(model)
        self._calls_first = calls_first
        self._agents = TurnAgents(call, chosen, max_violations)
        own = frozenset({"stop", "seed", "max_tokens"})
        self.accepts: frozenset[str] = (call.accepts & own) | {"tools", "tool_choice"}
        self.context: int | None = call.context
        self.count_tokens: CountTokens | None = call.count_tokens
        self.bounds: Bounds | None = call.bounds
        self.gate: Gate | None = call.gate
        self.is_async: bool = call.is_async
        model, provider = call.leaves()[0].known_name
        self.model: str | None = model
        self.provider: str | None = provider

    @property
    def parts(self) -> frozenset[PartKind]:
        """The kinds of images and files that the model takes."""
        return self._call.parts

    def __call__(
        self,
        messages: Messages,
        *,
        tools: Sequence[ToolForm] = (),
        tool_choice: ToolChoice | None = None,
        stop: Sequence[str] | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> object:
        """Answer the last message, or call tools.

        Args:
            messages: The conversation, as a native run has it.
            tools: The tools.
            tool_choice: The allowed calls. Default: any tool, or an answer.
            stop: Stop sequences for the text of the model.
            seed: The seed.
            max_tokens: Output tokens of one reply of the model.

        Returns:
            A `ModelReply`; an awaitable of one if the model is async. Without tools, the result of
            the model.

        Raises:
            UsageError: The messages or an option cannot be used.
            ToolError: The tools cannot be described in the prompt.
            Exception: The model failed.
        """
        check_messages(messages)
        given = {"stop": stop, "seed": seed, "max_tokens": max_tokens}
        check_offered(given)
        options = {name: value for name, value in given.items() if value is not None}
        if not tools:
            return self._call(messages, **options)
        turn = self._turn(messages, tools, tool_choice or _AUTO, options)
        return turn.ask_on_loop() if self.is_async else turn.ask()

    def without_retries(self) -> WithTools:
        """Return a copy with a model without retries of its client."""
        options: dict[str, Any] = self._options
        return WithTools(self._call.without_retries().model, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._call.model, self._options)

    def __repr__(self) -> str:
        return f"WithTools({self._call.model!r})"

    def _turn(
        self,
        messages: Messages,
        tools: Sequence[ToolForm],
        choice: ToolChoice,
        options: dict[str, Any],
    ) -> _Turn:
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
        return _Turn(
            with_options(agent, options),
            words.tools,
            retell(turns, words),
            _Ids(len(turns), used),
        )


def _again(model: object, options: dict[str, Any]) -> WithTools:
    """Make a pickled or copied model."""
    return WithTools(model, **options)


@dataclass(frozen=True, slots=True)
class _Ids:
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


@dataclass(frozen=True, slots=True)
class _Turn:
    """One request: a run that ends at its first valid move."""

    agent: Agent[Any]
    tools: SentTools
    told: list[Retold]
    ids: _Ids

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

    def _content(self) -> tuple[Any, list[dict[str, Any]]]:
        *earlier, last = self.told
        return last.said, [{"role": one.role, "content": one.said} for one in earlier]

    def _reply(self, result: RunResult[Any]) -> ModelReply:
        items: list[Item] = []
        made = calls_of(result)
        if made is not None:
            for at, (call, own) in enumerate(zip(made, self.ids.make(len(made)), strict=True)):
                tool = self.tools.own_name(call["tool"])
                items.append(_call(at, own, tool, call["arguments"]))
        elif self.tools.answer is not None:
            (own,) = self.ids.make(1)
            items.append(_call(0, own, ANSWER_TOOL, self.tools.answer_arguments(result.value)))
        else:
            items.append(TextItem(result.value))
        return ModelReply("", "stop", _counts(result.run), items=tuple(items))

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
