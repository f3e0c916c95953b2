"""A request and its answer, in no face's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from callslip.agent._sent_tools import ANSWER_TOOL
from callslip.agent._turn_changes import Changes
from callslip.gateway._refused import Refused
from callslip.models import Message, ToolChoice, ToolForm
from callslip.models._items import CallItem

__all__ = ["Answered", "Asked", "Exchange", "Piece", "answer_form"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes:
        model: The name of the model.
        messages: The conversation, as a native run has it.
        tools: The tools.
        choice: The allowed calls.
        schema: The JSON Schema of the answer; `None` for text.
        options: `stop`, `seed` and `max_tokens`, if the request has them.
        is_streamed: Whether the answer is sent in events.
        left_out: The kinds of tools that can't be offered, such as `web_search`.
    """

    model: str
    messages: Sequence[Message]
    tools: tuple[ToolForm, ...] = ()
    choice: ToolChoice = field(default_factory=ToolChoice)
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    is_streamed: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """More of an answer that is still being written."""

    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of an answer.

    Attributes:
        text: The whole text; beside calls the text before them.
        calls: The checked calls.
        reasoning: All of the model's reasoning.
        counts: Its usage: `input_tokens`, `output_tokens` and `cached_tokens` of all attempts.
        attempts: The replies that the model has written.
        is_cut: Whether the text was cut at `max_tokens`.
        stopped_at: The stop sequence that the text was cut at; `None` if that is not known.
        rest: The part of the text that no piece has had.
        changes: The repairs, the arguments that were read as another type and the violations.
    """

    text: str = ""
    calls: tuple[CallItem, ...] = ()
    reasoning: str = ""
    counts: Mapping[str, float] = field(default_factory=dict)
    attempts: int = 1
    is_cut: bool = False
    stopped_at: str | None = None
    rest: str = ""
    changes: Changes = field(default_factory=Changes)

    @property
    def finish_reason(self) -> str:
        """`"tool_calls"`, `"length"` or `"stop"`."""
        if self.calls:
            return "tool_calls"
        return "length" if self.is_cut else "stop"

    def count(self, name: str) -> int:
        """Return a number of tokens; 0 if it is not known."""
        return int(self.counts.get(name, 0))


class Exchange(Protocol):
    """A request in the words of a face, and the writer of its answer."""

    @property
    def asked(self) -> Asked:
        """The request in the words of the engine."""
        ...

    def whole(self, answered: Answered) -> dict[str, Any]:
        """Return the body of the answer."""
        ...

    def begin(self) -> bytes:
        """Return the first events."""
        ...

    def piece(self, piece: Piece) -> bytes:
        """Return the events for a piece."""
        ...

    def end(self, answered: Answered) -> bytes:
        """Return the last events."""
        ...

    def fail(self, refused: Refused) -> bytes:
        """Return the events of an answer that can't be finished."""
        ...


def answer_form(schema: Mapping[str, Any]) -> ToolForm:
    """Return the tool that stands for a typed answer."""
    parameters = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
    return ToolForm(ANSWER_TOOL, "Give the answer.", parameters)
