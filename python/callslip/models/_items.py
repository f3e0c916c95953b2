"""What stands in a reply with tool calls of the model's own, and what such a model is offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "CallDelta",
    "CallItem",
    "Data",
    "Envelope",
    "FaultItem",
    "Item",
    "NativeCall",
    "ReasoningItem",
    "TextItem",
    "ToolChoice",
    "ToolForm",
    "WrittenItem",
]

Data: TypeAlias = Mapping[str, Any]
"""What a service needs back with an item: `{"<service>": JSON}`. It never repeats the text."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call of a whole reply, as the model's service gives it.

    Attributes:
        id: The service's id of the call; empty if it has none.
        tool: The name of the tool.
        arguments: The arguments as the text that came; normally a JSON object.
    """

    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a streamed tool call.

    Attributes:
        index: Which call of the reply it belongs to, from 0. Pieces of several calls may mix.
        id: The service's id of the call; empty in pieces that repeat none.
        tool: The name of the tool; empty in pieces that repeat none.
        arguments: More of the text of the arguments.
    """

    index: int
    id: str = ""
    tool: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ToolForm:
    """A tool as a model is told of it.

    Attributes:
        name: Its name, at most 64 letters, digits, `_` and `-`.
        description: What it does; may be empty.
        parameters: The JSON Schema of its arguments, an object. Do not change it.
        strict: Whether the service is to hold the model to the schema; `None` where the service
            may decide, and `False` to say no aloud.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools the model may call in the coming reply.

    Attributes:
        mode: `"auto"`: it may call or answer; `"required"`: it must call; `"none"`: it must answer.
        tool: The one tool that it must call, with `"required"`; `None` (default) for any of them.
        parallel: Whether it may make several calls in one reply. Default true.
    """

    mode: Literal["auto", "required", "none"] = "auto"
    tool: str | None = None
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class TextItem:
    """Text, or more of it: adjacent pieces are one item."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningItem:
    """Reasoning, or more of it. Adjacent pieces are one item, which ends with its `data`."""

    text: str = ""
    data: Data | None = field(default=None)


@dataclass(frozen=True, slots=True)
class CallItem:
    """A call, or a piece of it: pieces with the same index are one call until another id comes.

    Attributes:
        index: As in a `CallDelta`.
        id: As in a `CallDelta`.
        tool: As in a `CallDelta`.
        arguments: As in a `CallDelta`.
        data: What the service needs back with the call; `None` in pieces that repeat nothing.
        is_whole: Whether nothing more of this call comes.
    """

    index: int
    id: str = ""
    tool: str = ""
    arguments: str = ""
    data: Data | None = field(default=None)
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class FaultItem:
    """The service could not read its own model's call.

    Attributes:
        message: What the service says of it.
        raw: What the model wrote, if the service tells; else empty.
    """

    message: str
    raw: str = ""


class Envelope(str):
    """A reply that is written in lines already, as the log has it: a scripted or recorded one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class WrittenItem:
    """A piece of a reply that is written already, as the log has it."""

    text: str


Item: TypeAlias = TextItem | ReasoningItem | CallItem | FaultItem | WrittenItem
"""An item of a reply, or a piece of one, in the service's order."""
