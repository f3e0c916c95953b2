"""Replies written in each protocol."""

import pytest

from callslip import Agent, ScriptedModel, UsageError, tool
from callslip.protocols import ChattyProtocol, NativeProtocol, ReactProtocol, TicketProtocol
from callslip.testing import PROTOCOLS, Say

KINDS = {
    "ticket": TicketProtocol,
    "chatty": ChattyProtocol,
    "react": ReactProtocol,
    "native": NativeProtocol,
}


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"4 degrees in {city}"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_call_and_an_answer_are_read(name):
    say, protocol = Say(name), KINDS[name]()

    for text in (say.call("weather", city="Oslo"), say.finish("4 degrees")):
        reply = protocol.parse(text)
        assert reply.violation is None


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_script_runs(name):
    say = Say(KINDS[name]())
    with ScriptedModel([say.call("weather", city="Oslo"), say.finish("4 degrees")]) as model:
        result = Agent(model, protocol=name, tools=[weather]).run_sync("How is Oslo?")

    assert result.value == "4 degrees"
    assert [ticket.call for ticket in result.tickets] == ['weather {"city": "Oslo"}']


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_answer_may_have_a_type(name):
    with ScriptedModel([Say(name).finish([1, 2])]) as model:
        result = Agent(model, protocol=name, returns=list[int]).run_sync("Count to two.")

    assert result.value == [1, 2]


def test_an_unknown_protocol_is_refused():
    with pytest.raises(
        UsageError, match="^expected protocol='ticket', 'chatty', 'react' or 'native'"
    ):
        Say("morse")
