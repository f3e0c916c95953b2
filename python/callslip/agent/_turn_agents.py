"""The agents that make one move for a request with tools. They are kept for the next request."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, cast

from callslip._protocols.protocol import Protocol
from callslip.agent._agent import Agent
from callslip.agent._one_move import OneMoveAgent
from callslip.agent._options import accepted_options
from callslip.agent._retold import Words, no_thought
from callslip.agent._sent_tools import ANSWER_TOOL, SentTools, sent_tools
from callslip.errors import TemplateError, UsageError
from callslip.limits import Limits
from callslip.models import ToolChoice, ToolForm
from callslip.models._call import ModelCall
from callslip.protocols import TEXT_AS_IT_IS
from callslip.store import TicketStore

__all__ = ["TurnAgent", "TurnAgents", "with_model", "with_options"]

_MOST = 64
"""Agents that are kept."""

_Allowed = Literal["any", "call", "answer"]


class TurnAgent(NamedTuple):
    """An agent for one move.

    Attributes:
        agent: The agent, a `OneMoveAgent`.
        words: The form of the conversation in its prompt.
    """

    agent: Agent[Any]
    words: Words


class _Key(NamedTuple):
    """The parts of a request that its agent depends on."""

    tools: str
    is_typed: bool
    allowed: _Allowed
    only: str | None
    instructions: str
    is_parallel: bool


@dataclass(frozen=True, slots=True)
class _Terms:
    """The common settings of all agents."""

    model: ModelCall
    protocol: Protocol
    limits: Limits
    store: TicketStore | None

    @property
    def name(self) -> str:
        """The name of the agents. The gateway alone keeps runs."""
        return "with_tools" if self.store is None else "gateway"


class TurnAgents:
    """Finds or makes the agent for a request.

    Args:
        model: The model that writes text.
        protocol: The protocol.
        max_violations: The violations in a row that are allowed.
        store: Keeps the runs of the agents. Default: no store.
    """

    def __init__(
        self,
        model: ModelCall,
        protocol: Protocol,
        max_violations: int,
        store: TicketStore | None = None,
    ) -> None:
        limits = Limits(max_violations=max_violations, turns=max_violations + 1)
        self._terms = _Terms(model, protocol, limits, store)
        self._kept: OrderedDict[_Key, TurnAgent] = OrderedDict()
        self._text: Agent[Any] | None = None
        self._lock = threading.Lock()
        # The tools of a run, or of the requests of a client, are often the same object.
        self._texts: OrderedDict[int, tuple[Sequence[ToolForm], str, frozenset[str]]]
        self._texts = OrderedDict()

    def find(
        self,
        tools: Sequence[ToolForm],
        choice: ToolChoice,
        instructions: str,
        *,
        calls_first: bool = False,
    ) -> TurnAgent:
        """Return the agent for a request.

        Args:
            tools: The tools of the request.
            choice: The allowed calls.
            instructions: The messages of the system.
            calls_first: Whether a call must come, even if an answer is allowed.

        Raises:
            UsageError: The choice names another tool, or a schema cannot be used.
            ToolError: The tools do not fit into the prompt, or share a name.
        """
        written, names = self._known(tools)
        if choice.tool is not None and choice.tool not in names:
            raise UsageError(
                f"expected tool_choice to name one of the tools: got {choice.tool!r}; use one of "
                f"{', '.join(sorted(names))}"
            )
        is_typed = choice.mode == "required" and ANSWER_TOOL in names
        is_typed = is_typed and choice.tool in (None, ANSWER_TOOL)
        allowed: _Allowed = "any"
        only_answer = is_typed and (choice.tool is not None or names == {ANSWER_TOOL})
        if choice.mode == "none" or only_answer:
            allowed = "answer"
        elif (choice.mode == "required" and not is_typed) or calls_first:
            allowed = "call"
        only = None if is_typed else choice.tool
        # The native protocol alone asks for one call.
        parallel = choice.parallel or not self._terms.protocol.native.takes_calls
        return self._find(tools, _Key(written, is_typed, allowed, only, instructions, parallel))

    def for_text(self, model: ModelCall) -> Agent[Any]:
        """Return an agent for requests without tools, with a model that answers one."""
        if self._text is None:
            self._text = OneMoveAgent(
                cast("Any", model),
                protocol=TEXT_AS_IT_IS,
                limits=Limits(max_violations=0, turns=1),
                on_limit="raise",
                store=self._terms.store,
                name=self._terms.name,
            )
        return with_model(self._text, model)

    def _find(self, tools: Sequence[ToolForm], key: _Key) -> TurnAgent:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        made = self._make(tools, key)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return made

    def _known(self, tools: Sequence[ToolForm]) -> tuple[str, frozenset[str]]:
        """Return the tools as text, and their names."""
        with self._lock:
            same, written, names = self._texts.get(id(tools), ((), "", frozenset()))
            if same is tools and isinstance(tools, tuple):
                return written, names
        rows = [[form.name, form.description, form.parameters] for form in tools]
        written = json.dumps(rows, default=dict)
        names = frozenset(form.name for form in tools)
        with self._lock:
            self._texts[id(tools)] = (tools, written, names)
            while len(self._texts) > _MOST:
                self._texts.popitem(last=False)
        return written, names

    def _make(self, tools: Sequence[ToolForm], key: _Key) -> TurnAgent:
        terms = self._terms
        protocol = terms.protocol
        is_native = protocol.native.takes_calls
        sent = sent_tools(tools, is_typed=key.is_typed, is_native=is_native)
        if key.allowed == "answer" and not key.is_typed:
            like = self._find(tools, key._replace(allowed="any", only=None))
            return TurnAgent(_without_calls(like.agent, terms), like.words)
        if key.allowed == "call":
            protocol = replace(protocol, first_move="call")
        if not key.is_parallel:
            protocol = protocol._for_one_call()
        agent = OneMoveAgent(
            terms.model,
            protocol=protocol,
            instructions=key.instructions or None,
            tools=[] if key.allowed == "answer" else sent.made(key.only),
            returns=None if sent.answer is None else sent.answer.schema,
            limits=terms.limits,
            on_limit="raise",
            store=terms.store,
            name=terms.name,
            delegate=False,
        )
        return _reminded(agent, sent)


def _reminded(agent: OneMoveAgent, sent: SentTools) -> TurnAgent:
    """Return an agent that leaves the last message unchanged: all messages have its reminder.

    Otherwise a message would change in the next request, and servers would read it again.
    """
    protocol = agent.protocol
    examples = _examples(agent)
    if not protocol._reminds or protocol.examples is not True or not examples:
        return TurnAgent(agent, Words(protocol, sent, thought_of=_thoughts(agent)))
    _, _, reminder = examples[0]["content"].rpartition("\n\n")
    fixed = replace(protocol, examples=examples)
    return TurnAgent(agent.replace(protocol=fixed), Words(protocol, sent, reminder))


def _thoughts(agent: Agent[Any]) -> Callable[[str], str]:
    """Return a function that returns the thought with which the example calls a tool.

    Clients send calls without thoughts, but a model repeats the form that the example shows. The
    function returns an empty text if the prompt has no such example.
    """
    if agent.protocol.examples is not True or not agent.protocol._answers_in_json:
        return no_thought
    setup = agent._setup
    tools = setup.toolbox.tool_set
    names = tools.names()

    @cache
    def thought_of(tool: str) -> str:
        if tool not in names:
            return ""
        alone = tools.changed([name for name in names if name != tool], [])
        shown = setup.protocol.example_messages(alone)
        reply = next((content for role, content in shown if role == "assistant"), "{}")
        return str(json.loads(reply).get("thought", ""))

    return thought_of


def _examples(agent: Agent[Any]) -> list[dict[str, str]]:
    setup = agent._setup
    shown = setup.protocol.example_messages(setup.toolbox.tool_set)
    return [{"role": role, "content": content} for role, content in shown]


def _without_calls(agent: Agent[Any], terms: _Terms) -> Agent[Any]:
    """Return an agent that can only answer, with the prompt of one that can call its tools.

    Servers reuse the cached conversation, and a grammar admits only an answer.
    """
    template = agent.protocol._template_of(agent.system_prompt)
    if template is not None:
        same = replace(
            agent.protocol,
            template=template,
            examples=_examples(agent) or False,
            first_move="any",
        )
        try:
            made = agent.replace(protocol=same, tools=[], instructions=None)
        except TemplateError:  # a description has the name of a tool of callslip's
            pass
        else:
            if made.system_prompt == agent.system_prompt:
                return made
    return agent.replace(protocol=terms.protocol, tools=[])


def with_model(agent: Agent[Any], model: ModelCall) -> Agent[Any]:
    """Return an agent with another model, which takes the same options."""
    twin = copy(agent)
    twin._model = model
    return twin


def with_options(agent: Agent[Any], options: Mapping[str, Any]) -> Agent[Any]:
    """Return an agent with other options for its model, which shares its prompt and its tools."""
    if not options:
        return agent
    twin = copy(agent)
    twin._requested = {**agent._requested, **options}
    twin._options = accepted_options(agent._model, twin._requested, agent.protocol)
    return twin
