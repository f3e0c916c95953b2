"""Messages for runs of a store by their ids: passed on to whoever works on the run."""

import asyncio

import pytest

from callslip import Agent, Delta, Event, ModelError, ScriptedModel, TicketStore, UsageError, tool
from scripted import act, finish, turn_of


class Desk:
    """An agent whose run waits in a call until it may go on."""

    def __init__(self, store, *more):
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

        replies = [act("work"), *more, finish("first"), finish("second")]
        self.agent = Agent(ScriptedModel(replies), tools=[work], store=store)

    async def begun(self):
        run = self.agent.start("go")
        async with asyncio.timeout(30):
            await self.is_there.wait()
        return run


@pytest.fixture(params=["file", "postgres"])
def store(request, tmp_path):
    path = tmp_path / "runs.sqlite"
    with TicketStore(
        request.getfixturevalue("database") if request.param == "postgres" else path
    ) as store:
        yield store


def words(items):
    return [item.text for item in items if isinstance(item, Event) and item.kind == "user_said"]


def test_a_stream_passes_the_message_on(store):
    async def main():
        desk = Desk(store)
        run = await desk.begun()
        known = run.seq
        items = []
        async with desk.agent.stream(run=run.id, say="And more?") as stream:
            assert stream.run is run
            async for item in stream:
                items.append(item)
                desk.may_go_on.set()
            result = stream.result
        return desk, run, known, items, result

    desk, run, known, items, result = asyncio.run(main())
    events = [item for item in items if isinstance(item, Event)]
    assert events == run.events(after=known)
    assert words(items) == ["And more?"]
    assert (result.value, desk.calls) == (run.log[-1].value, 1)


def test_leaving_that_stream_ends_nothing(store):
    async def main():
        desk = Desk(store)
        run = await desk.begun()
        async with desk.agent.stream(run=run.id, say="And more?") as stream:
            async for _ in stream:
                break
        assert not run.finished
        desk.may_go_on.set()
        result = await run
        # Another turn, which the stream's own driver has.
        async with desk.agent.stream(run=run.id, say="Again.") as stream:
            last = [item async for item in stream]
        return result, last, desk

    result, last, desk = asyncio.run(main())
    assert (result.value, desk.calls) == ("first", 1)
    assert words(last) == ["Again."]
    assert last[-1].value == "second"


def test_a_stream_without_a_message_follows(store):
    async def main():
        desk = Desk(store)
        run = await desk.begun()
        async with desk.agent.stream(run=run.id) as stream:
            desk.may_go_on.set()
            return [item async for item in stream], await run

    items, result = asyncio.run(main())
    kinds = [item.kind for item in items if isinstance(item, Event)]
    assert (kinds[0], kinds[-1], result.value) == ("ticket_completed", "run_finished", "first")


def test_a_stream_that_follows_raises_the_failure(store):
    async def main():
        desk = Desk(store, LookupError("no model"))
        run = await desk.begun()
        async with desk.agent.stream(run=run.id, say="And?") as stream:
            desk.may_go_on.set()
            with pytest.raises(ModelError, match="no model"):
                async for _ in stream:
                    pass
            assert [item async for item in stream] == []
            with pytest.raises(ModelError, match="no model"):
                _ = stream.result
        with pytest.raises(ModelError):
            await run

    asyncio.run(main())


def test_a_sync_stream_passes_the_message_on(store):
    async def main():
        desk = Desk(store)
        run = await desk.begun()
        loop = asyncio.get_running_loop()

        def read():
            with desk.agent.stream_sync(run=run.id, say="And more?") as stream:
                items = []
                for item in stream:
                    items.append(item)
                    loop.call_soon_threadsafe(desk.may_go_on.set)
                return items, stream.result

        items, result = await asyncio.to_thread(read)
        return items, result, await run

    items, result, other = asyncio.run(main())
    assert words(items) == ["And more?"]
    assert result.value == other.value


def test_a_finished_run_goes_on_through_the_stream_that_followed_it(store):
    async def main():
        desk = Desk(store)
        run = await desk.begun()
        async with desk.agent.stream(run=run.id) as stream:
            desk.may_go_on.set()
            _ = [item async for item in stream]
            stream.send("Again.")
            more = [item async for item in stream]
            return more, stream.result

    more, result = asyncio.run(main())
    assert words(more) == ["Again."]
    assert result.value == "second"


@pytest.mark.parametrize("how", ["start", "stream"])
def test_deps_do_not_go_with_a_message_to_a_run_in_progress(store, how):
    async def main():
        desk = Desk(store)
        run = await desk.begun()
        with pytest.raises(UsageError, match="has their deps|have their deps"):
            if how == "start":
                desk.agent.start(run=run.id, say="And?", deps=1)
            else:
                async with desk.agent.stream(run=run.id, say="And?", deps=1):
                    pass
        desk.may_go_on.set()
        await run
        return run

    assert words(asyncio.run(main()).log) == []


def test_deltas_name_their_turn(store):
    async def main():
        replies = [act("look"), "?", finish("An answer.")]
        model = ScriptedModel([*replies, *replies], chunk_size=7)
        agent = Agent(model, tools=[look], store=store)
        run = agent.start("go")
        watched = [item async for item in run.watch()]
        async with agent.stream("go") as stream:
            streamed = [item async for item in stream]
        return watched, streamed

    for items in asyncio.run(main()):
        turn, seen = None, set()
        for item in items:
            if isinstance(item, Event) and item.kind == "model_asked":
                turn = item.turn
            if isinstance(item, Delta):
                assert item.turn == turn
                seen.add(turn)
        assert {1, 3} <= seen


def test_who_joins_within_a_reply_knows_its_turn():
    async def main():
        half, may_go_on = asyncio.Event(), asyncio.Event()

        async def model(messages):
            text = act("look") if turn_of(messages) == 0 else finish("An answer of some length.")
            for at, char in enumerate(text):
                if turn_of(messages) and at == text.index("some"):
                    half.set()
                    await may_go_on.wait()
                yield char

        run = Agent(model, tools=[look]).start("go")
        async with asyncio.timeout(30):
            await half.wait()
        items = []
        async for item in run.watch(after=run.seq):
            items.append(item)
            may_go_on.set()
        return items

    deltas = [item for item in asyncio.run(main()) if isinstance(item, Delta)]
    assert {delta.turn for delta in deltas} == {2}
    text = "".join(delta.text for delta in deltas if isinstance(delta, Delta.Answer))
    assert text == "An answer of some length."


@tool
async def look() -> str:
    """Look."""
    return "seen"
