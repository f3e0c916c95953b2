"""Bodies with tools that were read before are read as any other."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.gateway._known_tools import parsed
from random_cases import cases

LONG = "x" * 2_100
TOOLS = [
    [{"name": "a", "description": LONG}],
    [{"name": "a", "description": LONG, "n": 1}],
    [{"name": "a", "description": LONG, "n": True}],
    [{"name": "a", "description": LONG, "n": 1.0}],
    [{"description": LONG, "name": "a"}],
    [{"name": "ä", "description": LONG}, {"tools": [LONG]}],
    [],
]
WRITTEN = st.builds(
    lambda value, gap, escaped: json.dumps(value, separators=(",", gap), ensure_ascii=escaped),
    st.sampled_from(TOOLS),
    st.sampled_from([":", ": "]),
    st.booleans(),
)


@st.composite
def bodies(draw):
    """The text of an object with tools in it: as its field, inside of another one, or in a text."""
    fields = []
    for _ in range(draw(st.integers(1, 3))):
        key = draw(st.sampled_from(["tools", "tools", "messages", "metadata"]))
        written = draw(WRITTEN)
        kind = draw(st.sampled_from(["plain", "inside", "text", "null"]))
        if kind == "inside":
            written = f'{{"tools": {written}}}'
        elif kind == "text":
            written = json.dumps(f'"tools": {written}')
        elif kind == "null":
            written = "null"
        fields.append(f'"{key}": {written}')
    return "{" + ", ".join(fields) + "}"


@given(st.lists(bodies(), min_size=1, max_size=6))
@settings(deadline=None, max_examples=cases(150))
def test_a_body_is_read_as_json(texts):
    for text in texts * 2:
        # Written again, 1, 1.0 and True differ, and so does the order of keys.
        assert json.dumps(parsed(text)) == json.dumps(json.loads(text))


def test_the_same_tools_are_the_same_list():
    def body(words):
        return json.dumps({"messages": [words], "tools": [{"name": "b", "description": LONG}]})

    assert parsed(body("a"))["tools"] is parsed(body("b"))["tools"]


@pytest.mark.parametrize("end", ["", "]", '"', "{}", "NaN"])
def test_a_broken_body_is_refused(end):
    whole = json.dumps({"tools": [{"name": "c", "description": LONG}], "n": 1})
    parsed(whole)
    with pytest.raises(ValueError):
        parsed(whole[:-2] + end)
    assert math.isfinite(parsed(whole)["n"])
