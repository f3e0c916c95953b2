"""Reading tickets while a run grows: each once, and again where it has changed."""

import asyncio
import random

import pytest

from callslip import (
    Agent,
    Context,
    Limits,
    Retry,
    ScriptedModel,
    Ticket,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip.errors import RunFailed
from random_cases import seeds
from scripted import act, block, finish, spawn, turn_of, wait_for


def read_anew(run):
    """The tickets as the core has them, without what was read before."""
    return [Ticket.from_row(row) for row in run._core.ticket_news(0, 0)[0]]


def check_reads(run):
    while True:
        seq = run.seq
        tickets, anew, again = run.tickets, read_anew(run), run.tickets
        # Other threads may go on with the run between two readings.
        if run.seq == seq:
            break
    assert tickets == anew
    # The same again, and in a list of its own.
    assert again is not tickets
    assert all(one is other for one, other in zip(tickets, again, strict=True))


def tools_of(chance, check):
    def maybe(arguments, context):
        check()
        return arguments["n"] % 3 == 0 and "thirds are asked for"

    @tool(needs_approval=maybe, effect="idempotent")
    def some(n: int, context: Context) -> str:
        """Do."""
        check()
        if n % 7 == 6:
            raise Retry("another number")
        if n % 7 == 5:
            raise LookupError(n)
        return f"did {n}"

    @tool(retries=2, effect="pure")
    async def flaky(n: int) -> int:
        """Look up."""
        check()
        await asyncio.sleep(0)
        if chance.random() < 0.4:
            raise ConnectionError("away")
        return n

    return [some, flaky]


def replies_of(chance, turns):
    def one(name):
        return name, chance.choice(["some", "flaky"]), {"n": chance.randrange(100)}

    replies = []
    for turn in range(turns):
        calls = [one(f"c{turn}_{n}") for n in range(chance.randrange(1, 4))]
        if chance.random() < 0.5:
            calls.insert(0, (f"p{turn}", "flaky", {"n": 3}))
            calls.append((f"r{turn}", "some", {"n": f"$p{turn}"}))
        if chance.random() < 0.3:
            calls.append(spawn(f"s{turn}", "Do a part."))
            calls.append(wait_for(f"s{turn}", call_id=f"w{turn}"))
        replies.append(block(*calls))
    return replies


@pytest.mark.parametrize("seed", seeds(40))
def test_what_is_read_at_any_moment_is_what_the_run_has(seed):
    chance = random.Random(seed)
    runs, replies = [], replies_of(chance, chance.randrange(1, 5))

    def model(messages):
        return (
            [*replies, "done"][turn_of(messages)] if "Do a part" not in str(messages[-1]) else "x"
        )

    def check():
        for run in runs:
            check_reads(run)

    def decide(ticket):
        check()
        runs[0].deny(ticket) if chance.random() < 0.4 else runs[0].approve(ticket)

    with TicketStore() as store:
        agent = Agent(
            model, protocol="chatty", tools=tools_of(chance, check), delegate=True, store=store
        )
        with agent.stream_sync("go") as stream:
            for item in stream:
                if not runs:
                    runs.append(stream.run)
                check()
                if getattr(item, "needs_approval", None) is True:
                    for ticket in stream.run.awaiting_approval:
                        decide(ticket)
        check()
        run = runs[0]
        assert replay(run.export()).tickets == run.tickets == store.run(run.id).tickets
        ended = run.outcomes_since(0)
        order = [event.ticket_id for event in run.log if event.kind == "ticket_completed"]
        assert [ticket.id for ticket in ended] == order
        for known in range(len(ended) + 2):
            assert run.outcomes_since(known) == ended[known:]
        store.compact(run.id)
        compacted = store.run(run.id)
        assert compacted.tickets == run.tickets
        assert compacted.outcomes_since(0) == ended


@pytest.mark.parametrize("known", [-1, 1.5, "1", True, None])
def test_outcomes_since_no_number(known):
    run = Agent(ScriptedModel([finish()])).run_sync("go").run
    with pytest.raises(UsageError, match="expected known"):
        run.outcomes_since(known)


@pytest.mark.parametrize("driver", ["run", "run_sync"])
def test_a_tool_reads_the_outcomes_before_it(driver):
    seen = []

    @tool
    def look(n: int, context: Context) -> dict:
        """Look."""
        new = runs[0].outcomes_since(len(seen))
        seen.extend(new)
        return {"n": n, "seen": len(seen)}

    runs = []

    def model(messages):
        turn = turn_of(messages)
        return act("look", n=turn) if turn < 5 else finish()

    @tool
    def unused() -> None:
        """Do nothing."""

    agent = Agent(model, tools=[look, unused])

    async def main():
        run = agent.start("go")
        runs.append(run)
        return await run

    if driver == "run":
        result = asyncio.run(main())
    else:
        with agent.stream_sync("go") as stream:
            runs.append(stream.run)
            list(stream)
            result = stream.result
    seen += result.run.outcomes_since(len(seen))
    assert seen == result.tickets
    assert [ticket.result for ticket in seen] == [{"n": n, "seen": n} for n in range(5)]


def test_a_read_makes_only_what_is_new(monkeypatch):
    made = []
    from_row = Ticket.from_row

    def counted(row, *more):
        made.append(row.id)
        return from_row(row, *more)

    @tool
    async def look(n: int) -> int:
        """Look."""
        made.clear()
        _ = runs[0].tickets, runs[0].awaiting_approval, runs[0].waiting
        most.append(len(made))
        return n

    runs, most = [], []

    def model(messages):
        turn = turn_of(messages)
        return act("look", n=turn) if turn < 30 else finish()

    async def main():
        runs.append(Agent(model, tools=[look], limits=Limits(turns=40)).start("go"))
        await runs[0]

    monkeypatch.setattr(Ticket, "from_row", counted)
    asyncio.run(main())
    # The ticket of the call, and that of the call before, which has ended since.
    assert most == [1] + [2] * 29


def test_the_tickets_of_a_run_that_failed():
    @tool
    def fail() -> None:
        """Fail."""
        raise LookupError("no such thing")

    agent = Agent(ScriptedModel([act("fail"), "?", "?", "?", "?"]), tools=[fail])
    with pytest.raises(RunFailed) as failed:
        agent.run_sync("go")
    check_reads(failed.value.run)
