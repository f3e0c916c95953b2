"""Reading a log while it grows: by positions, each event once."""

import asyncio

import pytest

from callslip import Agent, Event, ScriptedModel, TicketStore, UsageError, tool
from scripted import act, finish


@tool
def look(at: int) -> str:
    """Look."""
    return f"seen {at}"


def agent(store=None, *more):
    replies = [act("look", at=1), "nonsense", act("look", at=2), finish()]
    return Agent(ScriptedModel(replies), tools=[look, *more], store=store)


def test_the_events_between_any_two():
    run = agent().run_sync("go").run
    log = run.log
    assert [event.seq for event in log] == list(range(len(log)))
    assert run.seq == len(log) - 1
    for after in range(-1, len(log)):
        assert run.events(after=after) == log[after + 1 :]
        assert run.events(before=after) == log[: max(0, after)]
        for before in range(-1, len(log)):
            between = [event for event in log if after < event.seq < before]
            assert run.events(after=after, before=before) == between


def test_those_of_a_compacted_run():
    with TicketStore() as store:
        run_id = agent(store).run_sync("go").run.id
        store.compact(run_id)
        run = store.run(run_id)
        (first, *_) = log = run.log
        assert first.kind == "compacted"
        assert run.seq == log[-1].seq
        assert run.events(after=first.seq) == log[1:]
        assert run.events(after=0) == log
        assert run.events(before=first.seq) == []


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize("seq", [-2, 10_000, "1", 1.0, True])
def test_a_position_that_is_not_in_the_log(name, seq):
    run = agent().run_sync("go").run
    with pytest.raises(UsageError, match=f"expected {name}= as the seq of an event"):
        run.events(**{name: seq})


def test_what_is_new_is_read_while_the_run_goes_on():
    seen, reads = [], []

    @tool
    async def note(n: int) -> str:
        """Note."""
        after = seen[-1].seq if seen else -1
        seen.extend(run.events(after=after))
        reads.append(len(seen))
        return "noted"

    async def main():
        nonlocal run
        replies = [act("note", n=1), act("note", n=2), finish()]
        run = Agent(ScriptedModel(replies), tools=[note]).start("go")
        assert run.seq >= -1
        await run
        return run

    run = None
    asyncio.run(main())
    seen += run.events(after=seen[-1].seq)
    assert seen == run.log
    assert 0 < reads[0] < reads[1] < len(seen)


def test_an_event_is_read_once(monkeypatch):
    run = agent().run_sync("go").run
    log = run.log
    assert isinstance(log[0], Event)
    monkeypatch.setattr("callslip.runs._log_cache.read_event", None)
    assert [id(event) for event in run.log] == [id(event) for event in log]
    log.clear()
    assert len(run.log) == run.seq + 1


def test_a_run_that_has_not_begun():
    async def main():
        started = asyncio.Event()

        async def check(task, context):
            started.set()
            await asyncio.sleep(0)

        run = Agent(ScriptedModel([finish()]), check_task=check).start("go")
        assert (run.seq, run.events(), run.log) == (-1, [], [])
        assert (await run).run.seq > 0

    asyncio.run(main())
