"""Keys of an object that become equal when JSON becomes a value: an entry would be lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, StringConstraints

from callslip import Agent, ReactProtocol, ScriptedModel, Tool, tool
from scripted import act, finish


class Shelf(BaseModel):
    counts: dict[int, str]


@dataclass
class Room:
    shelves: list[Shelf]


@tool
def numbers(v: dict[int, str]) -> None:
    """Take numbers."""
    taken.append(v)


@tool
def floats(v: dict[float, str]) -> None:
    """Take floats."""
    taken.append(v)


@tool
def decimals(v: dict[Decimal, str]) -> None:
    """Take decimals."""
    taken.append(v)


@tool
def moments(v: dict[datetime, str]) -> None:
    """Take moments."""
    taken.append(v)


@tool
def paths(v: list[dict[Path, int]]) -> None:
    """Take paths."""
    taken.append(v)


@tool
def names(v: dict[Annotated[str, StringConstraints(to_lower=True)], int]) -> None:
    """Take names."""
    taken.append(v)


@tool
def room(v: Room) -> None:
    """Take a room."""
    taken.append(v)


taken: list[Any] = []


def call(function: Tool, value: Any) -> list[Any]:
    taken.clear()
    replies = [act(function.name, v=value), finish("done")]
    Agent(ScriptedModel(replies), protocol=ReactProtocol(), tools=[function]).run_sync("t")
    return list(taken)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (numbers, {"1": "a", "01": "b"}),
        (numbers, {"1": "a", "1.0": "b"}),
        (floats, {"0": "a", "-0": "b"}),
        (floats, {"1e400": "a"}),
        (decimals, {"1": "a", "1.0": "b"}),
        (moments, {"2020-01-01T00:00:00Z": "a", "2020-01-01T01:00:00+01:00": "b"}),
        (paths, [{"a": 1}, {"b": 1, "./b": 2}]),
        (names, {"a": 1, "A": 2}),
        (room, {"shelves": [{"counts": {"1": "a", "01": "b"}}]}),
    ],
)
def test_equal_keys_are_refused(function: Tool, value: Any) -> None:
    assert call(function, value) == []


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (numbers, {"1": "a", "2": "b"}),
        (floats, {"1": "a", "1.5": "b"}),
        (paths, [{"a": 1}, {"a": 2}]),
        (names, {"a": 1, "B": 2}),
        (room, {"shelves": [{"counts": {"1": "a"}}]}),
    ],
)
def test_keys_that_differ_are_taken(function: Tool, value: Any) -> None:
    assert len(call(function, value)) == 1


SPELLINGS: list[Callable[[int], str]] = [str, "{:04}".format, "{}.0".format, " {}".format]


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(SPELLINGS)), max_size=5))
def test_every_entry_is_taken_or_none(keys: list[tuple[int, Callable[[int], str]]]) -> None:
    value = {spell(number): str(number) for number, spell in keys}
    made = call(numbers, value)
    whole = {int(float(key)): text for key, text in value.items()}
    assert made == ([whole] if len(whole) == len(value) else []), json.dumps(value)
