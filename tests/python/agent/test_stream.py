"""Runs that are watched: slow readers, and the runs below."""

import asyncio
import threading
import time

import pytest

from callslip import (
    Agent,
    Delta,
    Event,
    Limits,
    RunCancelled,
    TicketProtocol,
    UsageError,
    replay,
    tool,
)
from reading import read_to_end
from scripted import act, delegate, finish, give, task_of, turn_of, wait


@tool
async def step(n: int) -> int:
    """Count."""
    return n


def counts(messages):
    """A model that never ends."""
    return act("step", n=turn_of(messages))


async def come_to_rest(count):
    """Wait until a count stays what it is, as far as that can be seen; return it."""
    last, since = count(), time.monotonic()
    until = since + 30
    while time.monotonic() - since < 0.3 and time.monotonic() < until:
        await asyncio.sleep(0.02)
        if count() != last:
            last, since = count(), time.monotonic()
    return last


def test_a_run_waits_for_a_slow_reader():
    async def main():
        agent = Agent(counts, tools=[step], limits=Limits(turns=None, tickets=None))
        async with agent.stream("go") as run:
            turns = await come_to_rest(lambda: run.run.turns)
            seen = 0
            async for _ in run:
                seen += 1
                if seen == 2000:
                    break
            assert run.run.turns > turns
            return turns, run.run.turns

    blocked, later = asyncio.run(main())
    assert blocked < 100
    assert later < 600


def test_deltas_of_a_long_reply_wait_too():
    given = []

    async def model(messages):
        yield '{"thought": "'
        for n in range(5000):
            given.append(n)
            yield "x"
        yield '", "action": "FINISH", "final_answer": "ok", "task_successful": true}'

    async def main():
        async with Agent(model).stream("go") as run:
            await come_to_rest(lambda: len(given))
            assert len(given) < 400
            items = [item async for item in run]
        text = "".join(item.text for item in items if isinstance(item, Delta.Thoughts))
        return text, run.result.value

    assert asyncio.run(main()) == ("x" * 5000, "ok")


def test_every_event_comes_in_its_order_however_slow_the_reader():
    async def main():
        async def model(messages):
            return act("step", n=turn_of(messages)) if turn_of(messages) < 200 else finish()

        agent = Agent(model, tools=[step], limits=Limits(turns=None))
        async with agent.stream("go") as run:
            events = []
            async for event in run:
                events.append(event)
                await asyncio.sleep(0)
        return events, run.run.log

    events, log = asyncio.run(main())
    assert events == log


def nested(messages):
    if task_of(messages) == "part":
        return [delegate("deep"), wait("T1"), give("in")][turn_of(messages)]
    if task_of(messages) == "deep":
        return give("deep")
    return [delegate("part"), wait("T1"), give("out")][turn_of(messages)]


@pytest.mark.parametrize("children", [False, True])
def test_events_of_runs_below_are_given_where_they_are_wanted(children):
    async def main():
        agent = Agent(nested, protocol=TicketProtocol(grace=0))
        async with agent.stream("go", children=children) as run:
            return [event async for event in run], run.run

    events, run = asyncio.run(main())
    assert events[-1].run_id == run.id
    (child,) = run.children
    runs = {run.id: run, child.id: child, child.children[0].id: child.children[0]}
    seen = {event.run_id for event in events}
    assert seen == (set(runs) if children else {run.id})
    for run_id in seen:
        assert [event for event in events if event.run_id == run_id] == runs[run_id].log


def test_a_slow_reader_of_a_tree_holds_up_all_of_it():
    async def model(messages):
        if task_of(messages) == "part":
            return act_for_ever(messages)
        return [delegate("part"), wait("T1")][min(turn_of(messages), 1)]

    def act_for_ever(messages):
        return delegate(f"part {turn_of(messages)}")

    async def main():
        limits = Limits(turns=None, tickets=None, runs=None, depth=1, max_violations=10**6)
        agent = Agent(model, protocol=TicketProtocol(grace=0), limits=limits)
        async with agent.stream("go", children=True) as run:
            until = time.monotonic() + 60
            while not run.run.children and time.monotonic() < until:
                await asyncio.sleep(0.01)
            (child,) = run.run.children
            assert await come_to_rest(lambda: child.turns) < 200
            assert child.turns < 200

    asyncio.run(main())
    assert all(isinstance(kind, type) for kind in (Event, Delta))


@pytest.mark.parametrize("thread", ["same", "other"])
def test_a_run_is_cancelled_right_after_it_was_entered(store, thread):
    asked = []

    async def main():
        agent = Agent(lambda messages: asked.append(messages) or finish(), store=store)
        async with agent.stream("go") as run:
            if thread == "same":
                run.cancel()
            else:
                other = threading.Thread(target=run.cancel)
                other.start()
                other.join()
            items, _ = await read_to_end(run)
            events = [event.kind for event in items]
        with pytest.raises(RunCancelled, match="the run was cancelled"):
            _ = run.result
        return run.run, events

    run, events = asyncio.run(main())
    assert asked == []
    assert events == [event.kind for event in run.log]
    assert events[-1] == "run_finished"
    assert replay(run).export() == run.export()
    assert store.runs()[0].stop_reason == "cancelled"


def test_what_is_said_right_after_a_run_was_entered():
    async def main():
        async with Agent(counts, tools=[step], limits=Limits(turns=1)).stream("go") as run:
            with pytest.raises(UsageError, match="T1"):
                run.approve("T1")
            waiting = run.send("and more")
            items, error = await read_to_end(run)
            assert "turns" in str(error)
            events = [event for event in items if isinstance(event, Event)]
            with pytest.raises(Exception, match="turns"):
                await waiting
        assert events == run.run.log
        return [event.kind for event in events]

    assert asyncio.run(main())[:3] == ["run_started", "model_asked", "user_said"]


def test_a_run_that_is_left_before_it_was_looked_at_is_cancelled(store):
    async def main():
        async with Agent(counts, tools=[step], store=store).stream("go") as run:
            pass
        with pytest.raises(RunCancelled):
            _ = run.result
        assert [event async for event in run] == run.run.log
        return run.run

    run = asyncio.run(main())
    assert (run.stop_reason, run.turns) == ("cancelled", 1)
    (kept,) = store.runs()
    assert (kept.status, kept.stop_reason) == ("finished", "cancelled")
