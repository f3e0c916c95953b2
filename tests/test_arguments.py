"""Checks of arguments against `jsonschema`, on the corpus and on what hypothesis finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from callslip._core import ToolSet

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "arguments.jsonl").read_text("utf-8").splitlines()
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


leaves = (
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda t: {"type": t})
    | st.just({"enum": ["a", 1, None]})
    | st.just({"type": "integer", "minimum": 0, "maximum": 9})
    | st.just({"type": "string", "maxLength": 3})
)
schemas = st.recursive(
    leaves,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda fields: {"type": "object", "properties": fields, "additionalProperties": False},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        )
    ),
    max_leaves=6,
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    # Beyond 2**53 the digits that are written and the float that Python reads are two numbers.
    | st.floats(-(2**53), 2**53)
    | st.sampled_from(["", "a", "abcd", "5", "-1", "2.5", "true", "null", "[1]", '{"a":1}']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=500, deadline=None)
@given(schemas, values)
def test_accepted_is_valid_and_refused_is_not(schema: dict[str, Any], value: Any) -> None:
    whole = {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "additionalProperties": False,
    }
    oracle = Draft202012Validator(whole)
    arguments = {"x": value}
    try:
        checked = check(whole, json.dumps(arguments))
    except ValueError:
        assert not oracle.is_valid(arguments)
    else:
        assert oracle.is_valid(checked)
        if oracle.is_valid(arguments):
            # Only `5.0` for an integer is read as something else, and that is equal to it.
            assert checked == arguments
