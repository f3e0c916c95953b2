"""The options and methods that all protocols have."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from callslip._base.options import check_flag, check_one_of, check_type, check_whole
from callslip._core import Grammar, Move, Reader, Reply, ToolSet
from callslip._core import Protocol as CoreProtocol
from callslip._protocols import ProtocolName
from callslip._protocols.example import Example, check_examples, teaches_wrong
from callslip._protocols.retold import RetoldCall
from callslip._protocols.tags import tag_pair
from callslip.errors import UsageError
from callslip.tools._toolbox import Toolbox

if TYPE_CHECKING:
    from callslip.limits import Limits
    from callslip.models._bounds import Bounds
    from callslip.tools import Tools

__all__ = ["CallForm", "Protocol", "reply_json"]


class CallForm(NamedTuple):
    """The text before a call in the replies of a protocol, and the keys of the call."""

    tag: str
    tool: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """The options that all protocols have.

    Attributes:
        name: The name, which options accept in place of a protocol with the defaults.
        template: The system prompt with the placeholders of the protocol: its text, or the `Path`
            of a file. Default: the built-in prompt, whose text is here then.
        examples: Messages of an example between the system prompt and the task: mappings with
            `role` and `content`, which alternate from a task of the `user` to the answer of the
            `assistant`. `True` makes an example from the tools of the run, `False` none. Default
            `None`: one for models that say that they need it, as `LocalModel` does.
        strict: Whether every departure from the syntax is a violation, even one that can only
            mean one thing. Default `False`.
        lenient: Whether further forms are read: keys that models often write in place of the
            protocol's own, such as `action_input` for `args`, with the repair `key_alias`; and
            calls in the published forms of model families, such as `<tool_call>` of Hermes, with
            the repair `published_form`. Default `False`.
        think_prefilled: Whether the model's chat template has already opened `<think>`.
        reasoning_tags: Further marks around the reasoning of a model, beside those of well-known
            models: a name, for `<name>` and `</name>`, or the opening and the closing mark.
        early_stop: Whether a stream is stopped at the end of its first complete move, as by a stop
            sequence.
        first_move: `"call"` requires a tool call before an answer.
        thoughts: Characters of thoughts that a grammar admits, at most; `None` for any number. A
            small model chooses better with 0.
        tool_tokens: Tokens, at four characters each, for the tools in the system prompt. The tools
            are described as completely as that allows. If there is no room for all arguments,
            `search_tools` and `describe_tool` are offered too.

    Raises:
        UsageError: An option is not valid.
    """

    name: ClassVar[ProtocolName]
    _call_form: ClassVar[CallForm]
    # A result that a model has invented, after its call.
    _invented_result: ClassVar[str]
    # Whether it has a form for conversations from other interfaces.
    _retells: ClassVar[bool] = False
    # Whether plain text is no answer.
    _answers_in_json: ClassVar[bool] = False
    # Whether text for the user may stand before calls.
    _tells_before_calls: ClassVar[bool] = False
    # Whether something stands behind each task, in its example too.
    _reminds: ClassVar[bool] = False

    template: str | PathLike[str] | None = field(default=None, repr=False)
    examples: Sequence[Mapping[str, str]] | bool | None = field(default=None, hash=False)
    strict: bool = False
    lenient: bool = False
    think_prefilled: bool = False
    reasoning_tags: Sequence[str | tuple[str, str]] = ()
    early_stop: bool = True
    first_move: Literal["any", "call"] = "any"
    thoughts: int | None = None
    tool_tokens: int = 8_000

    def __post_init__(self) -> None:
        if self.template is None:
            object.__setattr__(self, "template", self._built_in_template())
        check_type("template", self.template, (str, PathLike), "its text, or the Path of a file")
        for name in ("strict", "lenient", "think_prefilled", "early_stop"):
            check_flag(name, getattr(self, name))
        if self.strict and self.lenient:
            raise UsageError("expected strict=True or lenient=True: got both")
        check_one_of("first_move", self.first_move, ("any", "call"))
        check_whole("tool_tokens", self.tool_tokens, 1)
        check_whole("thoughts", self.thoughts, none="any number")
        if isinstance(self.reasoning_tags, str) or not isinstance(self.reasoning_tags, Sequence):
            raise UsageError(
                "expected reasoning_tags as a list of names and pairs of marks: got "
                f"{self.reasoning_tags!r}"
            )
        for one in self.reasoning_tags:
            tag_pair("reasoning_tags", one)
        check_examples(self.examples)

    @classmethod
    def _built_in_template(cls) -> str:
        return CoreProtocol.built_in_template(cls.name)

    @classmethod
    @abstractmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:
        """Return a reply with one call, which is call `number` of the run."""

    @classmethod
    @abstractmethod
    def _answer_text(cls, answer: Any) -> str:
        """Return a reply that ends the run."""

    def _retold_calls(
        self, text: str, calls: Sequence[RetoldCall], number: int
    ) -> list[tuple[str, str]]:
        """Return an earlier reply with calls, and their results.

        Args:
            text: The text before the calls.
            calls: The calls, at least one.
            number: The number of calls before them.

        Returns:
            Roles and texts. The last one is the user's, and may be empty.
        """
        raise NotImplementedError

    def _retold_answer(self, value: Any, *, is_typed: bool) -> str:
        """Return an earlier reply with an answer."""
        raise NotImplementedError

    def _retold_refusal(self, text: str) -> str:
        """Return the feedback on an earlier reply that was refused."""
        return text

    def _for_one_call(self) -> Protocol:
        """Return the protocol that asks for one call in a reply, if this one can."""
        return self

    def _template_of(self, prompt: str) -> str | None:  # noqa: ARG002  # of each protocol
        """Return a template that renders to this prompt without tools; `None` for no such form."""
        return None

    def _own_options(self) -> dict[str, Any]:
        """Return the options of this protocol alone, as the core takes them."""
        return {}

    @property
    def _joins_calls(self) -> bool:
        """Whether another call behind a call is one of the same move."""
        return False

    @property
    def _starts_early(self) -> bool:
        """Whether calls start before a reply is complete."""
        return False

    @property
    def _grace(self) -> float:
        """Seconds that a call may take before the model continues without it."""
        return 0.0

    @property
    def _has_own_grace(self) -> bool:
        """Whether the program has chosen the grace, or there is none."""
        return True

    def __getstate__(self) -> dict[str, object]:
        # The core's own is made again when it is needed.
        return {
            name: value for name, value in vars(self).items() if not isinstance(value, CoreProtocol)
        }

    def _native_for(self, *, needs_examples: bool) -> CoreProtocol:
        """Return the protocol for a model, as the core takes it.

        Args:
            needs_examples: Whether the model does as it has seen it done.
        """
        if self.examples is not None or needs_examples:
            return self.native
        return self._native_without_example

    @cached_property
    def _native_without_example(self) -> CoreProtocol:
        return replace(self, examples=False).native

    @cached_property
    def native(self) -> CoreProtocol:
        """The protocol, as the core takes it.

        Raises:
            OSError: The file of the template cannot be read.
        """
        return CoreProtocol(self.name, self._options(), json.dumps(self._own_options()))

    def _options(self) -> dict[str, object]:
        """Return the options that all protocols have, as the core takes them."""
        return {
            "template": self._template(),
            "examples": self._examples(),
            "tool_tokens": min(self.tool_tokens, sys.maxsize),
            "repairs": self._repairs(),
            "think_prefilled": self.think_prefilled,
            "reasoning_tags": [tag_pair("reasoning_tags", one) for one in self.reasoning_tags],
        }

    def _repairs(self) -> Literal["strict", "lenient", "default"]:
        if self.strict:
            return "strict"
        return "lenient" if self.lenient else "default"

    def _examples(self) -> list[tuple[str, str]] | bool:
        if self.examples is None:
            # Without an agent, it is shown what a model that needs one is.
            return True
        if isinstance(self.examples, bool):
            return self.examples
        return [(message["role"], message["content"]) for message in self.examples]

    def _tool_set(self, tools: Tools, *, delegate: bool) -> ToolSet:
        built_in = self.native.delegation([]) if delegate else []
        return Toolbox(tools).for_protocol(self.native, built_in).tool_set

    @property
    def _has_own_template(self) -> bool:
        """Whether `template` is another than the built-in prompt."""
        return self.template != self._built_in_template()

    def _template(self) -> str | None:
        if not self._has_own_template:
            return None
        assert self.template is not None
        if isinstance(self.template, str):
            return self.template
        with open(fspath(self.template), encoding="utf-8") as file:  # noqa: PTH123  # pathlib is slow to import
            return file.read()

    def system_prompt(
        self, tools: Tools = (), *, delegate: bool = False, instructions: str = ""
    ) -> str:
        """Return the system prompt with the tools in it.

        Args:
            tools: The tools.
            delegate: Whether tasks may be delegated to child runs, as for `Agent`.
            instructions: The instructions, as text.

        Raises:
            TemplateError: The template lacks a placeholder or has an unknown one.
        """
        native, tool_set = self.native, self._tool_set(tools, delegate=delegate)
        return native.system_prompt(tool_set, delegate and native.delegates, instructions.strip())

    def example_messages(
        self, tools: Tools = (), *, delegate: bool = False
    ) -> list[dict[str, str]]:
        """Return the messages of the example at the beginning of runs with these tools.

        Args:
            tools: The tools.
            delegate: As for `system_prompt`.
        """
        messages = self.native.example_messages(self._tool_set(tools, delegate=delegate))
        return [{"role": role, "content": content} for role, content in messages]

    def parse(
        self,
        text: str,
        *,
        finish_reason: Literal["stop", "length", "unknown"] | None = None,
        limits: Limits | None = None,
        tools: Tools = (),
    ) -> Reply:
        """Read one whole reply. The names of its tools and tickets are not checked.

        Args:
            text: The reply.
            finish_reason: As of a `ModelReply`.
            limits: The limits for the size of the reply and of its JSON; others have no effect.
            tools: The tools of the run: text is searched for calls of them and their parameters.
        """
        bound = limits._to_json() if limits else None
        return self.native.parse(text, finish_reason, bound, self._known(tools))

    def reader(self, *, limits: Limits | None = None, tools: Tools = ()) -> Reader:
        """Return a reader for one reply that arrives in chunks.

        Args:
            limits: As for `parse`.
            tools: As for `parse`.
        """
        return self.native.reader(limits._to_json() if limits else None, self._known(tools))

    def _known(self, tools: Tools) -> ToolSet | None:
        return self._tool_set(tools, delegate=False) if tools else None

    def lint(
        self, tools: Tools = (), *, messages: Sequence[Mapping[str, str]] | None = None
    ) -> list[Example]:
        """Check every example of a move by reading it as a reply.

        The examples are those in the system prompt, and the replies of the example messages. In
        messages, the calls are checked too: their tools and their arguments.

        Args:
            tools: The tools.
            messages: The messages to check, for example of an earlier run; default: those of
                `example_messages`.

        Returns:
            The examples that break the protocol or need a repair; an empty list is good. An example
            with an omission, such as `"..."` in place of arguments, breaks the protocol.

        Raises:
            TemplateError: The template lacks a placeholder or has an unknown one.
        """
        if messages is None:
            messages = self.example_messages(tools)
        in_prompt = self.native.examples(self.system_prompt(tools))
        examples = [Example(one.line, one.text, one.reply) for one in in_prompt]
        tool_set = self._tool_set(tools, delegate=True)
        # An example is a whole reply, whatever a chat template puts before a real one.
        whole = replace(self, think_prefilled=False)
        for position, message in enumerate(messages):
            if message["role"] == "assistant":
                text = message["content"]
                reply = whole.native.parse(text, None, None, tool_set)
                problem = self._call_problem(tool_set, reply.move)
                examples.append(Example(1, text, reply, message=position, problem=problem))
        return [one for one in examples if teaches_wrong(one)]

    def _call_problem(self, tools: ToolSet, move: Move | None) -> str | None:
        """Return why the first wrong call of a move would be refused; `None` if all are right."""
        for call in move.calls if isinstance(move, Move.Call) else ():
            arguments = json.dumps(call.arguments)
            try:
                name = tools.resolve_route(call.tool) if self.native.routes else call.tool
                # A reference to the result of another call has a value only in a run.
                if '"$' not in arguments or name not in tools.names():
                    tools.check(name, arguments)
            except ValueError as error:
                return str(error)
        return None

    def grammar(
        self,
        tools: Tools = (),
        *,
        calls: bool = True,
        delegate: bool = False,
        finish: bool = True,
        in_progress: Sequence[str] = (),
        completed: Sequence[str] = (),
        agents: Sequence[str] = (),
        bounds: Bounds | None = None,
    ) -> Grammar:
        """Return the grammar of valid replies, which constrains the decoding of a model.

        All arguments that fit the schemas of the tools can be written. A tool whose schema no
        arguments fit can be called with any object, which is refused then; `unruled` of the grammar
        names such tools.

        Args:
            tools: The tools.
            calls: Whether a reply may call tools.
            delegate: Whether tasks may be delegated to child runs, as for `Agent`.
            finish: Whether a reply may finish the run.
            in_progress: Ids of tickets that a reply may await (ticket).
            completed: Ids of tickets that a reply may load (ticket).
            agents: Ids of agents that a reply may wait for (chatty).
            bounds: Bounds for the length of texts and lists, for a model that repeats itself.
                Default: those of the schemas only.
        """
        return self.native.grammar(
            self._tool_set(tools, delegate=delegate),
            calls=calls,
            delegates=delegate and self.native.delegates,
            finish=finish,
            in_progress=list(in_progress),
            completed=list(completed),
            agents=list(agents),
            thoughts=self.thoughts,
            bounds=bounds,
        )


def reply_json(value: object) -> str:
    """Return a value as JSON for a reply.

    Raises:
        UsageError: It is not a JSON value.
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"expected JSON values in a reply: got another: {error}") from None
