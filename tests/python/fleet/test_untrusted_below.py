"""Child runs that other workers drive than the run above them, and what they have read."""

import pytest

from callslip import Agent, replay, tool
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, turns, working

pytestmark = pytest.mark.timeout(120)


@tool(untrusted=True)
def page() -> str:
    """Read a page."""
    return "the page"


def boss():
    """Its first child reads a page. The task of the second one is written after that."""
    low = Agent(turns(finish("low")), name="low")
    reader = Agent(turns(call("page"), finish("in")), tools=[page], name="reader")
    own = Agent(turns(call("low", task="t"), finish("out")), tools=[low.as_tool()], name="own")
    script = [call("own", task="s"), call("reader", task="t"), call("own", task="u")]
    tools = [reader.as_tool(), own.as_tool()]
    return Agent(turns(*script, finish("done")), tools=tools, name="boss")


async def test_what_a_child_has_read_is_known_wherever_it_is_driven(web, database):
    async with working(database, boss()), working(database, boss()):
        fleet = Fleet(web)
        run_id = await fleet.submit("boss", "Go.")
        result = await fleet.result(run_id, timeout=LONG)
    assert result.value == "done"
    run = web.run(run_id)
    expected = {"T1": False, "T2": True, "T3": True}
    for tickets in (run.tickets, web.tickets(run=run_id), replay(run).tickets):
        assert {ticket.id: ticket.untrusted for ticket in tickets} == expected
    for ticket, flag in (("T1", False), ("T3", True)):
        (below,) = web.run(f"{run_id}.{ticket}").tickets
        assert below.untrusted is flag
