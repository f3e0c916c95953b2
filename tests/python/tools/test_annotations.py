"""What annotations become: a schema for the model, and values for the function."""

from __future__ import annotations

import datetime as dt
import enum
import inspect
import json
import math
import typing
import uuid
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
    TypeVar,
    Unpack,
)

import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from callslip import Tool, ToolError, tool
from callslip._base.json import to_json
from callslip.tools._annotation import shape_of
from callslip.tools._toolbox import as_tool
from tool_calls import called, properties


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Spot(NamedTuple):
    x: int
    when: dt.date = dt.date(2025, 1, 1)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, use_attribute_docstrings=True)

    at: dt.date
    """When it was."""
    pair: tuple[int, str] = Field(alias="thePair")

    @field_validator("at")
    @classmethod
    def recent(cls, at: dt.date) -> dt.date:
        if at.year < 2000:
            raise ValueError(f"{at.year} is too long ago")
        return at


@dataclass(slots=True, kw_only=True)
class Order:
    item: str
    rush: InitVar[bool] = False
    notes: list[str] = field(default_factory=list)
    price: float = field(init=False, default=1)

    def __post_init__(self, rush: bool) -> None:
        self.price = 2.0 if rush else self.price


X = TypeVar("X")


class Page(BaseModel, Generic[X]):
    items: list[X]


class Pairs(TypedDict, Generic[X]):
    first: X
    rest: NotRequired[list[X]]


Ids = typing_extensions.TypeAliasType("Ids", list[int])
Json = typing_extensions.TypeAliasType("Json", "int | list[Json]")

DATE = {"type": "string", "format": "date"}
ARRAY = {"type": "array"}


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "value"),
    [
        (Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}, "1.10", Decimal("1.10")),
        (dt.timedelta, {"type": "string", "format": "duration"}, "PT1H", dt.timedelta(hours=1)),
        (
            uuid.UUID,
            {"type": "string", "format": "uuid"},
            str(uuid.UUID(int=1)),
            uuid.UUID(int=1),
        ),
        (Path, {"type": "string", "format": "path"}, "a/b", Path("a/b")),
        (bytes, {"type": "string", "format": "binary"}, "ab", b"ab"),
        (Size, {"$ref": "#/$defs/Size"}, "2", Size.LARGE),
        (Literal[Color.RED, "z"], {"enum": ["red", "z"]}, "red", Color.RED),
        (Literal[Size.LARGE] | None, {"anyOf": [{"const": 2}, {"type": "null"}]}, 2, Size.LARGE),
        (
            frozenset[int],
            {**ARRAY, "items": {"type": "integer"}, "uniqueItems": True},
            [1],
            frozenset({1}),
        ),
        (tuple[dt.date, ...], {**ARRAY, "items": DATE}, ["2025-01-01"], (dt.date(2025, 1, 1),)),
        (Iterable[dt.date], {**ARRAY, "items": DATE}, ["2025-01-01"], [dt.date(2025, 1, 1)]),
        (typing.List, ARRAY, [1, "a"], [1, "a"]),  # noqa: UP006
        (typing.Mapping, {"type": "object"}, {"a": 1}, {"a": 1}),
        (Spot, {"$ref": "#/$defs/Spot"}, [1, "2025-01-31"], Spot(1, dt.date(2025, 1, 31))),
        (Ids, {**ARRAY, "items": {"type": "integer"}}, ["1"], [1]),
        (Json, {"$ref": "#/$defs/Json"}, [1, [2]], [1, [2]]),
        (X, {}, {"a": 1}, {"a": 1}),
        (Page[int], {"$ref": "#/$defs/Page_int_"}, {"items": [1]}, Page[int](items=[1])),
        (
            Pairs[dt.date],
            {"$ref": "#/$defs/Pairs_date_"},
            {"first": "2025-01-31", "rest": ["2025-01-31"]},
            {"first": dt.date(2025, 1, 31), "rest": [dt.date(2025, 1, 31)]},
        ),
        (typing.LiteralString, {"type": "string"}, "a", "a"),
        (Any, {}, [None], [None]),
        (object, {}, "5", "5"),
        (
            Strict,
            {"$ref": "#/$defs/Strict"},
            {"at": "2025-01-31", "thePair": [1, "a"]},
            Strict(at=dt.date(2025, 1, 31), thePair=(1, "a")),
        ),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            {
                "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
                "discriminator": {
                    "propertyName": "kind",
                    "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"},
                },
            },
            {"kind": "dog", "barks": "true"},
            Dog(kind="dog", barks=True),
        ),
    ],
)
def test_values_are_of_their_type(annotation: Any, schema: Any, given: Any, value: Any) -> None:
    got: list[Any] = []

    def f(a): ...

    def g(a):
        got.append(a)

    g.__annotations__["a"] = annotation
    assert properties(g) == {"a": schema}
    assert called(g, a=given) == "null"
    assert got == [value]
    assert type(got[0]) is type(value)


