"""Eight awkward functions: each gives the right schema, and gets what it is annotated with.

No docstring, `*args`, nested models, forward references, unions, untyped, `TypedDict` on 3.11,
keyword-only. What else annotations may be stands in `test_annotations.py`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from callslip import ToolError, tool
from callslip.tools._toolbox import as_tool
from tool_calls import called


def test_1_no_docstring():
    @tool
    def area(width: float, height: float = 2):
        return [width, height]

    assert area.description == ""
    assert area.parameters == {
        "type": "object",
        "properties": {"width": {"type": "number"}, "height": {"type": "number", "default": 2}},
        "required": ["width"],
        "additionalProperties": False,
    }
    # A float is one, however it is written.
    assert called(area, width=3) == "[3.0,2]"


def test_2_star_args():
    def total(*numbers: int, scale: int = 1):
        return sum(numbers) * scale

    with pytest.raises(ToolError) as caught:
        as_tool(total)._spec()
    assert str(caught.value) == (
        "tool 'total' takes *numbers, which a model can't give by name: "
        "declare a list parameter instead"
    )


class Street(BaseModel):
    name: str
    number: int = Field(ge=1)


class Address(BaseModel):
    """Where somebody lives."""

    street: Street
    since: dt.date | None = None


class Person(BaseModel):
    name: str
    addresses: list[Address] = []


def test_3_nested_models():
    @tool
    def move(person: Person, to: Address):
        assert isinstance(person.addresses[0].street, Street)
        return f"{person.name} from {person.addresses[0].street.name}, {type(to.since).__name__}"

    parameters = move.parameters
    assert parameters["properties"] == {
        "person": {"$ref": "#/$defs/Person"},
        "to": {"$ref": "#/$defs/Address"},
    }
    assert parameters["$defs"]["Address"] == {
        "type": "object",
        "title": "Address",
        "description": "Where somebody lives.",
        "properties": {
            "street": {"$ref": "#/$defs/Street"},
            "since": {
                "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
                "default": None,
                "title": "Since",
            },
        },
        "required": ["street"],
        "additionalProperties": False,
    }
    home = {"street": {"name": "Main", "number": 5}}
    ada = {"name": "Ada", "addresses": [home]}
    new = {"street": {"name": "Side", "number": "7"}, "since": "2025-01-31"}
    assert called(move, person=ada, to=new) == "Ada from Main, date"
    assert called(move, person=ada, to={"street": {"nmae": "Side", "number": 0}}) == (
        "Your reply was not executed: 'to.street' lacks the required property 'name' (string); "
        "'to.street.number' must be at least 1: got the integer 0; "
        "'to.street' has no property 'nmae': did you mean 'name'?"
    )


def test_4_forward_references():
    @tool
    def depth(tree: Tree):
        assert isinstance(tree.children[0], Tree)
        return len(tree.children)

    def lost(tree: list[Trea]): ...  # noqa: F821

    assert depth.parameters["properties"] == {"tree": {"$ref": "#/$defs/Tree"}}
    assert called(depth, tree={"children": [{"children": []}, {}]}) == "2"
    with pytest.raises(ToolError) as caught:
        as_tool(lost)._spec()
    assert str(caught.value) == (
        "tool 'lost': the annotation of 'tree' (list[Trea]) can't be used: "
        "name 'Trea' is not defined; import the name, not only under TYPE_CHECKING"
    )


class Tree(BaseModel):
    children: list[Tree] = []


def test_5_unions():
    @tool
    def find(key: int | str, at: dt.date | list[dt.date] | None = None):
        return [type(key).__name__, [type(one).__name__ for one in at] if at else None]

    date = {"type": "string", "format": "date"}
    assert find.parameters["properties"] == {
        "key": {"type": ["integer", "string"]},
        "at": {"anyOf": [date, {"type": "array", "items": date}, {"type": "null"}]},
    }
    # What is right as it is written stays so.
    assert called(find, key="5", at=["2025-01-31"]) == '["str",["date"]]'
    assert called(find, key=5) == '["int",null]'
    assert called(find, key=5.5) == (
        "Your reply was not executed: 'key' must be an integer or a string: got the number 5.5."
    )


def test_6_untyped():
    @tool
    def keep(value, unit="m"):
        return [value, unit]

    assert keep.parameters["properties"] == {"value": {}, "unit": {"default": "m"}}
    assert called(keep, value={"a": [1, None]}) == '[{"a":[1,null]},"m"]'
    assert called(keep, vlaue=1) == (
        "Your reply was not executed: unknown argument 'vlaue': did you mean 'value'?; "
        "missing required argument 'value' (any value)."
    )


class Movie(TypedDict):
    """One that was shown."""

    title: str
    shown: dt.date
    sequel: NotRequired[Movie]


class Query(TypedDict, total=False):
    year: int
    words: list[str]


def test_7_typed_dict_on_python_311():
    @tool
    def rate(movies: list[Movie], query: Query):
        return [type(movies[0]["sequel"]["shown"]).__name__, query]

    assert rate.parameters["properties"] == {
        "movies": {"type": "array", "items": {"$ref": "#/$defs/Movie"}},
        "query": {
            "type": "object",
            "properties": {
                "year": {"type": "integer"},
                "words": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": False,
        },
    }
    described = rate.parameters["$defs"]["Movie"]
    assert described["description"] == "One that was shown."
    assert described["required"] == ["title", "shown"]
    assert described["properties"]["sequel"] == {"$ref": "#/$defs/Movie"}
    first: Any = {"title": "A", "shown": "2025-01-31"}
    second = {**first, "sequel": first}
    assert called(rate, movies=[second], query={"year": "1999"}) == '["date",{"year":1999}]'


def test_8_keyword_only():
    @tool
    def send(to: str, /, *, subject: str, copies: int = 1):
        return [to, subject, copies]

    assert send.parameters["properties"] == {
        "to": {"type": "string"},
        "subject": {"type": "string"},
        "copies": {"type": "integer", "default": 1},
    }
    assert send.parameters["required"] == ["to", "subject"]
    assert called(send, to="a", subject="b") == '["a","b",1]'
