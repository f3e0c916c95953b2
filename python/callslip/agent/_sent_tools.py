"""The tools of a request, by the names that a text protocol takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callslip.models import ToolForm
from callslip.models.native._turns import Call, sent_name
from callslip.tools import Tool

__all__ = ["ANSWER_TOOL", "SentTools", "TypedAnswer", "sent_tools"]

ANSWER_TOOL = "final_answer"
"""The tool for the typed answer of a native run."""
_ANSWER = "answer"

_RESERVED = frozenset(
    {
        "call_tool",
        "delegate_task",
        "describe_tool",
        "execute_python_code",
        "final_answer",
        "finish",
        "read_result",
        "search_tools",
        "spawn_agent",
        "wait_for_agents",
    }
)
"""Names that mean something else in the prompt, in lower case."""

_MOST = 64
_AROUND = frozenset(
    {"$defs", "$schema", "additionalProperties", "definitions", "description", "title", "type"}
)
"""Keywords that are allowed in the schema of an answer tool."""


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """The answer for which a request has a tool.

    Attributes:
        schema: Its JSON Schema.
        is_wrapped: Whether it is the argument `answer`, and not all the arguments.
    """

    schema: dict[str, Any]
    is_wrapped: bool

    @classmethod
    def of(cls, form: ToolForm) -> TypedAnswer:
        """Read the tool of an answer."""
        whole = dict(form.parameters)
        properties = whole.get("properties")
        own = properties.get(_ANSWER) if isinstance(properties, Mapping) else None
        only = isinstance(own, Mapping) and len(properties or ()) == 1
        if not only or set(whole) - _AROUND - {"properties", "required"}:
            return cls(whole, is_wrapped=False)
        assert isinstance(own, Mapping)
        shared: dict[str, Any] = {
            key: whole[key] for key in ("$defs", "definitions") if key in whole
        }
        if shared.keys() & own.keys():
            return cls(whole, is_wrapped=False)
        return cls({**shared, **own}, is_wrapped=True)


@dataclass(frozen=True, slots=True)
class SentTools:
    """The tools of a request, by the names that the model reads.

    Attributes:
        forms: The tools, except the tool for a typed answer.
        names: The name in the prompt of each tool.
        answer: The type of the answer; `None` for text.
    """

    forms: tuple[ToolForm, ...]
    names: Mapping[str, str]
    answer: TypedAnswer | None = None
    _own: Mapping[str, str] = field(init=False, repr=False)
    _by_name: Mapping[str, ToolForm] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = {name: tool for tool, name in self.names.items()}
        object.__setattr__(self, "_own", own)
        # In a conversation, names stand as services take them.
        by_name = {sent_name(form.name): form for form in self.forms}
        object.__setattr__(self, "_by_name", by_name)

    def own_name(self, name: str) -> str:
        """Return the name of a tool as the program knows it."""
        return self._own[name]

    def is_answer(self, tool: str) -> bool:
        """Whether a call of this tool is the typed answer."""
        return self.answer is not None and tool == ANSWER_TOOL

    def answer_in(self, arguments: Mapping[str, Any]) -> Any:
        """Return the answer in the arguments of its tool."""
        is_wrapped = self.answer is not None and self.answer.is_wrapped
        return arguments[_ANSWER] if is_wrapped and _ANSWER in arguments else arguments

    def answer_arguments(self, value: Any) -> Any:
        """Return the arguments with which the tool of the answer is called."""
        assert self.answer is not None
        return {_ANSWER: value} if self.answer.is_wrapped else value

    def written(self, call: Call) -> tuple[str, dict[str, Any]]:
        """Return the name and the arguments of an earlier call, as the model writes them now."""
        form = self._by_name.get(call.tool)
        if form is None:
            return call.tool, call.object
        return self.names[form.name], in_order(call.object, form.parameters)

    def made(self, only: str | None = None) -> list[Tool[..., Any]]:
        """Return the tools for an agent.

        Args:
            only: The only one; `None` for all.

        Raises:
            UsageError: A schema cannot be used.
        """
        return [
            Tool.from_schema(
                None,
                name=self.names[form.name],
                description=form.description,
                parameters=form.parameters,
                external=True,
                repeatable=True,
            )
            for form in self.forms
            if only in (None, form.name)
        ]


def in_order(value: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return an object with its keys in the order of the schema, as the grammar writes them."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return value
    ordered = {key: _inside(value[key], properties[key]) for key in properties if key in value}
    return {**ordered, **{key: one for key, one in value.items() if key not in ordered}}


def _inside(value: Any, schema: Any) -> Any:
    if isinstance(value, dict):
        return in_order(value, schema)
    if isinstance(value, list) and isinstance(schema, Mapping):
        return [_inside(one, schema.get("items")) for one in value]
    return value


def sent_tools(forms: Sequence[ToolForm], *, is_typed: bool, is_native: bool = False) -> SentTools:
    """Return the tools of a request.

    Args:
        forms: The tools.
        is_typed: Whether one of them stands for a typed answer.
        is_native: Whether the names are those that services take.
    """
    answers = [form for form in forms if is_typed and form.name == ANSWER_TOOL]
    plain = tuple(form for form in forms if not (is_typed and form.name == ANSWER_TOOL))
    taken = {form.name for form in plain}
    names: dict[str, str] = {}
    for form in plain:
        names[form.name] = _name(form.name, taken, is_native=is_native)
        taken.add(names[form.name])
    return SentTools(plain, names, TypedAnswer.of(answers[0]) if answers else None)


def _name(tool: str, taken: set[str], *, is_native: bool) -> str:
    """Return the name of a tool in the prompt: its own, unless that cannot be used there."""
    is_other = is_native or len(tool) > _MOST or not tool or _has_blanks(tool)
    name = sent_name(tool) if is_other else tool
    if name == tool and name.lower() not in _RESERVED:
        return name
    name = f"{name[: _MOST - 1]}_"
    number = 1
    while name in taken or name.lower() in _RESERVED:
        number += 1
        name = f"{name[: _MOST - 4].rstrip('_0123456789')}_{number}"
    return name


def _has_blanks(tool: str) -> bool:
    """Whether a name has blanks, which no tool of a run has."""
    return any(mark.isspace() for mark in tool)
