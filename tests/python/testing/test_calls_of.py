"""A script with a call of each tool, made from their schemas."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import Field

from callslip import Agent, ScriptedModel, Tool, UsageError, tool
from callslip.testing import PROTOCOLS, Called, Say


class Unit(Enum):
    CELSIUS = "C"
    KELVIN = "K"


@dataclass
class Place:
    name: str
    unit: Unit
    inner: "Place | None" = None


@tool
def plain(city: str, days: int, exact: bool, share: float, more: str = "none") -> str:
    """Take simple values."""
    return f"{city} {days} {exact} {share} {more}"


@tool
def nested(places: Annotated[list[Place], Field(min_length=2)], kind: Literal["a", "b"]) -> int:
    """Take objects in a list."""
    return len(places)


@tool
def bounded(
    *,
    low: Annotated[int, Field(ge=7)],
    high: Annotated[int, Field(lt=-3)],
    step: Annotated[int, Field(gt=10, multiple_of=5)],
    code: Annotated[str, Field(min_length=6, max_length=7)],
    short: Annotated[str, Field(max_length=2)],
    pair: tuple[int, str],
    either: int | str,
) -> int:
    """Take values within limits."""
    return step


@dataclass
class Order:
    count: Annotated[int, Field(ge=100, le=200)]
    discount: Annotated[float, Field(lt=-2.5)]
    code: Annotated[str, Field(min_length=12)]
    places: Annotated[list[Place] | None, Field(min_length=2)]
    nothing: None


@tool
def deep(orders: list[list[Order]], share: Annotated[float, Field(gt=7.2)]) -> int:
    """Take bounded values inside of others."""
    return len(orders)


@tool
def now() -> str:
    """Take nothing."""
    return "noon"


TOOLS = [plain, nested, bounded, deep, now]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_tool_is_called_once(name):
    with ScriptedModel(Say(name).calls_of(TOOLS)) as model:
        result = Agent(model, protocol=name, tools=TOOLS).run_sync("Try all.")

    assert result.tickets == [Called(one.name, outcome="ok") for one in TOOLS]
    assert result.run.violations == 0
    assert result.value == "done"


@pytest.mark.parametrize("one", TOOLS, ids=lambda one: one.name)
def test_the_arguments_are_valid_against_the_schema(one):
    call, _end = Say("react").calls_of([one])
    arguments = json.loads(call)["args"]

    Draft202012Validator(one.parameters).validate(arguments)
    assert arguments.keys() == set(one.parameters.get("required", ()))


def test_a_value_of_the_schema_is_taken():
    schema = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "pattern": "^[A-Z]{3}$", "examples": ["NOK"]},
            "optional": {"type": "integer"},
        },
        "required": ["code"],
    }

    def rate(**arguments):
        return arguments

    made = Tool.from_schema(rate, parameters=schema)
    with ScriptedModel(Say("react").calls_of([made], answer="end")) as model:
        result = Agent(model, protocol="react", tools=[made]).run_sync("Try it.")

    assert result.tickets[0].arguments == {"code": "NOK"}
    assert result.value == "end"


def test_a_schema_without_a_known_value_is_an_error():
    @tool
    def rate(code: Annotated[str, Field(pattern="^[A-Z]{3}$")]) -> int:
        """Take a code."""
        return len(code)

    with pytest.raises(UsageError, match="got that of the tool 'rate': add `examples`"):
        Say("react").calls_of([rate])
