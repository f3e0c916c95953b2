"""Scripts whose runs any worker drives, and that wait for a person."""

import asyncio

import pytest

from callslip import Agent, Limits, replay, tool
from callslip._scripts.runner import ScriptRunner
from callslip._scripts.waiting import WAITING
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, turns, until, working
from script_engine import StubEngine

pytestmark = pytest.mark.timeout(120)

CODE = """
async def slow():
    return await send(to="ann")
async def quick():
    return [await pay(n=n) for n in range(3)]
print(await gather(slow(), quick()))
return await pay(n=7)
"""


@pytest.mark.parametrize("children", ["here", "anywhere"])
async def test_a_script_rests_while_a_person_is_awaited_and_another_worker_goes_on(
    web, database, children
):
    made = []

    @tool
    async def pay(n: int) -> int:
        """Pay."""
        made.append(n)
        return n * n

    @tool(needs_approval=True)
    async def send(to: str) -> str:
        """Send."""
        made.append(to)
        return f"sent to {to}"

    def agent(engine):
        return Agent(
            turns(call("execute_python_code", code=CODE), finish("done")),
            tools=[pay, send],
            python=ScriptRunner(engine=engine),
            name="boss",
            # A script takes no level.
            limits=Limits(depth=0),
        )

    first, second = StubEngine(), StubEngine()
    fleet = Fleet(web)
    run_id = await fleet.submit("boss", "Do it.")
    child = f"{run_id}.T1"
    async with working(database, agent(first), children=children):
        await until(lambda: len(made) == 3)
        # The whole tree is at rest then.
        await until(lambda: not first.open, "no interpreter waits")
        assert not len(WAITING)
    assert sorted(made) == [0, 1, 2]
    web.run(child).approve("T1", arguments={"to": "eve"})
    async with working(database, agent(second), children=children):
        result = await asyncio.wait_for(fleet.result(run_id), LONG)
    assert sorted(map(str, made)) == ["0", "1", "2", "7", "eve"]
    done = result.tickets[0].result
    assert done["status"] == "ok"
    assert done["stdout"] == "['sent to eve', [0, 1, 4]]\n"
    assert done["notes"] == [
        'T1 was made with other arguments, which a person has put in: {"to":"eve"}'
    ]
    assert len(second.started) == 1
    assert replay(web.run(child)).finished
