"""Signatures: what a model may give, and how it becomes a call."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    TypedDict,
)

import pytest
from pydantic import BaseModel, Field

from callslip import Tool, ToolError, tool
from callslip.tools._toolbox import as_tool
from tool_calls import call, properties


class Address(BaseModel):
    street: str
    zip: Annotated[str, Field(pattern="^[0-9]{5}$")] = "00000"


class Person(BaseModel):
    name: str
    address: Address | None = None


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Show(TypedDict):
    at: dt.date
    movie: Movie


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0


def test_no_docstring_and_no_hints() -> None:
    def f(a, b=1): ...

    assert as_tool(f).description == ""
    assert as_tool(f).parameters == {
        "type": "object",
        "properties": {"a": {}, "b": {"default": 1}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_positional_star_is_refused() -> None:
    def f(*numbers: int): ...

    with pytest.raises(ToolError) as caught:
        _ = as_tool(f).parameters
    assert str(caught.value) == (
        "tool 'f' takes *numbers, which a model can't give by name: "
        "declare a list parameter instead"
    )


def test_keyword_star_lets_anything_in() -> None:
    def f(a: int, **more: Any):
        return {"a": a, **more}

    def g(**more: int): ...

    assert as_tool(f).parameters["additionalProperties"] is True
    assert as_tool(g).parameters["additionalProperties"] == {"type": "integer"}
    assert call(as_tool(f), a=1, b=2) == ("ok", '{"a":1,"b":2}')


def test_nested_models() -> None:
    @tool
    def greet(person: Person, others: list[Person] = []) -> str:  # noqa: B006
        """Greet.

        Args:
            person: Who.
        """
        assert isinstance(person, Person)
        assert all(isinstance(other, Person) for other in others)
        return f"{person.name} of {person.address.street if person.address else '-'}"

    parameters = greet.parameters
    assert parameters["properties"]["person"] == {
        "$ref": "#/$defs/Person",
        "description": "Who.",
    }
    assert parameters["properties"]["others"]["items"] == {"$ref": "#/$defs/Person"}
    assert parameters["required"] == ["person"]
    assert set(parameters["$defs"]) == {"Person", "Address"}
    person = {"name": "Ada", "address": {"street": "Main"}}
    assert call(greet, person=person, others=[{"name": "Bob"}]) == ("ok", '"Ada of Main"')


def test_forward_references() -> None:
    @tool
    def later(node: Later, deep: list[Later] | None = None) -> str:
        assert isinstance(node, Later)
        return node.name

    assert properties(later)["node"] == {"$ref": "#/$defs/Later"}
    assert call(later, node={"name": "x"}) == ("ok", '"x"')


class Later(BaseModel):
    name: str


def test_local_types_are_found() -> None:
    class Local(BaseModel):
        a: int

    @tool
    def f(local: Local) -> int:
        return local.a

    assert call(f, local={"a": 3}) == ("ok", "3")


def test_an_unresolvable_annotation_names_parameter_and_cause() -> None:
    def f(a: int, b: Missing): ...  # noqa: F821

    def g(a: list["Missing | None"]): ...  # noqa: F821, UP037

    for function, text in [(f, "Missing"), (g, "list['Missing | None']")]:
        name = "b" if function is f else "a"
        with pytest.raises(ToolError) as caught:
            _ = as_tool(function).parameters
        assert str(caught.value) == (
            f"tool '{function.__name__}': the annotation of '{name}' ({text}) can't be used: "
            "name 'Missing' is not defined; import the name, not only under TYPE_CHECKING"
        )


def test_an_indescribable_annotation_names_parameter_and_cause() -> None:
    class Opaque: ...

    def f(a: Opaque): ...

    with pytest.raises(ToolError) as caught:
        _ = Tool(f, names={"Opaque": Opaque}).parameters
    message = str(caught.value)
    assert message.startswith("tool 'f': the annotation of 'a' (")
    assert "can't be used: Unable to generate pydantic-core schema for <class " in message
    assert "\n" not in message


def test_unions() -> None:
    UserId = NewType("UserId", int)

    def f(  # noqa: PLR0917
        a: int | None,
        b: str | list[int] | None = None,
        c: Literal["x", "y", 3] | None = None,
        d: float | int = 1,  # noqa: PYI041
        e: float | None = None,
        g: UserId | str = 0,
        h: list[float] | None = None,
    ):
        return [a, b, c, d, e, g, h]

    one = Tool(f, names=locals())
    assert one.parameters["properties"] == {
        "a": {"type": ["integer", "null"]},
        "b": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "integer"}},
                {"type": "null"},
            ]
        },
        "c": {"anyOf": [{"enum": ["x", "y", 3]}, {"type": "null"}]},
        "d": {"type": ["number", "integer"], "default": 1},
        "e": {"type": ["number", "null"]},
        "g": {"type": ["integer", "string"], "default": 0},
        "h": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
    }
    arguments = {"a": None, "b": [1], "c": 3, "d": 2, "e": 2, "g": "z", "h": [1]}
    assert call(one, **arguments) == ("ok", '[null,[1],3,2,2.0,"z",[1.0]]')


def test_typed_dicts_also_on_311() -> None:
    def f(movie: Movie, show: Show):
        assert isinstance(show["at"], dt.date)
        return [movie, show["movie"]]

    movie = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
        "required": ["title"],
        "additionalProperties": False,
    }
    one = as_tool(f)
    assert one.parameters["properties"]["movie"] == movie
    outcome = call(one, movie={"title": "M"}, show={"at": "2025-01-31", "movie": {"title": "N"}})
    assert outcome == ("ok", '[{"title":"M"},{"title":"N"}]')


def test_positional_only_and_keyword_only() -> None:
    @tool
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int) -> list[int]:
        return [a, b, c, d]

    assert f.parameters["required"] == ["a", "d"]
    assert call(f, a=1, d=4) == ("ok", "[1,2,3,4]")
    assert call(f, a=1, b=9, d=4) == ("ok", "[1,9,3,4]")


def test_constraints_and_fields() -> None:
    def f(
        a: Annotated[int, Field(ge=1, description="From 1.")],
        b: int = Field(7, le=9),
        c: list[int] = Field(default_factory=list, description="Any."),  # noqa: B008
        d: Annotated[str, "In words."] = "x",
    ):
        return [a, b, c, d]

    one = as_tool(f)
    assert one.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "From 1."},
            "b": {"type": "integer", "maximum": 9, "default": 7},
            "c": {"type": "array", "items": {"type": "integer"}, "description": "Any."},
            "d": {"type": "string", "description": "In words.", "default": "x"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert call(one, a=1) == ("ok", '[1,7,[],"x"]')


def test_values_are_made_of_their_json() -> None:
    @tool
    def f(  # noqa: PLR0917
        when: dt.datetime,
        color: Color = Color.RED,
        point: Point = Point(1),  # noqa: B008
        tags: set[str] = frozenset(),
        pair: tuple[int, str] = (1, "a"),
        ratio: float = 1,
        rows: Sequence[dict[str, float]] = (),
    ) -> list[str]:
        values = [when, color, point, tags, pair, ratio, rows]
        return [type(value).__name__ for value in values]

    assert f.parameters["properties"]["color"]["default"] == "red"
    assert f.parameters["properties"]["when"] == {"type": "string", "format": "date-time"}
    outcome = call(
        f,
        when="2025-01-31T12:00:00Z",
        color="blue",
        point={"x": 1},
        tags=["a"],
        pair=[1, "b"],
        ratio=2,
        rows=[{"a": 1}],
    )
    assert outcome[1] == '["datetime","Color","Point","set","tuple","float","list"]'


def test_all_faults_of_values_are_told() -> None:
    def f(days: list[dt.date]) -> None: ...

    told = call(as_tool(f), days=[f"day {n}" for n in range(20)])[1]
    for n in range(16):
        assert f"'days[{n}]' must be a valid date" in told
    assert "days[16]" not in told


def test_values_that_are_none_of_their_type_are_told() -> None:
    @tool
    def f(when: dt.datetime, person: Person | None = None) -> None: ...

    assert call(f, when="noon", person={"name": "A", "address": {"street": 5}})[1] == (
        "Error calling tool 'f': InvalidArguments: 'when' must be a valid datetime or date, "
        "input is too short: got \"noon\"; 'person.address.street' must be a valid string: got 5."
    )


def test_docstring_styles() -> None:
    def numpy(a: int):
        """Do.

        Parameters
        ----------
        a : int
            The a.
        """

    def sphinx(a: int):
        """Do.

        :param a: The a.
        :returns: Nothing.
        """

    def plain(a: int):
        """Do: one thing.

        Args are not described here.
        """

    for function in (numpy, sphinx):
        assert as_tool(function).description == "Do."
        assert properties(function)["a"]["description"] == "The a."
    assert as_tool(plain).description == "Do: one thing.\n\nArgs are not described here."
