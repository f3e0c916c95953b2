"""A conversation with tool calls as services take it: ids, names and arguments that they accept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NoReturn, TypeAlias, cast

from callslip.models._reply import Message, Messages

__all__ = [
    "ANY_ID",
    "Call",
    "Reasoning",
    "Result",
    "Text",
    "Turn",
    "TurnItem",
    "made_id",
    "sent_name",
    "system_of",
    "turns_of",
]

ANY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The ids that OpenAI's and Anthropic's interfaces take."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PLACES = 5
_UNREADABLE = "INVALID_JSON"


@dataclass(frozen=True, slots=True)
class Text:
    """Text of either side; never blank."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning of the model. `data` is what this service needs back; `None` if it has none."""

    text: str
    data: Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the model, as this service takes it.

    Attributes:
        id: An id that the service takes, and that no other call of the conversation has.
        tool: A name that the service takes.
        arguments: The text of one JSON object.
        data: What this service needs back; `None` if it has none.
    """

    id: str
    tool: str
    arguments: str
    data: Any

    @property
    def object(self) -> dict[str, Any]:
        """The arguments, for a service that takes an object.

        A key that stands twice was refused by the reader: the text alone shows the model why.
        """
        try:
            value = json.loads(self.arguments, object_pairs_hook=_with_each_key_once)
        except ValueError:
            value = {_UNREADABLE: self.arguments}
        return cast("dict[str, Any]", value)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the call with the same id."""

    id: str
    tool: str
    content: str
    error: bool


TurnItem: TypeAlias = Text | Reasoning | Call | Result


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: `"system"`, `"user"` or `"assistant"`. Results stand before texts.

    Attributes:
        role: Whose it is.
        items: What it holds, in order. Each call of an assistant's turn has its result in the next
            one, in the same order.
        message: The message that it was made from, for its images and files (`"parts"`).
    """

    role: str
    items: tuple[TurnItem, ...]
    message: Message


def turns_of(messages: Messages, service: str, admits: re.Pattern[str] = ANY_ID) -> list[Turn]:
    """Return a conversation as a service takes it.

    An id that is empty, was used before, or is not admitted is written anew, at both ends of the
    pair: `c`, the turn and the position in base 36, nine characters. Arguments that are not the
    JSON text of an object are sent as `{"INVALID_JSON": "<text>"}`. Data of other services is left
    out.

    Args:
        messages: The messages of a run; those without `"items"` are text.
        service: The key of this service in `data`.
        admits: The ids that it takes, whole.
    """
    turns: list[Turn] = []
    used: set[str] = set()
    open_calls: list[Call] = []
    for number, message in enumerate(messages):
        items = message.get("items")
        is_answer = message["role"] == "user"
        if open_calls and not is_answer:
            # A policy of the program has left the results out.
            turns.append(Turn("user", tuple(_answered([], open_calls)), {"role": "user"}))
            open_calls = []
        if items is None:
            content = message.get("content") or ""
            text: list[Message] = [{"text": content}] if content.strip() else []
            parsed: list[TurnItem] = _answered(text, open_calls)
            open_calls = []
        elif not is_answer:
            parsed = [_own(item, service) for item in items if _is_shown(item)]
            named = enumerate(parsed)
            parsed = [_with_id(one, (number, at), used, admits) for at, one in named]
            open_calls = [one for one in parsed if isinstance(one, Call)]
        else:
            parsed = _answered(items, open_calls)
            open_calls = []
        turns.append(Turn(message["role"], tuple(parsed), message))
    return turns


def system_of(turns: Sequence[Turn]) -> str:
    """Return the texts of the system messages, with a blank line between them."""
    texts = (
        item.text
        for turn in turns
        if turn.role == "system"
        for item in turn.items
        if isinstance(item, Text)
    )
    return "\n\n".join(texts)


_LEFT_OUT = "(the result is not shown any more)"


def _is_shown(item: Mapping[str, Any]) -> bool:
    return "call" in item or "reasoning" in item or bool(str(item.get("text", "")).strip())


def _own(item: Mapping[str, Any], service: str) -> TurnItem:
    """Read an item of the model's."""
    data = (item.get("data") or {}).get(service)
    if "reasoning" in item:
        return Reasoning(item["reasoning"], data)
    if "call" in item:
        return Call(item["call"], sent_name(item["tool"]), _object_text(item["arguments"]), data)
    return Text(item["text"])


def _with_id(
    item: TurnItem, place: tuple[int, int], used: set[str], admits: re.Pattern[str]
) -> TurnItem:
    if not isinstance(item, Call):
        return item
    name = item.id
    if name in used or admits.fullmatch(name) is None:
        turn, at = place
        # A model of another service may have had such ids.
        name = next(one for one in (made_id(turn, n) for n in count(at)) if one not in used)
    used.add(name)
    return replace(item, id=name)


def made_id(turn: int, at: int) -> str:
    """Return the id of a call that has none: nine letters and digits, which every service takes."""
    return f"c{_base36(turn, _PLACES)}{_base36(at, 8 - _PLACES)}"


def _answered(items: Sequence[Mapping[str, Any]], calls: list[Call]) -> list[TurnItem]:
    """Pair results with the calls of the turn before, by their order: each call has one."""
    results = [item for item in items if "result" in item]
    paired: list[TurnItem] = []
    for at, call in enumerate(calls):
        result = results[at] if at < len(results) else {"content": _LEFT_OUT}
        paired.append(Result(call.id, call.tool, result["content"], bool(result.get("error"))))
    texts = [Text(item["text"]) for item in items if str(item.get("text", "")).strip()]
    return [*paired, *texts]


def sent_name(tool: str) -> str:
    """Return the name of a tool as services take it."""
    if _NAME.fullmatch(tool):
        return tool
    return _NOT_IN_NAMES.sub("_", tool)[:64] or "_"


def _object_text(arguments: str) -> str:
    """Return arguments as services read them back: the text of an object."""
    if not arguments.strip():
        return "{}"
    try:
        value = json.loads(arguments, parse_constant=_refuse)
        if isinstance(value, dict):
            # A lone surrogate can't be sent.
            arguments.encode()
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
            return arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({_UNREADABLE: arguments.encode(errors="replace").decode()})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(_UNREADABLE)
    return found


def _base36(number: int, width: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text.rjust(width, "0")