class Weird(enum.Enum):
    PAIR = (1, 2)


class Unready:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise RuntimeError("no schema today")


@pytest.mark.parametrize(
    ("annotation", "cause"),
    [
        (
            Callable[[int], int],
            "(collections.abc.Callable[[int], int]) can't be used: its values have no JSON form",
        ),
        (type[int], "(type[int]) can't be used: its values have no JSON form"),
        (Weird, f"({__name__}.Weird) can't be used: its values have no JSON form"),
        (
            typing.Never,
            "(Never) can't be used: Unable to generate pydantic-core schema for typing.Never",
        ),
        (typing.Self, "(Self) can't be used: `typing.Self` is invalid in this context"),
        (
            Annotated[str, Field(pattern=r"^(?=a)")],
            f"({inspect.formatannotation(Annotated[str, Field(pattern=r'^(?=a)')])}) can't be "
            "used: look-around, including look-ahead and look-behind, is not supported",
        ),
        (list[Unready], f"(list[{__name__}.Unready]) can't be used: no schema today"),
        ("not python", "(not python) can't be used: name 'python' is not defined"),
        ("1 +", "(1 +) can't be used: Forward reference must be an expression -- got '1 +'"),
    ],
)
def test_what_has_no_json_form_is_refused(annotation: Any, cause: str) -> None:
    def f(a): ...

    f.__annotations__["a"] = annotation
    with pytest.raises(ToolError) as caught:
        as_tool(f)._spec()
    told, _, hint = str(caught.value).rpartition("; ")
    assert told == f"tool 'f': the annotation of 'a' {cause}"
    assert hint.startswith("import the name" if "is not defined" in cause else "use a type that")


def test_a_model_that_is_wrong_says_so_in_its_validator_s_words() -> None:
    def f(one: Strict, other: Annotated[dt.date, Field(strict=True)]): ...

    assert as_tool(f).parameters["$defs"]["Strict"]["properties"]["at"] == {
        **DATE,
        "title": "At",
        "description": "When it was.",
    }
    told = called(f, one={"at": "1999-12-31", "thePair": [1, "a"]}, other="soon")
    assert told.startswith(
        "Error calling tool 'f': InvalidArguments: 'one.at': 1999 is too long ago: "
        "got \"1999-12-31\"; 'other' must be a valid date in the format YYYY-MM-DD, "
        'input is too short: got "soon".'
    )


def test_names_that_a_nested_type_does_not_have_are_refused_unless_it_lets_them_in() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="ignore")
        a: int

    def f(dog: Dog, loose: Open):
        return [dog, loose]

    one = Tool(f, names={"Open": Open})
    assert one.parameters["$defs"]["Dog"]["additionalProperties"] is False
    assert "additionalProperties" not in one.parameters["$defs"]["Open"]
    dog = {"kind": "dog", "barks": True}
    assert called(one, dog=dog, loose={"a": 1, "b": 2}) == f'[{to_json(dog)},{{"a":1}}]'
    assert called(one, dog={**dog, "name": "Rex"}, loose={"a": 1}) == (
        "Your reply was not executed: 'dog' has no property 'name': there is 'kind', 'barks'."
    )


