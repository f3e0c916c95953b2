"""Runs that anyone watches, at any time and at any pace."""

import asyncio
import random
import threading

import pytest

from callslip import (
    Agent,
    Context,
    Delta,
    Event,
    Limits,
    ModelError,
    Progress,
    ScriptedModel,
    StoreError,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip.events import Approved, ModelAsked, TicketOpened
from random_cases import seeds
from scripted import act, call, delegate, finish, give, turn_of, wait

ANSWER = "The quick brown fox jumps over the lazy dog."


@tool
async def step(n: int) -> int:
    """Count."""
    await asyncio.sleep(0)
    return n


def steps(count, answer="there"):
    """A model that makes so many calls."""

    def model(messages):
        turn = turn_of(messages)
        return act("step", n=turn) if turn < count else finish(answer)

    return model


def streamed(text, size=5):
    """A model that streams one reply."""

    async def model(messages):
        for at in range(0, len(text), size):
            await asyncio.sleep(0)
            yield text[at : at + size]

    return model


class Gated:
    """A model that streams an answer, the second half once it may."""

    def __init__(self):
        self.may_go_on = asyncio.Event()
        self.half = asyncio.Event()

    async def __call__(self, messages):
        text = finish(ANSWER)
        middle = text.index("fox")
        for at, char in enumerate(text):
            if at == middle:
                self.half.set()
                await self.may_go_on.wait()
            yield char


def events_of(items):
    return [item for item in items if isinstance(item, Event)]


def answer_of(items):
    return "".join(item.text for item in items if isinstance(item, Delta.Answer))


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    if request.param == "memory":
        yield None
        return
    with TicketStore(tmp_path / "runs.sqlite") as store:
        yield store


def test_a_watcher_is_told_everything_once(store):
    async def main():
        run = Agent(steps(5), tools=[step], store=store).start("go")
        items = [item async for item in run.watch()]
        later = [item async for item in run.watch()]
        return run, items, later

    run, items, later = asyncio.run(main())
    assert events_of(items) == events_of(later) == run.log
    assert run.log[-1].kind == "run_finished"


def test_deltas_come_before_the_event_that_ends_their_reply(store):
    async def main():
        run = Agent(streamed(finish(ANSWER)), store=store).start("go")
        return [item async for item in run.watch()]

    items = asyncio.run(main())
    kinds = [item.kind if isinstance(item, Event) else "delta" for item in items]
    assert kinds[:2] == ["run_started", "model_asked"]
    assert kinds[-3:] == ["model_replied", "moved", "run_finished"]
    assert set(kinds[2:-3]) == {"delta"}
    assert answer_of(items) == ANSWER


@pytest.mark.parametrize("is_over", [False, True])
def test_after_is_the_last_event_that_is_known(is_over):
    async def main():
        run = Agent(steps(3), tools=[step]).start("go")
        if is_over:
            await run
        else:
            await until(lambda: len(run.log) > 6)
        count = len(run.log)
        watches = [run.watch(after=seq) for seq in range(-1, count)]
        told = await asyncio.gather(*(events(watch) for watch in watches))
        return run, told

    async def events(watch):
        return [item async for item in watch]

    run, told = asyncio.run(main())
    for seq, items in enumerate(told, start=-1):
        assert events_of(items) == run.log[seq + 1 :]


def test_a_reload_in_the_middle_of_an_answer_shows_the_same_text_and_goes_on():
    async def main():
        model = Gated()
        run = Agent(model).start("go")
        await model.half.wait()
        before = await part(run.watch())
        again = await part(run.watch(after=events_of(before)[-1].seq))
        model.may_go_on.set()
        rest = [item async for item in run.watch(after=events_of(before)[-1].seq)]
        return before, again, rest

    async def part(watch):
        """What is told until nothing more comes."""
        items = []
        while "quick brown" not in answer_of(items):
            items.append(await anext(watch))
        return items

    before, again, rest = asyncio.run(main())
    assert answer_of(before) == answer_of(again) == "The quick brown "
    assert answer_of(rest) == ANSWER
    assert [event.kind for event in events_of(rest)] == ["model_replied", "moved", "run_finished"]


def test_a_slow_watcher_holds_up_nobody_and_misses_no_event():
    async def main():
        run = Agent(steps(40), tools=[step]).start("go")
        slow = run.watch()
        first = await anext(slow)
        quick = [item async for item in run.watch()]
        assert run.finished
        return run, quick, [first] + [item async for item in slow]

    run, quick, slow = asyncio.run(main())
    assert events_of(quick) == events_of(slow) == run.log


def test_a_late_watcher_of_a_long_run_reads_events_that_are_not_in_memory():
    async def main():
        run = Agent(steps(110), tools=[step], limits=Limits(turns=None, tickets=None)).start("go")
        slow = run.watch()
        await run
        return run, [item async for item in slow]

    run, items = asyncio.run(main())
    assert len(run.log) > 500
    assert events_of(items) == run.log


@pytest.mark.parametrize("steps_below", [10, 600])
def test_a_slow_watcher_misses_no_event_of_child_runs(steps_below):
    count = steps_below
    limits = Limits(turns=count + 1, tickets=count + 1)
    child = Agent(steps(count), tools=[step], limits=limits, name="child")
    agent = Agent(
        lambda messages: act("child", task="b") if turn_of(messages) < 2 else finish("top"),
        tools=[child.as_tool(description="Counts.")],
        limits=Limits(turns=3, tickets=count * 2),
        store=TicketStore(),
    )

    async def main():
        run = agent.start("a")
        slow = run.watch(children=True)
        result = await run
        return run, result, [item async for item in slow]

    run, result, items = asyncio.run(asyncio.wait_for(main(), 120))
    assert result.value == "top"
    logs = {one.id: [event.seq for event in one.log] for one in (run, *run.children)}
    assert len(logs) == 3
    told = {one: [event.seq for event in events_of(items) if event.run_id == one] for one in logs}
    assert told == logs


def test_leaving_a_watch_ends_nothing():
    async def main():
        run = Agent(steps(5), tools=[step]).start("go")
        async for _ in run.watch():
            break
        watching = asyncio.create_task(anext(run.watch(after=0)))
        await asyncio.sleep(0)
        watching.cancel()
        return (await run).value

    assert asyncio.run(main()) == "there"


def test_what_ended_a_run_is_raised_to_all_who_watch(store):
    def model(messages):
        if turn_of(messages):
            raise ConnectionError("gone")
        return act("step", n=1)

    async def main():
        run = Agent(model, tools=[step], store=store).start("go")
        ends = await asyncio.gather(
            *(end(run.watch()) for _ in range(3)), end(run.watch(after=0)), return_exceptions=True
        )
        return run, [*ends, await end(run.watch(after=len(run.log) - 1))]

    async def end(watch):
        items = []
        try:
            async for item in watch:
                items.append(item)
        except ModelError as error:
            return items, error
        return items, None

    run, ends = asyncio.run(main())
    for items, error in ends:
        assert "ConnectionError: gone" in str(error)
        assert isinstance(error.__cause__, ConnectionError)
        assert error.run is run
        assert events_of(items)[-1:] in ([run.log[-1]], [])


def test_another_thread_may_watch():
    told = []

    def watcher(run):
        async def watch():
            async for item in run.watch():
                told.append(item)

        asyncio.run(asyncio.wait_for(watch(), 30))

    async def main():
        go = asyncio.Event()

        @tool
        async def pause() -> str:
            """Wait."""
            await go.wait()
            return "ok"

        run = Agent(ScriptedModel([act("pause"), finish()]), tools=[pause]).start("go")
        thread = threading.Thread(target=watcher, args=(run,))
        thread.start()
        await until(lambda: told)
        go.set()
        await run
        await asyncio.to_thread(thread.join, 30)
        return run

    run = asyncio.run(main())
    assert events_of(told) == run.log


def test_a_run_of_the_sync_driver_may_be_watched(tmp_path):
    started, is_watched = threading.Event(), threading.Event()
    run_ids = []

    @tool
    def begin(context: Context) -> int:
        """Wait until somebody watches."""
        run_ids.append(context.run_id)
        started.set()
        is_watched.wait(30)
        return 0

    def model(messages):
        return act("begin") if not turn_of(messages) else steps(5)(messages)

    async def main(store):
        agent = Agent(model, tools=[begin, step], store=store)
        working = asyncio.create_task(asyncio.to_thread(agent.run_sync, "go"))
        await asyncio.to_thread(started.wait, 30)
        watch = store.watch(run_ids[0])
        items = [await anext(watch)]
        is_watched.set()
        items += [item async for item in watch]
        return (await working).run, items

    with TicketStore(tmp_path / "runs.sqlite") as store:
        run, items = asyncio.run(main(store))
        assert events_of(items) == run.log


def test_progress_is_told():
    @tool
    async def work(context: Context) -> str:
        """Work."""
        for done in range(3):
            context.progress(done, 3)
            await asyncio.sleep(0)
        return "ok"

    async def main():
        run = Agent(ScriptedModel([act("work"), finish()]), tools=[work]).start("go")
        return [item async for item in run.watch()]

    told = [item for item in asyncio.run(main()) if isinstance(item, Progress)]
    assert [(one.ticket_id, one.done) for one in told] == [("T1", 0), ("T1", 1), ("T1", 2)]


@pytest.mark.parametrize("children", [False, True])
def test_calls_of_child_runs_that_await_approval_are_told(children):
    @tool(needs_approval=True)
    def delete(path: str) -> str:
        """Delete."""
        return "deleted"

    def model(messages):
        text = messages[-1]["content"]
        if "inner" in str(messages[1:2]) or "inner" in text:
            return below_replies[turn_of(messages)]
        return above_replies[turn_of(messages)]

    above_replies = [delegate("inner"), wait("T1"), give("out")]
    below_replies = [call("/delete", {"path": "a"}), wait("T1"), give("in")]

    async def main():
        run = Agent(model, protocol=TicketProtocol(), tools=[delete]).start("go")
        items = []
        async for item in run.watch(children=children):
            items.append(item)
            if isinstance(item, TicketOpened) and item.needs_approval:
                run.approve(run.awaiting_approval[0])
        return run, items

    run, items = asyncio.run(main())
    below = [item for item in events_of(items) if item.run_id != run.id]
    if children:
        assert below == run.children[0].log
    else:
        assert [(event.kind, event.tool) for event in below] == [("ticket_opened", "delete")]


@pytest.mark.parametrize("after", [-2, 100, "1", True, 1.5])
def test_after_must_be_an_event_of_the_log(after):
    run = Agent(ScriptedModel([finish()])).run_sync("go").run
    with pytest.raises(UsageError, match="expected after= as the seq of an event"):
        run.watch(after=after)


def test_a_run_that_nothing_works_on_says_so():
    whole = Agent(steps(2), tools=[step]).run_sync("go").run
    half = replay(whole.export().splitlines()[:4])

    async def main():
        items = []
        with pytest.raises(UsageError, match=r"nothing works on this run: use agent.start"):
            async for item in half.watch():
                items.append(item)
        with pytest.raises(UsageError, match="nothing works on this run"):
            await half
        return items

    assert asyncio.run(main()) == half.log


def test_a_watcher_of_the_store_goes_on_after_a_restart(tmp_path):
    """The process that works on the run ends, and the next one resumes it."""
    path = tmp_path / "runs.sqlite"
    seen = []

    async def first():
        model = Gated()
        with TicketStore(path) as store:
            run = Agent(model, store=store).start("go")
            await model.half.wait()
            async for item in run.watch():
                seen.append(item)
                if "brown" in answer_of(seen):
                    return run.id
        return None

    async def second(run_id):
        with TicketStore(path) as store:
            assert store.run(run_id).status == "running"
            watching = asyncio.create_task(watch(store, run_id))
            await asyncio.sleep(0.01)
            await Agent(streamed(finish(ANSWER)), store=store).resume_all()
            return await watching, store.run(run_id).log

    async def watch(store, run_id):
        last = events_of(seen)[-1].seq
        return [item async for item in store.watch(run_id, after=last)]

    run_id = asyncio.run(first())
    told, log = asyncio.run(second(run_id))
    assert events_of(seen) + events_of(told) == log
    assert answer_of(told) == ANSWER


def test_a_log_that_was_compacted_is_watched_from_its_one_event(tmp_path):
    async def main():
        with TicketStore(tmp_path / "runs.sqlite") as store:
            agent = Agent(lambda messages: "answer", protocol="chatty", store=store)
            run = (await agent.run("one")).run
            count = len(run.log)
            store.compact(run.id)
            items = [item async for item in store.watch(run.id)]
            async with agent.stream(run=run.id, say="two") as stream:
                watching = asyncio.create_task(read(stream.run))
                async for _ in stream:
                    pass
            return count, items, await watching, store.run(run.id).log

    async def read(run):
        return [item async for item in run.watch()]

    count, items, told, log = asyncio.run(main())
    assert [(event.kind, event.seq) for event in events_of(items)] == [("compacted", count - 1)]
    assert events_of(told) == log
    assert log[1].seq == count


@pytest.mark.parametrize("is_below", [False, True], ids=["run", "child_run"])
def test_who_waits_for_a_run_is_told_that_it_was_deleted_or_its_store_closed(tmp_path, is_below):
    @tool(needs_approval=True)
    def delete(path: str) -> str:
        """Delete a file."""
        return "deleted"

    async def main():
        with TicketStore(tmp_path / "runs.sqlite") as store:
            child = Agent(lambda _: act("delete", path="a"), tools=[delete], name="child")
            agent = Agent(
                lambda _: act("child", task="b"),
                tools=[child.as_tool(description="Deletes.")],
                store=store,
            )
            run = agent.start("go")
            await until(lambda: run.awaiting_approval)
            (driving,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("run"))
            driving.cancel()
            await asyncio.wait([driving])
            watched = f"{run.id}.T1" if is_below else run.id
            waiting = asyncio.create_task(collect(store.watch(watched)))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            log = store.run(run.id).export()
            store.delete(run.id)
            gone = f"^there is no run {watched} in this store: it was deleted$"
            with pytest.raises(StoreError, match=gone):
                await asyncio.wait_for(waiting, 30)
            # What is imported under its id is another run.
            store.import_run(log)
            again = asyncio.create_task(collect(store.watch(run.id)))
            await asyncio.sleep(0.1)
            assert not again.done()
            store.close()
            with pytest.raises(StoreError, match="^this store is closed"):
                await asyncio.wait_for(again, 30)

    async def collect(watch):
        return [item async for item in watch]

    asyncio.run(main())


def test_a_decision_at_rest_is_told_to_those_who_wait(tmp_path):
    @tool(needs_approval=True)
    def delete(path: str) -> str:
        """Delete."""
        return "deleted"

    async def main():
        with TicketStore(tmp_path / "runs.sqlite") as store:
            agent = Agent(
                ScriptedModel([act("delete", path="a"), finish()]), tools=[delete], store=store
            )
            run = agent.start("go")
            await until(lambda: run.awaiting_approval)
            (waiting,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("run"))
            waiting.cancel()
            await asyncio.wait([waiting])
            watching = asyncio.create_task(events(store.watch(run.id, after=2)))
            await asyncio.sleep(0.01)
            store.run(run.id).approve("T1")
            await until(lambda: told)
            assert not watching.done()
            result = await agent.resume(run.id)
            await watching
            return result.run.log

    told = []

    async def events(watch):
        async for item in watch:
            if isinstance(item, Approved):
                told.append(item)
            seen.append(item)

    seen = []
    log = asyncio.run(main())
    assert events_of(seen) == log[3:]


@pytest.mark.random_cases
@pytest.mark.parametrize("seed", seeds(12))
def test_watchers_that_come_and_go_miss_nothing(seed):
    chance = random.Random(seed)
    text = finish(ANSWER)

    async def model(messages):
        turn = turn_of(messages)
        reply = act("step", n=turn) if turn < 6 else text
        for at in range(0, len(reply), 7):
            if chance.random() < 0.3:
                await asyncio.sleep(0)
            yield reply[at : at + 7]

    async def watcher(run, chance):
        last, seen, answer = -1, [], ""
        while True:
            try:
                answer = ""
                async for item in run.watch(after=last):
                    if isinstance(item, Event):
                        last = item.seq
                        seen.append(item)
                        if isinstance(item, ModelAsked):
                            answer = ""
                    elif isinstance(item, Delta.Answer):
                        answer += item.text
                    if chance.random() < 0.2:
                        break
                    for _ in range(chance.choice([0, 0, 1, 5])):
                        await asyncio.sleep(0)
                else:
                    return seen, answer
            finally:
                await asyncio.sleep(0)

    async def main():
        run = Agent(model, tools=[step]).start("go")
        told = await asyncio.gather(
            *(watcher(run, random.Random(seed * 100 + n)) for n in range(5))
        )
        return run, told

    run, told = asyncio.run(main())
    for seen, _ in told:
        assert seen == run.log
