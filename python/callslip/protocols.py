"""The three protocols, which are the forms of replies."""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from callslip._base.options import check_flag, check_one_of, check_seconds, check_type, check_whole
from callslip._core import Grammar, Move, Reader, Reply, ToolSet
from callslip._core import Protocol as NativeProtocol
from callslip.errors import UsageError
from callslip.tools._toolbox import Toolbox

if TYPE_CHECKING:
    from callslip.limits import Limits
    from callslip.models._bounds import Bounds
    from callslip.tools import Tools

__all__ = [
    "ChattyProtocol",
    "Example",
    "Protocol",
    "ProtocolName",
    "ReactProtocol",
    "TicketProtocol",
]

ProtocolName: TypeAlias = Literal["ticket", "chatty", "react"]


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty example of a reply, in a system prompt or in example messages.

    Attributes:
        line: The line at which it begins, from 1, of the system prompt or of the message.
        text: The example.
        reply: The example as callslip reads it: a violation, or a move, perhaps with repairs.
        message: The position of the message, from 0; `None` in the system prompt.
        problem: What is wrong with a call of the move: an unknown tool, or arguments that do not
            fit it. `None` if nothing is.
    """

    line: int
    text: str
    reply: Reply
    message: int | None = None
    problem: str | None = None

    def __str__(self) -> str:
        place = f"line {self.line}" if self.message is None else f"message {self.message}"
        violation = self.reply.violation
        if violation is not None:
            return f"{place}: {violation.code}: {violation.message}"
        if self.problem is not None:
            return f"{place}: {self.problem}"
        return f"{place}: {', '.join(repair.code for repair in self.reply.repairs)}"


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """The options that all three protocols have.

    Attributes:
        name: `"ticket"`, `"chatty"` or `"react"`.
        template: The system prompt with the placeholders of the protocol: its text, or the `Path`
            of a file. Default: the built-in prompt, whose text is here then.
        examples: Messages of an example between the system prompt and the task: mappings with
            `role` and `content`, which alternate from a task of the `user` to the answer of the
            `assistant`. `True` (default) makes an example from the tools of the run, `False` none.
        strict: Whether every departure from the syntax is a violation, even one with exactly one
            sensible reading. Default `False`.
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
    template: str | PathLike[str] | None = field(default=None, repr=False)
    examples: Sequence[Mapping[str, str]] | bool = field(default=True, hash=False)
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
            object.__setattr__(self, "template", NativeProtocol.built_in_template(self.name))
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
        _check_examples(self.examples)

    @abstractmethod
    def _native(self) -> NativeProtocol: ...

    @cached_property
    def native(self) -> NativeProtocol:
        """The protocol, as the core takes it.

        Raises:
            OSError: The file of the template cannot be read.
        """
        return self._native()

    @property
    def _reasoning_tags(self) -> list[tuple[str, str]]:
        return [tag_pair("reasoning_tags", one) for one in self.reasoning_tags]

    def _repairs(self) -> Literal["strict", "lenient", "default"]:
        if self.strict:
            return "strict"
        return "lenient" if self.lenient else "default"

    def _examples(self) -> list[tuple[str, str]] | bool:
        if isinstance(self.examples, bool):
            return self.examples
        return [(message["role"], message["content"]) for message in self.examples]

    def _tool_set(self, tools: Tools, *, delegate: bool) -> ToolSet:
        built_in = ToolSet.delegation(self.name, []) if delegate else []
        return Toolbox(tools).for_protocol(self.native, built_in).tool_set

    @property
    def _has_own_template(self) -> bool:
        """Whether `template` is another than the built-in prompt."""
        return self.template != NativeProtocol.built_in_template(self.name)

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
        offered = delegate and self.name == "ticket"
        tool_set = self._tool_set(tools, delegate=delegate)
        return self.native.system_prompt(tool_set, offered, instructions.strip())

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
        return [one for one in examples if _teaches_wrong(one)]

    def _call_problem(self, tools: ToolSet, move: Move | None) -> str | None:
        """Return why the first wrong call of a move would be refused; `None` if all are right."""
        for call in move.calls if isinstance(move, Move.Call) else ():
            arguments = json.dumps(call.arguments)
            try:
                name = tools.resolve_route(call.tool) if self.name == "ticket" else call.tool
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
            delegates=delegate and self.name == "ticket",
            finish=finish,
            in_progress=list(in_progress),
            completed=list(completed),
            agents=list(agents),
            thoughts=self.thoughts,
            bounds=bounds,
        )


@dataclass(frozen=True, kw_only=True)
class ReactProtocol(Protocol):
    """One JSON object `{thought, action, args}` a reply, until `FINISH`.

    Placeholders of a template: `{tools}` (required), `{instructions}` or, by another name,
    `{persona}`; braces in the text are doubled.
    """

    name: ClassVar[ProtocolName] = "react"

    def _native(self) -> NativeProtocol:
        return NativeProtocol.react(
            template=self._template(),
            examples=self._examples(),
            tool_tokens=min(self.tool_tokens, sys.maxsize),
            repairs=self._repairs(),
            think_prefilled=self.think_prefilled,
            reasoning_tags=self._reasoning_tags,
        )


