"""Results of tools as JSON."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import itertools
import json
import math
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import InitVar, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from callslip import tool
from callslip._base.json import ResultError, to_json
from callslip._core import Outcome
from callslip.tools import Tool
from tool_calls import call, called, kind_and_text


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0
    scale: InitVar[float] = 1.0


class Person(BaseModel):
    name: str
    photo: bytes | None = None


class OddError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Loud:
    def __str__(self) -> str:
        return "LOUD"


circle: list[Any] = []
circle.append(circle)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("日本 \n", '"日本 \\n"'),
        ({"a": [1, 2.5, True]}, '{"a":[1,2.5,true]}'),
        (10**40, "1" + "0" * 40),
        ((1, 2), "[1,2]"),
        ({1: "a", None: "b", (1, 2): "c"}, '{"1":"a","null":"b","(1, 2)":"c"}'),
        ([float("nan"), float("inf"), -float("inf")], '["NaN","Infinity","-Infinity"]'),
        ({"b", "a"}, '["a","b"]'),
        (frozenset({3, 1}), "[1,3]"),
        (b"text", '"text"'),
        (b"\xff\x00", '"/wA="'),
        (Color.RED, '"red"'),
        ({Color.RED: Color.BLUE}, '{"red":"blue"}'),
        (Point(1.0), '{"x":1.0,"y":0.0}'),
        (Person(name="A"), '{"name":"A","photo":null}'),
        ([Person(name="A")], '[{"name":"A","photo":null}]'),
        (dt.date(2025, 1, 31), '"2025-01-31"'),
        (dt.datetime(2025, 1, 31, tzinfo=dt.UTC), '"2025-01-31T00:00:00Z"'),
        (dt.timedelta(hours=1), '"PT1H"'),
        (Path("a") / "b", '"a/b"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
        (ValueError("no"), '"ValueError: no"'),
        (Person(name="A", photo=b"\xff"), '{"name":"A","photo":"/w=="}'),
        (Fraction(1, 3), '"1/3"'),
        ({"a": 1 + 2j}, '{"a":"1+2j"}'),
        ("\ud800", '"\ufffd"'),
        (range(3), "[0,1,2]"),
        ({"a": 1}.values(), "[1]"),
        ({"a": {"b": 1}.items()}, '{"a":[["b",1]]}'),
        ((n for n in [1, 2]), "[1,2]"),
    ],
)
def test_to_json(value: object, text: str) -> None:
    assert to_json(value) == text
    json.loads(text)


def test_the_text_of_an_error_that_has_none_is_its_type() -> None:
    assert to_json(OddError()) == '"<OddError>"'


def levels(number: int, value: Any) -> Any:
    for _ in range(number):
        value = [value]
    return value


def test_nested_values_are_whole_or_fail_the_call() -> None:
    assert to_json(levels(100, math.nan)) == "[" * 100 + '"NaN"' + "]" * 100
    for value in (levels(10_000, 1), levels(300, math.nan)):
        with pytest.raises(ResultError, match="got an object of list with more than 200 levels"):
            to_json(value)


@dataclass
class Leaf:
    above: Any
    below: list[Any]


def tree() -> Leaf:
    """Return objects that know their root. Written out, each level is three times as long."""
    root = Leaf(None, [])
    root.below += [Leaf(root, []) for _ in range(3)]
    return root


@pytest.mark.parametrize("value", [circle, {"a": circle}, tree(), [math.nan, tree()]])
def test_an_object_that_contains_itself_fails_the_call(value: object) -> None:
    with pytest.raises(ResultError, match="that contains itself. Return the parts of it"):
        to_json(value)


def test_an_object_may_be_in_two_places() -> None:
    one = [math.nan]
    assert to_json([one, {"a": one}]) == '[["NaN"],{"a":["NaN"]}]'


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Loud(),
        {"a": Loud()},
        [1, [Loud()]],
        int,
        len,
        lambda: 1,
        type("Bad", (), {"__str__": 5})(),
        open,
        threading.Lock(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_without_json_fails_the_call(value: object) -> None:
    with pytest.raises(ResultError, match="expected a result that has JSON: got an object of"):
        to_json(value)

    def give() -> object:
        """Give it."""
        return value

    kind, told = kind_and_text(Tool(give).call({}, None))
    assert kind == "error"
    assert "ResultError: expected a result that has JSON" in told


def endless() -> Any:
    """Give numbers."""
    yield from itertools.count()


def large() -> Any:
    """Give large texts."""
    while True:
        yield bytearray(16 << 20)


async def endless_async() -> Any:
    """Give numbers."""
    while True:
        yield 1


@pytest.mark.parametrize("give", [endless, large, endless_async])
def test_a_generator_without_end_is_bounded(give: Any) -> None:
    kind, told = kind_and_text(asyncio.run(Tool(give).acall({}, None)))
    assert kind == "error"
    assert "may have no end" in told


def test_what_a_generator_holds_is_closed_at_the_bound() -> None:
    closed = []

    def give() -> Any:
        """Give numbers."""
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    assert isinstance(Tool(give).call({}, None), Outcome.Error)
    assert closed == [True]


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ({"1": "first", 1: "second"}, "'1' and 1"),
        ([{"a": ({None: 1, "null": math.nan},)}], "None and 'null'"),
        ([{"a": ({None: 1, "null": 2},)}], "None and 'null'"),
        ({Color.RED: 1, "red": 2}, "<Color.RED: 'red'> and 'red'"),
    ],
)
def test_keys_that_are_one_in_json_are_a_failed_call(value: object, keys: str) -> None:
    @tool
    def f() -> object:
        return value

    assert call(f) == (
        "error",
        f"Error calling tool 'f': ResultError: object keys collide in JSON: {keys}.",
    )


def test_what_was_not_awaited_is_a_failed_call() -> None:
    async def later() -> int:
        return 1

    @tool
    def listed() -> Any:
        return [later()]

    @tool
    async def twice() -> Any:
        return later()

    for one in (listed, twice):
        expected = (
            f"Error calling tool '{one.name}': ResultError: a coroutine was "
            "not awaited: await it first."
        )
        assert call(one) == ("error", expected)
        assert called(one).startswith(expected)


def test_what_a_generator_gives_is_the_result() -> None:
    @tool
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    @tool
    async def acount(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    @tool
    async def later(n: int) -> Any:
        return map(str, range(n))

    assert called(count, n=3) == "[0,1,2]"
    assert called(acount, n=3) == "[0,1,2]"
    assert called(later, n=2) == '["0","1"]'


def test_a_generator_that_fails_or_takes_too_long_is_a_failed_call() -> None:
    @tool
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("late")

    @tool
    async def abroken() -> AsyncIterator[int]:
        yield 1
        raise ValueError("late")

    @tool
    async def handed() -> Any:
        return broken()

    @tool(timeout=0.05)
    def slow() -> Iterator[int]:
        yield 1
        time.sleep(0.3)

    for one in (broken, abroken, handed):
        expected = f"Error calling tool '{one.name}': ValueError: late."
        assert call(one) == ("error", expected)
        assert called(one).startswith(expected)
    assert call(slow)[1].endswith("TimeoutError: no result within 0.05 seconds.")