def test_what_a_type_writes_may_come_back() -> None:
    class Square(BaseModel):
        side: int

        @computed_field
        @property
        def area(self) -> int:
            return self.side**2

    def f(order: Order, square: Square):
        return [order, square]

    one = Tool(f, names={"Square": Square})
    assert one.parameters["$defs"]["Order"]["properties"].keys() == {"item", "rush", "notes"}
    assert one.parameters["$defs"]["Square"]["properties"].keys() == {"side"}
    written = '[{"item":"a","notes":[],"price":2.0},{"side":2,"area":4}]'
    assert called(one, order={"item": "a", "rush": True}, square={"side": 2}) == written
    order, square = json.loads(written)
    assert called(one, order={**order, "rush": True}, square=square) == written


def test_a_null_is_a_value_where_none_is_the_default() -> None:
    def f(a: int = None, b: list[int] = None, c: dt.date = None): ...  # noqa: RUF013

    assert properties(f) == {
        "a": {"type": ["integer", "null"]},
        "b": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "c": {"anyOf": [DATE, {"type": "null"}]},
    }
    assert called(f, a=None, b=None, c=None) == "null"


def test_a_default_may_stand_in_the_annotation() -> None:
    def f(
        a: Annotated[list[int], Field(default_factory=lambda: [1])],
        b: Annotated[int, Field(5)],
        c: Annotated[int, Field(5)] = 6,
    ):
        return [a, b, c]

    assert as_tool(f).parameters.keys() == {"type", "properties", "additionalProperties"}
    assert properties(f)["b"] == {"type": "integer", "default": 5}
    assert called(f) == "[[1],5,6]"


def test_defaults_without_a_json_form_are_the_function_s_business() -> None:
    def f(a: Any = object, b: float = math.nan, c: list[int] = [1]):  # noqa: B006
        return [a is object, math.isnan(b), c]

    assert properties(f) == {
        "a": {},
        "b": {"type": "number"},
        "c": {"type": "array", "items": {"type": "integer"}, "default": [1]},
    }
    assert called(f) == "[true,true,[1]]"


class Options(TypedDict):
    day: dt.date
    deep: NotRequired[bool]


def test_further_keywords_are_of_their_type_too() -> None:
    def dates(**more: dt.date):
        return {name: type(value).__name__ for name, value in more.items()}

    def known(a: int, **options: Unpack[Options]):
        return [type(options["day"]).__name__, options.get("deep")]

    assert as_tool(dates).parameters["additionalProperties"] == DATE
    assert called(dates, a="2025-01-31") == '{"a":"date"}'
    assert called(dates, a="soon").startswith(
        "Error calling tool 'dates': InvalidArguments: 'a' must be a valid date"
    )
    assert as_tool(known).parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "day": DATE, "deep": {"type": "boolean"}},
        "required": ["a", "day"],
        "additionalProperties": False,
    }
    assert called(known, a=1, day="2025-01-31") == '["date",null]'


def test_types_of_a_function_s_own_scope_are_found_inside_of_others() -> None:
    class Inner(BaseModel):
        x: int

    @dataclass
    class Outer:
        inner: Inner
        more: list[Outer]

    class Row(TypedDict):
        outer: NotRequired[Outer]

    @tool
    def f(row: Row, rows: list[Row]):
        return [type(row["outer"].inner).__name__, rows]

    outer = {"inner": {"x": 1}, "more": []}
    assert called(f, row={"outer": outer}, rows=[{}]) == '["Inner",[{}]]'


def test_an_alias_that_holds_itself_is_described() -> None:
    # As Python 3.12 has them: its value is itself, not its name.
    class TypeAliasType:
        @property
        def __value__(self) -> Any:
            return list[self]

    assert shape_of(TypeAliasType()) is None
