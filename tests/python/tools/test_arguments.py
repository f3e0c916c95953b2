"""Checks of arguments against `jsonschema`, on the corpus and on what hypothesis finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from argument_schemas import DEFINITIONS, cases, objects_and_arguments
from callslip import Agent, ReactProtocol, ScriptedModel, tool
from callslip._core import ToolSet
from random_cases import cases as count
from scripted import act, asked, finish

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "arguments.jsonl")
    .read_text("utf-8")
    .splitlines()
]


def check(schema: dict[str, Any], arguments: str) -> dict[str, Any]:
    spec = {"name": "f", "description": "", "parameters": schema}
    return ToolSet([json.dumps(spec)]).check("f", arguments)


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["name"])
def test_the_corpus(case: dict[str, Any]) -> None:
    arguments = json.loads(case["arguments"])
    oracle = Draft202012Validator(case["schema"])
    if not case["valid"]:
        assert not oracle.is_valid(arguments)
        with pytest.raises(ValueError, match=r"^[^A-Z\n]"):
            check(case["schema"], case["arguments"])
        return
    expected = json.loads(case.get("result", case["arguments"]))
    # What is coerced is wrong as it was written, but for `5.0`, and right as it is read.
    assert oracle.is_valid(expected)
    if "coerced" not in case:
        assert oracle.is_valid(arguments)
    checked = check(case["schema"], case["arguments"])
    assert checked == expected
    assert json.dumps(checked) == json.dumps(expected)


def whole(schema: Any) -> dict[str, Any]:
    """Return the schema of arguments whose one `x` this is."""
    return {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "additionalProperties": False,
        "$defs": DEFINITIONS,
    }


@settings(max_examples=count(600))
@given(cases())
def test_what_is_valid_stays_and_what_is_accepted_is_valid(case: tuple[Any, Any]) -> None:
    agrees_with_the_oracle(whole(case[0]), {"x": case[1]})


@settings(max_examples=count(300))
@given(objects_and_arguments())
def test_the_same_holds_where_the_arguments_are_a_combination(
    case: tuple[Any, dict[str, Any]],
) -> None:
    schema, arguments = case
    agrees_with_the_oracle({**schema, "$defs": DEFINITIONS}, arguments)


def agrees_with_the_oracle(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    valid = Draft202012Validator(schema).is_valid
    problems = ""
    checked = None
    try:
        checked = check(schema, json.dumps(arguments))
    except ValueError as error:
        problems = str(error)
    if problems:
        assert "\n" not in problems
        # A name that nobody speaks of is let in by JSON Schema, and is a mistake of a model's.
        assert not valid(arguments) or "unknown argument" in problems
    else:
        assert valid(checked)
        assert not valid(arguments) or same(checked, arguments)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit; `5.0` for an integer is read as `5`."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if type(one) is int and type(other) is float:
        return one == other
    return type(one) is type(other) and bool(one == other)


def test_all_problems_of_a_call_are_told_at_once() -> None:
    schema = whole(
        {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "maximum": 9},
                "order": {"enum": ["asc", "desc"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "at": {"$ref": "#/$defs/node"},
            },
            "required": ["count", "order"],
            "additionalProperties": False,
        }
    )
    given = {"count": "12", "oder": "asc", "tags": ["a", None], "at": {"a": 1.5}}
    with pytest.raises(ValueError) as caught:
        check(schema, json.dumps({"x": given, "y": 1}))
    assert str(caught.value).split("; ") == [
        "unknown argument 'y': there is 'x'",
        "'x' lacks the required property 'order' (\"asc\" or \"desc\")",
        "'x.count' must be at most 9: got the integer 12",
        "'x.tags[1]' must be a string: got null",
        "'x.at.a' must be an integer: got the number 1.5",
        "'x' has no property 'oder': did you mean 'order'?",
    ]


def test_what_is_read_as_another_type_is_recorded_or_refused_where_reading_is_strict() -> None:
    @tool
    def f(count: int, tags: list[str], ratio: float = 1) -> list[Any]:
        return [count, tags, ratio]

    given = {"count": "5", "tags": '["a"]', "ratio": 2}
    agent = Agent(ScriptedModel([act("f", **given), finish()]), protocol="react", tools=[f])
    result = agent.run_sync("go")
    (opened,) = (event for event in result.run.log if event.kind == "ticket_opened")
    assert opened.coerced == ["/count", "/tags"]
    assert opened.arguments == {"count": 5, "tags": ["a"], "ratio": 2}
    assert result.tickets[0].result == [5, ["a"], 2.0]

    strict = ReactProtocol(strict=True)
    right = {"count": 5, "tags": ["a"], "ratio": 2}
    model = ScriptedModel([act("f", **given), act("f", **right), finish()])
    result = Agent(model, protocol=strict, tools=[f]).run_sync("go")
    assert result.run.violations == 1
    assert asked(result.messages)[2]["content"].startswith(
        "Observation: Your reply was not executed: 'count' must be an integer: "
        'got the string "5"; \'tags\' must be [str]: got the string "[\\"a\\"]".\n'
    )
    (opened,) = (event for event in result.run.log if event.kind == "ticket_opened")
    assert opened.coerced == []


def test_a_short_reply_does_not_keep_the_check_busy() -> None:
    branches = [
        {"type": "object", "properties": {"k": {"const": tag}, "v": {"$ref": "#/$defs/any"}}}
        for tag in "ab"
    ]
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/any"}},
        "$defs": {"any": {"anyOf": branches}},
    }
    value: object = "bad"
    for _ in range(60):
        value = {"k": "b", "v": value}
    with pytest.raises(ValueError, match="^the arguments take too long to check: "):
        check(schema, json.dumps({"x": value}))


def test_a_schema_that_names_no_properties_takes_any() -> None:
    assert check({"type": "object"}, '{"x": 1}') == {"x": 1}
    assert check({"type": "object", "required": ["x"]}, '{"x": 1}') == {"x": 1}
    with pytest.raises(ValueError, match="^unknown argument 'x': there are none"):
        check({"type": "object", "properties": {}}, '{"x": 1}')
