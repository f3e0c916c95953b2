"""Scripts in the ticket protocol wait for their calls, however long those take."""

import asyncio
import threading

import pytest

from callslip import Agent, Retrying, ScriptedModel, TicketProtocol, tool
from scripted import call, delegate, give, load

WAYS = {
    "run_sync": lambda agent: agent.run_sync("?"),
    "run": lambda agent: asyncio.run(agent.run("?")),
    "stream_sync": lambda agent: list(agent.stream_sync("?")) and None,
}
OVER_THE_GRACE = 0.2


def slow():
    @tool
    def slow() -> str:
        """Take longer than the grace."""
        threading.Event().wait(OVER_THE_GRACE)
        return "the result"

    @tool
    async def later() -> str:
        """Take longer than the grace."""
        await asyncio.sleep(OVER_THE_GRACE)
        return "the result"

    return [slow, later]


def result_in(model, at):
    return "the result" in model.requests[at].messages[-1]["content"]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("route", ["/slow", "/later"])
@pytest.mark.parametrize("wrapped", [lambda model: model, Retrying])
def test_the_next_reply_sees_the_result(way, route, wrapped):
    model = ScriptedModel([call(route), give("done")])
    way(Agent(wrapped(model), protocol="ticket", tools=slow()))
    assert result_in(model, 1)


def test_child_runs_are_waited_for():
    model = ScriptedModel([delegate("part"), call("/slow"), give("part"), load("T1"), give("all")])
    assert Agent(model, protocol="ticket", tools=slow()).run_sync("?").value == "all"


def as_a_function(model):
    def function(messages):
        return model(messages)

    return function


@pytest.mark.parametrize(
    ("wrapped", "protocol"),
    [(lambda model: model, TicketProtocol(grace=0)), (as_a_function, "ticket")],
    ids=["a grace of the test", "a model that is no script"],
)
def test_who_does_not_wait(wrapped, protocol):
    went_on = threading.Event()

    @tool
    def held() -> bool:
        """Wait until the model has gone on."""
        return went_on.wait(200)

    def reply(messages):
        went_on.set()
        return give("done")

    model = ScriptedModel([call("/held"), reply])
    result = Agent(wrapped(model), protocol=protocol, tools=[held]).run_sync("?")
    assert result.value == "done"
