"""Answers of models with `Bounds`: the error of a run that they end names them."""

import pytest

from callslip import Agent, FunctionModel, ProtocolError, replay, tool
from callslip.models import Bounds
from scripted import block, finish

LONG = "It goes on " * 60
NAMED = "Bounds(answer=30, string=20, items=3)"
CUT = {
    "chatty": f"{LONG}<tool>",
    "react": finish(LONG).partition(" , ")[0][:200],
    "ticket": f'<thoughts>\n\n</thoughts>\n<output>\n{{"type": "RETURN", "value": "{LONG}',
}


@tool
def look() -> str:
    """Look."""
    return "seen"


class Rambler:
    """A model whose grammar has cut each of its replies."""

    bounds = Bounds(answer=30, string=20, items=3)

    def __init__(self, reply):
        self.reply = reply

    def __call__(self, messages, *, grammar):
        return self.reply


@pytest.mark.parametrize("protocol", CUT)
def test_the_error_names_the_limits(protocol):
    agent = Agent(Rambler(CUT[protocol]), protocol=protocol, tools=[look])
    with pytest.raises(ProtocolError) as caught:
        agent.run_sync("go")
    assert str(caught.value).count(NAMED) == 1
    run = caught.value.run
    found = [event.violation for event in run.log if event.kind == "violated"]
    assert {one["code"] for one in found} == {"truncated"}
    assert {one["bounds"] for one in found} == {NAMED}
    assert NAMED in run.messages[-2]["content"]
    again = replay(run.export())
    assert again.messages == run.messages
    assert [event.to_json() for event in again.log] == [event.to_json() for event in run.log]


def test_other_violations_name_none():
    agent = Agent(Rambler(block(("c", "nothing", {}))), protocol="chatty", tools=[look])
    with pytest.raises(ProtocolError) as caught:
        agent.run_sync("go")
    assert "Bounds(" not in str(caught.value)


def test_a_model_without_limits_names_none():
    agent = Agent(FunctionModel(lambda _: CUT["chatty"]), protocol="chatty", tools=[look])
    with pytest.raises(ProtocolError) as caught:
        agent.run_sync("go")
    assert "Bounds(" not in str(caught.value)
