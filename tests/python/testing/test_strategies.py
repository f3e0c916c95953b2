"""Replies that hypothesis draws: right ones are read and called, and all are survived."""

from datetime import date
from enum import Enum
from typing import Literal, TypedDict

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from callslip import (
    Agent,
    Limits,
    ModelReply,
    RunFailed,
    ScriptedModel,
    Tool,
    UsageError,
    replay,
    tool,
)
from callslip.models._items import Envelope
from callslip.testing import PROTOCOLS, Say, codes
from callslip.testing.strategies import replies
from random_cases import cases


class Shelf(Enum):
    LOW = "low"
    HIGH = "high"


class Place(TypedDict):
    shelf: Shelf
    row: int | None


CALLS = []


@tool
def order(  # noqa: PLR0917
    item: str,
    count: int,
    price: float = 1.0,
    currency: Literal["NOK", "EUR"] = "NOK",
    until: date | None = None,
    places: list[Place] | None = None,
    tags: dict[str, str] | None = None,
) -> str:
    """Order."""
    CALLS.append((item, count, price, currency, until, places, tags))
    assert isinstance(item, str)
    assert isinstance(count, int)
    assert all(isinstance(place["shelf"], Shelf) for place in places or ())
    return "ordered"


@tool
def ping() -> str:
    """Ping."""
    CALLS.append("ping")
    return "pong"


def grow(**arguments):
    CALLS.append(arguments)
    return "grown"


TREE = Tool.from_schema(
    grow,
    description="Grow.",
    parameters={
        "type": "object",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 3},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
                },
                "required": ["size"],
                "additionalProperties": False,
            }
        },
        "properties": {
            "tree": {"$ref": "#/$defs/node"},
            "name": {"type": "string", "pattern": "^[a-z]{2,4}$"},
            "mode": {"const": "fast"},
            "count": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        },
        "required": ["tree", "name", "mode"],
    },
)
TOOLS = [order, ping, TREE]


@pytest.mark.random_cases
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_right_replies_break_no_rule_and_their_calls_are_made(protocol):
    say = Say(protocol)

    @settings(max_examples=cases(60))
    @given(replies(protocol, TOOLS, broken=False))
    def check(reply):
        CALLS.clear()
        script = ScriptedModel([reply, say.finish("x"), say.finish("x")])
        result = Agent(script, protocol=protocol, tools=TOOLS).run_sync("go")
        assert codes(result) == []
        assert [ticket.outcome for ticket in result.tickets] == ["ok"] * len(CALLS)

    check()


@pytest.mark.random_cases
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_any_replies_are_survived(protocol):
    say = Say(protocol)

    @settings(max_examples=cases(60))
    @given(st.lists(replies(protocol, TOOLS), max_size=4))
    def check(said):
        script = ScriptedModel([*said, *[say.finish("x")] * 5])
        agent = Agent(script, protocol=protocol, tools=TOOLS, limits=Limits(turns=6))
        try:
            run = agent.run_sync("go").run
        except RunFailed as error:
            run = error.run
        assert replay(run).export() == run.export()

    check()


@pytest.mark.random_cases
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_tool_its_optional_arguments_and_broken_replies_are_drawn(protocol):
    drawn = replies(protocol, TOOLS)
    for text in ("ping", '"price"', '"below": [{', '"places": [{', '"until": "2', "no_such_tool"):
        assert text in shown(found(drawn, lambda reply, text=text: text in shown(reply)))
    found(drawn, lambda reply: reply == "")
    found(drawn, lambda reply: isinstance(reply, ModelReply))


def shown(reply):
    """A reply; in a native one, arguments are JSON within the JSON of their line."""
    return str(reply).replace('\\"', '"') if isinstance(reply, Envelope) else str(reply)


def found(drawn, holds):
    """A reply for which something holds; the smallest one is not looked for."""
    options = settings(max_examples=5_000, phases=[Phase.generate], database=None)
    return find(drawn, holds, settings=options)


def test_there_is_no_such_protocol():
    with pytest.raises(
        UsageError, match="^expected protocol='ticket', 'chatty', 'react' or 'native'"
    ):
        replies("xml", TOOLS)
