"""The three protocols: how a model writes what it wants."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal, TypeAlias

from callslip._core import Grammar, Reader, Reply, ToolSet
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
    """An example of a reply in a system prompt that a model should not learn from.

    Attributes:
        line: Where it begins in the system prompt, from 1.
        text: The example.
        reply: What is read from it: a violation, or a move with repairs.
    """

    line: int
    text: str
    reply: Reply

    def __str__(self) -> str:
        violation = self.reply.violation
        if violation is not None:
            return f"line {self.line}: {violation.code}: {violation.message}"
        return f"line {self.line}: {', '.join(repair.code for repair in self.reply.repairs)}"


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """What the three protocols share.

    Attributes:
        template: The system prompt: its text, or a `Path` to a file of it. `None` is the built-in
            one. The placeholders are those of the protocol.
        examples: Messages of an example that stand between the system prompt and the task: mappings
            with `role` and `content`, from a `user`'s task to the `assistant`'s answer, in turns.
            `True` is one made from the tools of the run, `False` none.
        strict: Whether every departure from the syntax is a violation, even one that has exactly
            one sensible reading.
        lenient: Whether keys that models often write in place of the protocol's own, such as
            `action_input` for `args`, are read as those, each with the repair `key_alias`, and
            whether calls in the published forms of model families, such as Hermes'
            `<tool_call>`, are read, with the repair `published_form`.
        think_prefilled: Whether the model's chat template has already opened `<think>`.
        reasoning_tags: Further marks between which a model reasons, beside those of the models
            that are known: a name, which gives `<name>` and `</name>`, or the opening and closing
            mark.
        early_stop: Whether a stream is stopped where its first whole move ends, like a stop
            sequence.
        first_move: `"call"` requires a tool call before an answer.
        thoughts: Characters of thoughts that a grammar admits, at most; `None` for any number. A
            small model chooses better with 0.
        tool_tokens: Tokens, at four characters each, that the tools may take in the system prompt.
            They are shown as fully as that allows. Where there is no room for all their arguments,
            `search_tools` and `describe_tool` are offered too.
    """

    template: str | PathLike[str] | None = None
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
        if self.strict and self.lenient:
            raise UsageError("expected strict=True or lenient=True: got both")
        if self.first_move not in ("any", "call"):
            raise UsageError(f"expected first_move='any' or 'call': got {self.first_move!r}")
        tokens = self.tool_tokens
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise UsageError(f"expected tool_tokens to be a whole number from 1 on: got {tokens!r}")
        _check_examples(self.examples)

    @abstractmethod
    def _native(self) -> NativeProtocol: ...

    @cached_property
    def native(self) -> NativeProtocol:
        """The protocol as the native module knows it.

        Raises:
            OSError: The template's file can't be read.
        """
        return self._native()

    @property
    def name(self) -> ProtocolName:
        """`"ticket"`, `"chatty"` or `"react"`."""
        return self.native.name

    @property
    def _reasoning_tags(self) -> list[tuple[str, str]]:
        pairs = [
            (f"<{one}>", f"</{one}>") if isinstance(one, str) else one
            for one in self.reasoning_tags
        ]
        for start, end in pairs:
            if not start.strip() or not end.strip() or start == end:
                raise UsageError(
                    "expected reasoning_tags to be names, or pairs of two different marks that are "
                    f"not empty: got {(start, end)!r}"
                )
        return pairs

    @property
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
        return Toolbox(tools).offered(self.native, built_in).tool_set

    def _template(self) -> str | None:
        if self.template is None or isinstance(self.template, str):
            return self.template
        with open(fspath(self.template), encoding="utf-8") as file:  # noqa: PTH123  # pathlib is slow to import
            return file.read()

    def system_prompt(self, tools: Tools = (), *, delegate: bool = False) -> str:
        """Return the system prompt with the tools rendered in.

        Args:
            tools: The tools on offer.
            delegate: Whether tasks may be given to other runs; as for `Agent`.

        Raises:
            TemplateError: The template lacks a placeholder or has an unknown one.
        """
        offered = delegate and self.name == "ticket"
        return self.native.system_prompt(self._tool_set(tools, delegate=delegate), offered)

    def example_messages(
        self, tools: Tools = (), *, delegate: bool = False
    ) -> list[dict[str, str]]:
        """Return the messages of the example, as runs with these tools begin with them.

        Args:
            tools: The tools on offer.
            delegate: As for `system_prompt`.
        """
        messages = self.native.example_messages(self._tool_set(tools, delegate=delegate))
        return [{"role": role, "content": content} for role, content in messages]

    def parse(
        self,
        text: str,
        *,
        finish_reason: Literal["stop", "length"] | None = None,
        limits: Limits | None = None,
    ) -> Reply:
        """Read one whole reply, on its own: names of tools and tickets are not looked up.

        Args:
            text: The reply.
            finish_reason: How the client says it ended; `"length"` is a cut by the token limit.
            limits: How large the reply and its JSON may be; the other limits are those of a run.
        """
        return self.native.parse(text, finish_reason, limits.to_json() if limits else None)

    def reader(self, *, limits: Limits | None = None) -> Reader:
        """Return a reader of one reply that arrives in chunks.

        Args:
            limits: How large the reply and its JSON may be; the other limits are those of a run.
        """
        return self.native.reader(limits.to_json() if limits else None)

    def lint(self, tools: Tools = ()) -> list[Example]:
        """Read every example of a move in the system prompt as a reply is read.

        Returns:
            The examples that break the protocol or need a repair; none is as it should be. A form
            with something left out, such as `"..."` in place of arguments, counts as broken.

        Raises:
            TemplateError: The template lacks a placeholder or has an unknown one.
        """
        examples = self.native.examples(self.system_prompt(tools))

        def teaches_wrong(reply: Reply) -> bool:
            # A prompt may show a block in a fence: only a model must not write it so. The `args` of
            # react may be taught as an object, which small models write with fewer mistakes.
            violation = reply.violation
            if violation:
                return violation.code != "fenced_tool_call"
            return any(repair.code != "args_object" for repair in reply.repairs)

        return [Example(*row) for row in examples if teaches_wrong(row[2])]

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
        """Return what may be said now, as grammars that constrain a model's decoding.

        Whatever the schemas of the tools admit can be written. A tool whose schema admits nothing
        can be called with any object, which is then refused; the grammar's `unruled` names it.

        Args:
            tools: The tools on offer.
            calls: Whether a call may be made.
            delegate: Whether tasks may be given to other runs; as for `Agent`.
            finish: Whether the run may be finished.
            in_progress: Ids of tickets that may be awaited (ticket protocol).
            completed: Ids of tickets that may be loaded (ticket protocol).
            agents: Ids of agents that may be waited for (chatty protocol).
            bounds: How much may be said at one place, for a model that rambles. Default: as much as
                the schemas admit.
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

    Placeholders of a template: `{tools}` (required), `{persona}` (required where one is given);
    braces in the text are doubled.

    Attributes:
        persona: Who the model is, for the prompt.
    """

    persona: str = ""

    def _native(self) -> NativeProtocol:
        return NativeProtocol.react(
            persona=self.persona,
            template=self._template(),
            examples=self._examples(),
            tool_tokens=min(self.tool_tokens, sys.maxsize),
            repairs=self._repairs,
            think_prefilled=self.think_prefilled,
            reasoning_tags=self._reasoning_tags,
        )


@dataclass(frozen=True, kw_only=True)
class ChattyProtocol(Protocol):
    """A direct answer, or one tool block with calls that run side by side.

    Placeholders of a template: `{AVAILABLE_TOOLS_INTERFACE}` (required), `{TOOL_TAG_START}` and
    `{TOOL_TAG_END}` (required where the template does not write the tags out).

    Attributes:
        tool_tag: A name, which gives `<name>` and `</name>`, or the opening and closing tag.
        early_start: Whether a call of a `readonly` tool starts while the rest of its block is
            still arriving.
    """

    tool_tag: str | tuple[str, str] = "tool"
    early_start: bool = True

    def _native(self) -> NativeProtocol:
        tag = self.tool_tag
        return NativeProtocol.chatty(
            tool_tag=(f"<{tag}>", f"</{tag}>") if isinstance(tag, str) else tag,
            template=self._template(),
            examples=self._examples(),
            tool_tokens=min(self.tool_tokens, sys.maxsize),
            repairs=self._repairs,
            think_prefilled=self.think_prefilled,
            reasoning_tags=self._reasoning_tags,
        )


@dataclass(frozen=True, kw_only=True)
class TicketProtocol(Protocol):
    """`<thoughts>`, then `<output>` with one JSON object: RETURN, CALL, AWAIT or LOAD_TICKET.

    Placeholder of a template: `{{tool_spec}}` (required).

    Attributes:
        await_loads: Whether an AWAIT also loads the ticket's result.
        inline_results: Whether the result of a call that ends within the grace stands in the next
            message, if it has up to 2,000 bytes as JSON. Longer results, and those that come
            later, are shown by LOAD_TICKET.
        grace: Seconds that a call may take before the model goes on without it.
    """

    await_loads: bool = False
    inline_results: bool = True
    grace: float = 0.05

    def _native(self) -> NativeProtocol:
        return NativeProtocol.ticket(
            await_loads=self.await_loads,
            inline_results=self.inline_results,
            template=self._template(),
            examples=self._examples(),
            tool_tokens=min(self.tool_tokens, sys.maxsize),
            repairs=self._repairs,
            think_prefilled=self.think_prefilled,
            reasoning_tags=self._reasoning_tags,
        )


def _check_examples(examples: object) -> None:
    """Raise `UsageError` where these are no messages of an example."""
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
            return f"the role {message['role']!r} of message {at + 1}, where '{role}' has its turn"
        if not isinstance(message["content"], str):
            return f"{message['content']!r} as the content of message {at + 1}, which is not text"
    return "no reply to the last message" if len(examples) % 2 else None


def find_protocol(protocol: Protocol | ProtocolName) -> Protocol:
    """Return the protocol, or the one of that name with its defaults."""
    if isinstance(protocol, Protocol):
        return protocol
    kinds: dict[str, type[Protocol]] = {
        "ticket": TicketProtocol,
        "chatty": ChattyProtocol,
        "react": ReactProtocol,
    }
    kind = kinds.get(protocol)
    if kind is None:
        raise UsageError(
            "expected protocol='ticket', 'chatty' or 'react', or a protocol object: "
            f"got {protocol!r}"
        )
    return kind()
