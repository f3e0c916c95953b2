"""Replies with tool calls of a model's own, right and wrong, and the turns that follow on them."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from callslip.models._items import (
    CallItem,
    FaultItem,
    ReasoningItem,
    TextItem,
    ToolChoice,
    ToolForm,
)

OSLO, ROME = '{"city": "Oslo"}', '{"city":  "Rome"}'
THOUGHT = "First the north,\nthen the sóuth."
TOOLS = [
    ToolForm(
        "forecast",
        "Tell the weather.",
        {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    ),
    ToolForm(
        "transfer",
        "Send money.",
        {
            "type": "object",
            "properties": {"sum": {"type": "number"}},
            "required": ["sum"],
            "additionalProperties": False,
        },
        strict=True,
    ),
    ToolForm("bell", "", {"type": "object", "properties": {}}, strict=False),
]
ASK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What's the weather?"},
]


@dataclass(frozen=True)
class Scene:
    """A reply.

    Attributes:
        reply: In the words of a script of `services.loopback`.
        fails: The positions of those calls that are wrong.
        unreadable: The positions of the calls with arguments that are not one object.
        repeats: Whether a key of the arguments stands twice.
    """

    reply: list[tuple[str, ...]]
    fails: tuple[int, ...] = ()
    unreadable: tuple[int, ...] = ()
    repeats: bool = False

    @property
    def calls(self) -> list[tuple[str, ...]]:
        return [item for item in self.reply if item[0] == "call"]

    @property
    def is_cut(self) -> bool:
        return ("cut",) in self.reply

    @property
    def is_refused(self) -> bool:
        return any(item[0] == "refusal" for item in self.reply)


def _call(arguments: str, own: str = "call_A", tool: str = "forecast") -> tuple[str, ...]:
    return ("call", own, tool, arguments)


def _wrong(arguments: str, tool: str = "transfer", *, is_read: bool = False) -> Scene:
    return Scene([_call(arguments, tool=tool)], (0,), () if is_read else (0,))


_QUOTED = '<tool>[{"call_id": "x", "tool_name": "transfer", "arguments": {"sum": 5}}]</tool>'
_CLOSING = '{"city": "Oslo"}}, {"call_id": "c9", "tool_name": "transfer", "arguments": {"sum": 1}'
SCENES: dict[str, Scene] = {
    "one call": Scene([_call(OSLO)]),
    "text beside calls": Scene([("text", "I löok."), _call(OSLO), _call(ROME, "call_B")]),
    "reasoning": Scene([("think", "hm"), _call(OSLO)]),
    "reasoning, text and calls": Scene(
        [("think", THOUGHT), ("text", "Both."), _call(OSLO), _call(ROME, "call_B")]
    ),
    "no arguments": Scene([_call("", tool="bell")]),
    "text that quotes a call": Scene([("text", f"Write {_QUOTED} like that.")]),
    "a key twice": Scene([_call('{"sum": 5, "sum": 900}', tool="transfer")], (0,), (), True),
    "no number": _wrong('{"sum": NaN}'),
    "infinity": _wrong('{"sum": 1e999}'),
    "cut by the limit": Scene([_call('{"city": "Os'), ("cut",)], (), (0,)),
    "cut, and called whole": _wrong('{"sum": 90'),
    "two objects": _wrong('{"sum": 5}{"sum": 6}'),
    "an object and quotes": _wrong('{}""', tool="bell"),
    "an array": _wrong('["Oslo"]', tool="forecast"),
    "an unknown tool": _wrong(OSLO, tool="forcast", is_read=True),
    "the name of another form": _wrong(OSLO, tool="functions.forecast", is_read=True),
    "an unknown argument": _wrong('{"city": "Oslo", "day": 2}', "forecast", is_read=True),
    "a wrong type": _wrong('{"city": "Oslo", "days": "soon"}', "forecast", is_read=True),
    "one right and one wrong": Scene(
        [_call(OSLO), _call('{"sum": "five"}', "call_B", "transfer")], (0, 1)
    ),
    "an id twice": Scene([_call(OSLO), _call(ROME)], (0, 1)),
    "brackets that close early": _wrong(_CLOSING, tool="forecast"),
    "a refusal": Scene([("refusal", "I can't help with that.")]),
    "single quotes": Scene([_call("{'city': 'Oslo'}")], (), (0,)),
    "a comma at the end": Scene([_call('{"city": "Oslo",}')], (), (0,)),
}


def joined(items: list[object]) -> list[dict[str, Any]]:
    """Items of a reply as a run keeps them: pieces of one are one."""
    made: list[dict[str, Any]] = []
    calls: dict[int, dict[str, Any]] = {}
    for item in items:
        last = made[-1] if made else {}
        if isinstance(item, TextItem):
            if "text" not in last:
                made.append({"text": ""})
            made[-1]["text"] += item.text
        elif isinstance(item, ReasoningItem):
            if "reasoning" not in last or last["data"] is not None:
                made.append({"reasoning": "", "data": None})
            made[-1]["reasoning"] += item.text
            made[-1]["data"] = item.data
        elif isinstance(item, CallItem):
            if item.index not in calls:
                calls[item.index] = {"call": "", "tool": "", "arguments": "", "data": None}
                made.append(calls[item.index] | {"whole": False})
                calls[item.index] = made[-1]
            call = calls[item.index]
            assert not call["whole"]
            call["call"] += item.id
            call["tool"] += item.tool
            call["arguments"] += item.arguments
            call["data"] = item.data or call["data"]
            call["whole"] = item.is_whole
        else:
            assert isinstance(item, FaultItem)
            made.append({"fault": item.message})
    return made


def followed(scene: Scene, made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation after a reply, with a result for each call."""
    if scene.is_cut:
        made = [one for one in made if "call" not in one and "reasoning" not in one]
        made = made or [{"text": "(the reply was cut)"}]
    own = [{name: value for name, value in one.items() if name != "whole"} for one in made]
    results = [
        {"result": one["call"], "tool": one["tool"], "content": f"result {at}"}
        | {"error": at in scene.fails}
        for at, one in enumerate(one for one in own if "call" in one)
    ]
    told = [*results, {"text": "Go on."}]
    return [
        *ASK,
        {"role": "assistant", "content": "as before", "items": own},
        {"role": "user", "content": "as before", "items": told},
    ]