@dataclass(frozen=True, kw_only=True)
class ChattyProtocol(Protocol):
    """A direct answer, or one tool block with calls that run concurrently.

    Placeholders of a template: `{AVAILABLE_TOOLS_INTERFACE}` (required), `{TOOL_TAG_START}` and
    `{TOOL_TAG_END}` (required if the template does not contain the tags), `${instructions}`.

    Attributes:
        tool_tag: A name, for `<name>` and `</name>`, or the opening and the closing tag.
        early_start: Whether a call of a `readonly` tool starts while the rest of its block is
            still arriving.
    """

    name: ClassVar[ProtocolName] = "chatty"
    tool_tag: str | tuple[str, str] = "tool"
    early_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        tag_pair("tool_tag", self.tool_tag)
        check_flag("early_start", self.early_start)

    def _native(self) -> NativeProtocol:
        return NativeProtocol.chatty(
            tool_tag=tag_pair("tool_tag", self.tool_tag),
            template=self._template(),
            examples=self._examples(),
            tool_tokens=min(self.tool_tokens, sys.maxsize),
            repairs=self._repairs(),
            think_prefilled=self.think_prefilled,
            reasoning_tags=self._reasoning_tags,
        )


@dataclass(frozen=True, kw_only=True)
class TicketProtocol(Protocol):
    """`<thoughts>`, then `<output>` with one JSON object: RETURN, CALL, AWAIT or LOAD_TICKET.

    Placeholders of a template: `{{tool_spec}}` (required), `{{instructions}}`.

    Attributes:
        await_loads: Whether an AWAIT also loads the ticket's result.
        inline_results: Whether the next message contains the result of a call that ends within the
            grace, if the result has up to 2,000 bytes as JSON. The model loads longer and later
            results with LOAD_TICKET.
        grace: Seconds that a call may take before the model continues without it.
    """

    name: ClassVar[ProtocolName] = "ticket"
    await_loads: bool = False
    inline_results: bool = True
    grace: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("await_loads", self.await_loads)
        check_flag("inline_results", self.inline_results)
        check_seconds("grace", self.grace)

    def _native(self) -> NativeProtocol:
        return NativeProtocol.ticket(
            await_loads=self.await_loads,
            inline_results=self.inline_results,
            template=self._template(),
            examples=self._examples(),
            tool_tokens=min(self.tool_tokens, sys.maxsize),
            repairs=self._repairs(),
            think_prefilled=self.think_prefilled,
            reasoning_tags=self._reasoning_tags,
        )


def tag_pair(option: str, tag: object) -> tuple[str, str]:
    """Return the opening and the closing mark of an option that is a name or these marks.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(tag, str):
        if not _TAG_NAME.fullmatch(tag):
            raise UsageError(
                f"expected the name of a tag in {option}, without brackets and blanks: got {tag!r}"
            )
        return f"<{tag}>", f"</{tag}>"
    match tag:
        case (str(start), str(end)) if start.strip() and end.strip() and start != end:
            return start, end
    raise UsageError(
        f"expected {option} to be names, or pairs of two different marks that are not empty: got "
        f"{tag!r}"
    )


_TAG_NAME = re.compile(r"[^\s<>/]+")


def _check_examples(examples: object) -> None:
    """Check the messages of an example.

    Raises:
        UsageError: They are not such messages.
    """
    if isinstance(examples, bool):
        return
    problem = _problem(examples)
    if problem is not None:
        raise UsageError(f"expected examples=True, False or messages: got {problem}")


def _problem(examples: object) -> str | None:
    if isinstance(examples, str | Mapping) or not isinstance(examples, Sequence):
        return type(examples).__name__
    for at, message in enumerate(examples):
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            return f"{message!r}, which is not a message with 'role' and 'content'"
        role = ("user", "assistant")[at % 2]
        if message["role"] != role:
            return f"the role {message['role']!r} of message {at + 1}, instead of '{role}'"
        if not isinstance(message["content"], str):
            return f"{message['content']!r} as the content of message {at + 1}, which is not text"
    return "no reply to the last message" if len(examples) % 2 else None


def find_protocol(protocol: Protocol | ProtocolName) -> Protocol:
    """Return a protocol, or the protocol of a name with its defaults.

    Raises:
        UsageError: There is no such protocol.
    """
    if isinstance(protocol, Protocol):
        return protocol
    kinds: dict[str, type[Protocol]] = {
        "ticket": TicketProtocol,
        "chatty": ChattyProtocol,
        "react": ReactProtocol,
    }
    kind = kinds.get(protocol) if isinstance(protocol, str) else None
    if kind is None:
        raise UsageError(
            "expected protocol='ticket', 'chatty' or 'react', or a protocol object: "
            f"got {protocol!r}"
        )
    return kind()


def _teaches_wrong(example: Example) -> bool:
    # A prompt may show a block in a fence, although a model must not write one. It may show the
    # `args` of react as an object, which small models write with fewer mistakes.
    violation = example.reply.violation
    if violation is not None:
        return violation.code != "fenced_tool_call" or example.message is not None
    if example.problem is not None:
        return True
    return any(repair.code != "args_object" for repair in example.reply.repairs)
