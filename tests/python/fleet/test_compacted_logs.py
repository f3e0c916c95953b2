"""Logs that are compacted while somebody follows them: what is left out is never passed over."""

import asyncio

import pytest

from callslip import Agent, UsageError, tool
from callslip.events import Compacted
from fleets.here import until
from scripted import act, finish, turn_of

LONG = 60


@tool
def look(number: int) -> str:
    """Look."""
    return f"seen {number}"


def clerk(store):
    def model(messages):
        asked = sum(message["role"] == "user" for message in messages)
        return act("look", number=asked) if turn_of(messages) % 2 == 0 else finish(f"{asked}")

    return Agent(model, store=store, name="clerk", tools=[look])


@pytest.fixture
def kept(any_store):
    return any_store


async def items(watch):
    return [item async for item in watch]


async def test_whoever_knows_only_what_was_folded_is_told_so(kept):
    agent = clerk(kept)
    run = (await agent.run("Look.")).run
    last = run.seq
    kept.compact(run.id)
    await agent.start(run=run.id, say="Again.")
    new = [event.kind for event in kept.run(run.id).events(after=last)]
    for after in (None, -1, 0, last - 1):
        watched = await items(await asyncio.to_thread(kept.watch, run.id, after=after))
        read = kept.run(run.id).events(after=after)
        for found in (watched, read):
            first, *rest = [item for item in found if hasattr(item, "seq")]
            assert (type(first), first.seq) == (Compacted, last)
            assert [item.kind for item in rest] == new
    for after in (last, last + 1):
        found = [event.seq for event in kept.run(run.id).events(after=after)]
        assert found == list(range(after + 1, kept.run(run.id).seq + 1))
    assert kept.run(run.id).events(before=last) == []
    with pytest.raises(UsageError, match="leave it out"):
        kept.watch(run.id, after=kept.run(run.id).seq + 1)


async def test_a_run_that_is_followed_elsewhere_goes_on_after_it(here, far):
    agent = clerk(here)
    run = (await agent.run("Look.")).run
    known = far.run(run.id)
    texts, before = len(known.messages), known.tickets
    assert [event.seq for event in known.events()] == list(range(known.seq + 1))
    watch = known.watch(after=known.seq)
    await agent.start(run=run.id, say="Again.")
    # Nobody has read this yet.
    await asyncio.to_thread(here.compact, run.id)
    first, *rest = await asyncio.wait_for(items(watch), LONG)
    assert (type(first), rest) == (Compacted, [])
    now = here.run(run.id)
    followed = watch.run
    assert (followed.seq, followed.stop_reason) == (now.seq, "finished")
    assert list(followed.messages) == list(now.messages)
    assert len(followed.messages) > texts
    results = [ticket.result for ticket in now.tickets]
    assert [ticket.result for ticket in followed.tickets] == results
    assert len(results) == 2
    assert followed.tickets[0] == before[0]
    assert followed.outcomes_since(1) == followed.tickets[1:]
    await agent.start(run=run.id, say="And again.")
    later = await asyncio.wait_for(
        items(await asyncio.to_thread(far.watch, run.id, after=first.seq)), LONG
    )
    assert [item.kind for item in later][:2] == ["user_said", "model_asked"]


async def test_a_ticket_that_was_open_is_read_anew(here, far):
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    def model(messages):
        return act("pay") if turn_of(messages) == 0 else finish("done")

    agent = Agent(model, store=here, name="clerk", tools=[pay])
    run = agent.start("Pay.")
    await until(lambda: far.tickets(awaiting="approval"))
    known = far.run(run.id)
    assert [ticket.awaiting for ticket in known.tickets] == ["approval"]
    run.approve("T1")
    await run
    await asyncio.to_thread(here.compact, run.id)
    await asyncio.wait_for(items(known.watch(after=known.seq)), LONG)
    assert [(ticket.awaiting, ticket.result) for ticket in known.tickets] == [(None, "paid")]