class Asking:
    """Calls a model, sync or async, and reads its reply to the end."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def __call__(self, model: Any, messages: list[dict[str, Any]], **offered: Any) -> Answer:
        offered = {"tools": TOOLS, "tool_choice": ToolChoice(), **offered}
        made = model(messages, **offered)
        if model.is_async:
            return self._runner.run(_read_async(made))
        if hasattr(made, "items"):
            return Answer([*made.items], made.finish_reason, made.usage)
        with closing(made):
            return _gathered(list(made))


@dataclass
class Answer:
    """A whole reply, as its items came."""

    items: list[object]
    finish: str | None
    usage: Any


async def _read_async(made: Any) -> Answer:
    reply = await made
    if hasattr(reply, "items"):
        return Answer([*reply.items], reply.finish_reason, reply.usage)
    try:
        return _gathered([chunk async for chunk in reply])
    finally:
        await reply.aclose()


def _gathered(chunks: list[Any]) -> Answer:
    items = [item for chunk in chunks for item in chunk.items]
    assert not any(chunk.text for chunk in chunks)
    ends = [chunk.finish_reason for chunk in chunks if chunk.finish_reason]
    usage: dict[str, float] = {}
    for chunk in chunks:
        usage |= chunk.usage or {}
    return Answer(items, ends[-1] if ends else None, usage)


def ways(*splits: int | None) -> list[tuple[bool, int | None]]:
    """Sync and async, and the characters of a piece of a stream; `None` for a whole reply."""
    return [(is_async, split) for is_async in (False, True) for split in splits]
