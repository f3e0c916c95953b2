"""Calls and violations, compared with those of a run."""

import pytest

from callslip import Agent, RunFailed, ScriptedModel, tool
from callslip.testing import PROTOCOLS, Called, Faults, Say, codes
from callslip.testing.faults import cut, two_moves, unknown_tool


@tool
def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"4 degrees in {city} for {days}"


class AnyText:
    """A value that equals all texts, as those of libraries do."""

    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, str)


def answered(name="react"):
    say = Say(name)
    script = [
        say.call("weather", city="Oslo", days=2),
        say.call("weather", city="Atlantis"),
        say.finish("4"),
    ]
    return Agent(ScriptedModel(script), protocol=name, tools=[weather]).run_sync("How is it?")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_calls_equal_tickets(name):
    oslo, atlantis = Called("weather", city="Oslo"), Called("weather", city="Atlantis")
    tickets = answered(name).tickets

    assert tickets == [oslo, atlantis]
    assert [oslo, atlantis] == tickets
    assert tickets != [atlantis, oslo]
    assert tickets != [oslo]


@pytest.mark.parametrize(
    "called",
    [
        Called(),
        Called("weather"),
        Called(days=2),
        Called("weather", city=AnyText()),
        Called("weather", city="Oslo", days=2, outcome="ok"),
    ],
)
def test_any_field_may_be_left_out(called):
    assert answered().tickets[0] == called


@pytest.mark.parametrize(
    "called",
    [
        Called("stock"),
        Called(outcome="error"),
        Called("weather", city="Bergen"),
        Called("weather", city=None),
        Called("weather", unit=None),
        Called(days=AnyText()),
    ],
)
def test_another_call_does_not_equal_a_ticket(called):
    assert answered().tickets[0] != called


def test_the_outcome_is_that_of_the_ticket():
    assert answered().tickets == [Called(outcome="ok"), Called(outcome="error")]


def test_a_call_is_shown_as_it_is_written():
    assert repr(Called("weather", city="Oslo", outcome="ok")) == (
        "Called('weather', city='Oslo', outcome='ok')"
    )
    assert repr(Called()) == "Called()"
    assert Called("weather", days=1) == Called("weather", days=1)
    assert Called("weather", days=1) != Called("weather", days=2)
    assert Called("weather") != "weather"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_codes_are_those_of_the_violations(name):
    say = Say(name)
    script = ScriptedModel([say.call("weather", city="Oslo")] * 3 + [say.finish("4")])
    with Faults(script, say, {1: cut, 3: unknown_tool}) as model:
        result = Agent(model, protocol=name, tools=[weather]).run_sync("How is Oslo?")

    assert codes(result) == codes(result.run) == codes(result.trace())
    assert codes(result) == ["truncated", "unknown_tool"]


def test_a_run_without_violations_has_no_codes():
    assert codes(answered()) == []


def test_the_run_of_an_error_has_its_codes():
    say = Say("react")
    script = ScriptedModel([say.call("weather", city="Oslo")] * 4)
    model = Faults(script, say, dict.fromkeys(range(1, 5), two_moves))
    with pytest.raises(RunFailed) as caught:
        Agent(model, protocol="react", tools=[weather]).run_sync("How is Oslo?")

    assert codes(caught.value.run) == ["multiple_actions"] * 4
