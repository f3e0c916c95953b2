"""`agent.start(run=…)` in a database: a run that another process has is followed."""

import asyncio

import pytest

from callslip import Agent, Context, Event, ScriptedModel, StoreError, Waiting, tool
from callslip._runtime.shared.inbox import stop_delivering
from fleets.here import LONG, call, finish, pay, turns, working

pytestmark = pytest.mark.timeout(120)


class Desk:
    """An agent in two processes, whose run waits in a call of the one until it may go on."""

    def __init__(self, far, here, replies=None, **options):
        self.may_go_on = asyncio.Event()
        self.is_there = asyncio.Event()
        self.calls = 0

        @tool
        async def work() -> str:
            """Work."""
            self.calls += 1
            self.is_there.set()
            await self.may_go_on.wait()
            return "worked"

        usual = turns(call("work"), finish("first"), finish("second"))
        self.far, self.here = (
            Agent(
                ScriptedModel(replies) if replies else usual,
                tools=[work],
                store=store,
                name="clerk",
                **options,
            )
            for store in (far, here)
        )

    async def begun(self):
        run = self.far.start("go")
        async with asyncio.timeout(LONG):
            await self.is_there.wait()
        return run


def words(items):
    return [item.text for item in items if isinstance(item, Event) and item.kind == "user_said"]


@pytest.mark.parametrize("say", [None, "And more?"])
async def test_a_run_of_another_process_is_followed(far, here, say):
    desk = Desk(far, here)
    theirs = await desk.begun()
    run = desk.here.start(run=theirs.id, say=say)
    assert run is not theirs
    assert run.id == theirs.id
    desk.may_go_on.set()
    async with asyncio.timeout(LONG):
        result = await run
    # The message may have come too late for that driver.
    log = here.run(theirs.id).log
    assert words(log) == ([] if say is None else [say])
    assert result.value == log[-1].value
    assert desk.calls == 1


async def test_a_stream_of_it_tells_what_is_written_there(far, here):
    desk = Desk(far, here)
    theirs = await desk.begun()
    items = []
    async with asyncio.timeout(LONG):
        async with desk.here.stream(run=theirs.id, say="And more?") as stream:
            desk.may_go_on.set()
            async for item in stream:
                items.append(item)
            result = stream.result
        await theirs
    # The message may have come too late for that driver.
    kept = here.run(theirs.id)
    events = [item for item in items if isinstance(item, Event)]
    assert [event.seq for event in events] == [
        event.seq for event in kept.events(after=events[0].seq - 1)
    ]
    assert words(items) == ["And more?"]
    assert result.value == kept.log[-1].value


async def test_leaving_that_stream_ends_nothing(far, here):
    desk = Desk(far, here)
    theirs = await desk.begun()
    async with asyncio.timeout(LONG):
        async with desk.here.stream(run=theirs.id):
            pass
        assert not theirs.finished
        desk.may_go_on.set()
        assert (await theirs).value == "first"


async def test_decisions_reach_it_there(far, here):
    agents = [
        Agent(turns(call("pay", amount=1), finish()), tools=[pay], store=store, name="clerk")
        for store in (far, here)
    ]
    theirs = agents[0].start("go")
    async with asyncio.timeout(LONG):
        async for item in theirs.watch():
            if isinstance(item, Waiting):
                break
        run = agents[1].start(run=theirs.id)
        async for item in run.watch():
            if isinstance(item, Waiting):
                assert [ticket.id for ticket in item.tickets] == ["T1"]
                await asyncio.to_thread(run.approve, item.tickets[0])
        assert (await run).value == (await theirs).value == "done"


async def test_a_run_that_waits_for_a_worker_is_followed(web, here, database):
    agent = Agent(turns(finish("a"), finish("b")), store=here, name="clerk")
    async with working(database, agent.replace(store=None), new=False) as fleet:
        run_id = await fleet.submit("clerk", "go")
        run = agent.start(run=run_id, say="And more?")
        assert (run.id, run.seq) == (run_id, -1)
    async with working(database, agent.replace(store=None)), asyncio.timeout(LONG):
        result = await run
    assert words(web.run(run_id).log) == ["And more?"]
    assert result.value in ("a", "b")


async def test_a_message_that_its_driver_did_not_read_is_read_here(far, here):
    """As where that process has ended, or has written the answer just before."""
    seen = []

    @tool(effect="idempotent")
    async def work(context: Context[str]) -> str:
        """Work."""
        seen.append(context.deps)
        is_there.set()
        await may_go_on.wait()
        return "worked"

    is_there, may_go_on = asyncio.Event(), asyncio.Event()
    model = turns(call("work"), finish("first"), finish("second"))
    agents = [Agent(model, tools=[work], store=store, name="clerk") for store in (far, here)]
    async with asyncio.timeout(LONG):
        async with agents[0].stream("go", deps="far") as theirs:
            await is_there.wait()
            # From here on, the driver reads no message.
            stop_delivering(far, theirs._session._own_inbox)
            run = agents[1].start(run=theirs.run.id, say="And more?", deps="here")
            # The driver is gone, and nobody was told.
            task, theirs._session.kept_while = theirs._task, lambda: True
            task.cancel()
            await asyncio.wait([task])
        may_go_on.set()
        result = await run
    assert words(here.run(run.id).log) == ["And more?"]
    assert result.value in ("first", "second")
    assert seen in (["far"], ["far", "here"])


async def test_a_run_that_is_not_there_is_none(here):
    with pytest.raises(StoreError, match="there is no run"):
        Agent(turns(finish()), store=here).start(run="nothing")


async def test_a_typed_answer_is_read_here(far, here):
    desk = Desk(far, here, [call("work"), finish(["a", "b"])], returns=tuple[str, str])
    theirs = await desk.begun()
    run = desk.here.start(run=theirs.id)
    desk.may_go_on.set()
    async with asyncio.timeout(LONG):
        assert (await run).value == ("a", "b")
        await theirs
