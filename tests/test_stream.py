"""Runs that are watched: slow readers, and the runs below."""

import asyncio

import pytest

from callslip import Agent, Delta, Event, Limits, TicketProtocol, tool
from replies import act, delegate, finish, give, task_of, turn_of, wait


@tool
async def step(n: int) -> int:
    """Count."""
    return n


def counts(messages):
    """A model that never ends."""
    return act("step", n=turn_of(messages))


def test_a_run_waits_for_a_slow_reader():
    async def main():
        agent = Agent(counts, tools=[step], limits=Limits(steps=None, tickets=None))
        async with agent.stream("go") as run:
            await asyncio.sleep(0.3)
            turns = run.run.turns
            await asyncio.sleep(0.2)
            assert run.run.turns == turns
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
            await asyncio.sleep(0.2)
            assert len(given) < 400
            items = [item async for item in run]
        text = "".join(item.text for item in items if isinstance(item, Delta.Thoughts))
        return text, run.result.value

    assert asyncio.run(main()) == ("x" * 5000, "ok")


def test_every_event_comes_in_its_order_however_slow_the_reader():
    async def main():
        async def model(messages):
            return act("step", n=turn_of(messages)) if turn_of(messages) < 200 else finish()

        agent = Agent(model, tools=[step], limits=Limits(steps=None))
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
        limits = Limits(steps=None, tickets=None, runs=None, depth=1, max_violations=10**6)
        agent = Agent(model, protocol=TicketProtocol(grace=0), limits=limits)
        async with agent.stream("go", children=True) as run:
            await asyncio.sleep(0.3)
            (child,) = run.run.children
            turns = child.turns
            await asyncio.sleep(0.2)
            assert child.turns == turns < 200

    asyncio.run(main())
    assert all(isinstance(kind, type) for kind in (Event, Delta))
