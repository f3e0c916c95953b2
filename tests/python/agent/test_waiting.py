"""Runs that wait for a decision, and for nothing else."""

import asyncio
import random

import pytest

from callslip import Agent, Delta, Event, RunCancelled, TicketProtocol, TicketStore, Waiting, tool
from random_cases import seeds
from scripted import act, block, call, finish, give, spawn, turn_of, wait, wait_for


@tool(needs_approval=True, effect="idempotent")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(external=True)
def pick(amount: int) -> str:
    """Let the user pick."""


@tool(external=True, needs_approval=True)
def sign(amount: int) -> str:
    """Let the user sign."""


def said(*replies):
    """A model that says these in turn, in each run."""
    return lambda messages: replies[turn_of(messages)]


def ids(tickets):
    return None if tickets is None else [(ticket.run_id, ticket.id) for ticket in tickets]


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request, tmp_path):
    if request.param == "memory":
        yield None
        return
    path = tmp_path / "runs.sqlite"
    with TicketStore(
        request.getfixturevalue("database") if request.param == "postgres" else path
    ) as store:
        yield store


async def watched(run, decide, **options):
    """Watch a run to its end, and decide where it waits. Returns all items."""
    items = []
    async for item in run.watch(**options):
        items.append(item)
        if isinstance(item, Waiting):
            decide(item)
    return items


def approve_all(run):
    def decide(waiting):
        for ticket in waiting.tickets:
            run.approve(ticket)

    return decide


def act_on(run, ticket):
    if ticket.awaiting == "approval":
        run.approve(ticket)
    else:
        run.answer(ticket, f"answered {ticket.arguments['amount']}")


def test_a_run_waits_where_nothing_goes_on(store):
    async def main():
        agent = Agent(said(act("pay", amount=1), finish()), tools=[pay], store=store)
        run = agent.start("go")
        seen = []

        def decide(waiting):
            seen.append((waiting.run_id, ids(waiting.tickets), ids(run.waiting)))
            run.approve(waiting.tickets[0])

        items = await watched(run, decide)
        assert run.waiting is None
        return run, items, seen

    run, items, seen = asyncio.run(main())
    assert seen == [(run.id, [(run.id, "T1")], [(run.id, "T1")])]
    (at,) = [at for at, item in enumerate(items) if isinstance(item, Waiting)]
    kinds = [item.kind for item in items[:at] if isinstance(item, Event)]
    assert kinds == [event.kind for event in run.log[: len(kinds)]]
    assert kinds[-1] == "ticket_opened"
    assert items[at].tickets[0].awaiting_approval
    assert [item for item in items if isinstance(item, Event)] == run.log


@pytest.mark.parametrize("read", ["run", "store"])
@pytest.mark.parametrize("names", [["pick"], ["sign"], ["pick", "pay"], ["sign", "pick", "pay"]])
def test_a_run_waits_for_results_from_outside(names, read, store):
    if read == "store" and store is None:
        pytest.skip("only the run itself has what is in memory")
    calls = [(f"c{at}", name, {"amount": at}) for at, name in enumerate(names)]
    replies = [block(*calls), "done"]

    async def main():
        model, tools = said(*replies), [pick, sign, pay]
        agent = Agent(model, protocol="chatty", tools=tools, store=store)
        run = agent.start("go")
        seen = []

        def decide(waiting):
            there = run if read == "run" else store.run(run.id)
            seen.append([(ticket.tool, ticket.awaiting) for ticket in waiting.tickets])
            assert ids(there.waiting) == ids(waiting.tickets)
            assert ids(there.awaiting_result) == [
                (run.id, ticket.id) for ticket in waiting.tickets if ticket.awaiting == "result"
            ]
            act_on(there, waiting.tickets[0])

        await watched(run, decide)
        assert (run.waiting, run.awaiting_result) == (None, [])
        return (await run).tickets, seen

    tickets, seen = asyncio.run(main())
    wanted, left = [], [(name, "result" if name == "pick" else "approval") for name in names]
    while left:
        wanted.append(list(left))
        name, awaiting = left.pop(0)
        if name == "sign" and awaiting == "approval":
            left.insert(0, (name, "result"))
    assert seen == wanted
    assert [ticket.result for ticket in tickets] == [
        f"paid {at}" if name == "pay" else f"answered {at}" for at, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", ["pick", "sign"])
def test_a_run_waits_for_the_result_of_a_call_below_it(name, store):
    async def main():
        helper = Agent(said(act(name, amount=1), finish("7")), tools=[pick, sign], store=store)
        boss = said(act("ask", task="x"), finish("8"))
        agent = Agent(boss, tools=[helper.as_tool(name="ask")], store=store)
        run = agent.start("go")
        seen = []

        def decide(waiting):
            (ticket,) = waiting.tickets
            seen.append((ids(run.waiting), ticket.awaiting))
            act_on(run, ticket)

        await watched(run, decide)
        return (await run).value, run.id, seen

    value, run_id, seen = asyncio.run(main())
    waits = {"pick": ["result"], "sign": ["approval", "result"]}[name]
    assert (value, seen) == ("8", [([(f"{run_id}.T1", "T1")], wait) for wait in waits])


def test_the_sync_driver_waits_alike(store):
    async def main():
        agent = Agent(said(act("pay", amount=1), finish()), tools=[pay], store=store)
        if store is None:
            return await beside(agent, lambda run: run)
        return await beside(agent, lambda run: store.run(run.id))

    async def beside(agent, seen_as):
        begun = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def drive():
            with agent.stream_sync("go") as stream:
                for item in stream:
                    if getattr(item, "kind", None) == "run_started":
                        loop.call_soon_threadsafe(begun.set_result, stream.run)
                return stream.result

        driving = asyncio.create_task(asyncio.to_thread(drive))
        run = seen_as(await begun)
        items = await watched(run, approve_all(run))
        return await driving, items

    result, items = asyncio.run(main())
    waits = [ids(item.tickets) for item in items if isinstance(item, Waiting)]
    assert (result.value, waits) == ("done", [[(result.run.id, "T1")]])


def test_it_does_not_wait_while_a_call_goes_on():
    async def main():
        may_end = asyncio.Event()

        @tool
        async def work() -> str:
            """Work."""
            await may_end.wait()
            return "worked"

        calls = block(("p", "pay", {"amount": 1}), ("w", "work", {}))
        run = Agent(said(calls, "done"), protocol="chatty", tools=[pay, work]).start("go")
        seen = []

        def decide(waiting):
            seen.append(ids(waiting.tickets))
            run.approve("T1")

        watching = asyncio.create_task(watched(run, decide))
        await until(lambda: run.awaiting_approval)
        for _ in range(20):
            await asyncio.sleep(0)
        before = (ids(run.waiting), list(seen))
        may_end.set()
        items = await watching
        items = [item for item in items if not isinstance(item, Delta)]
        kinds = [getattr(item, "kind", "waiting") for item in items]
        return run, before, seen, kinds

    run, before, seen, kinds = asyncio.run(main())
    assert before == (None, [])
    assert seen == [[(run.id, "T1")]]
    assert kinds.index("waiting") > kinds.index("ticket_completed")


def test_each_wait_is_told_once():
    async def main():
        calls = block(*((f"c{n}", "pay", {"amount": n}) for n in range(3)))
        run = Agent(said(calls, "done"), protocol="chatty", tools=[pay]).start("go")
        seen = []

        def decide(waiting):
            seen.append([ticket.id for ticket in waiting.tickets])
            run.send("Hurry.") if len(seen) == 1 else None
            run.deny(waiting.tickets[0]) if len(seen) == 2 else run.approve(waiting.tickets[0])

        await watched(run, decide)
        return seen

    assert asyncio.run(main()) == [["T1", "T2", "T3"], ["T2", "T3"], ["T3"]]


def test_who_comes_later_is_told_after_the_events(store):
    async def main():
        agent = Agent(said(act("pay", amount=1), finish()), tools=[pay], store=store)
        run = agent.start("go")
        await until(lambda: run.waiting)
        seen = []
        for after in (None, run.seq - 1, run.seq):
            items = []
            async for item in run.watch(after=after):
                items.append(item)
                if isinstance(item, Waiting):
                    break
            items = [item for item in items if not isinstance(item, Delta)]
            seen.append([getattr(item, "seq", "waiting") for item in items])
        run.deny("T1")
        await run
        return seen

    seen = asyncio.run(main())
    assert seen == [[0, 1, 2, 3, 4, "waiting"], [4, "waiting"], ["waiting"]]


def boss_of(store, way):
    """An agent whose child run asks, by one of the ways to start such a run."""
    clerk = Agent(
        said(act("pay", amount=7), finish("paid")), tools=[pay], name="clerk", store=store
    )

    @tool
    async def ask(task: str) -> str:
        """Ask the clerk."""
        return (await clerk.run(task)).value

    if way == "tool":
        return Agent(
            said(act("clerk", task="Pay."), finish()),
            tools=[clerk.as_tool(description="d")],
            store=store,
        )
    if way == "call":
        return Agent(said(act("ask", task="Pay."), finish()), tools=[ask], store=store)
    if way == "role":
        replies = [block(spawn("s", "Pay.", "clerk"), wait_for("s")), "done"]
        return Agent(said(*replies), protocol="chatty", roles={"clerk": clerk}, store=store)
    raise AssertionError(way)


@pytest.mark.parametrize("children", [False, True])
@pytest.mark.parametrize("way", ["tool", "call", "role"])
def test_a_child_run_waits(store, way, children):
    if store is None and way == "call":
        pytest.skip("nobody can be asked for it")

    async def main():
        run = boss_of(store, way).start("go")
        items = await watched(run, approve_all(run), children=children)
        return run, items

    run, items = asyncio.run(main())
    waits = [(item.run_id, ids(item.tickets)) for item in items if isinstance(item, Waiting)]
    (child,) = run.children
    assert waits == [(run.id, [(child.id, "T1")])]
    at = next(at for at, item in enumerate(items) if isinstance(item, Waiting))
    asked = [at for at, item in enumerate(items) if getattr(item, "needs_approval", None) is True]
    assert len(asked) == 1
    assert asked[0] < at
    if children:
        told = [
            item.seq
            for item in items[:at]
            if getattr(item, "run_id", "") == child.id and hasattr(item, "seq")
        ]
        assert told == [event.seq for event in child.log if event.seq <= told[-1]]


def test_a_run_at_rest_waits(tmp_path):
    async def begin(store):
        run = boss_of(store, "tool").start("go")
        await until(lambda: run.waiting)
        return run.id

    async def look(store):
        run = store.run(run_id)
        assert ids(run.waiting) == [(f"{run_id}.T1", "T1")]
        async with asyncio.timeout(30):
            async for item in run.watch():
                if isinstance(item, Waiting):
                    break
        run.approve(item.tickets[0])
        assert store.run(run_id).waiting is None
        return ids(item.tickets)

    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        run_id = asyncio.run(begin(store))
    with TicketStore(path) as store:
        assert asyncio.run(look(store)) == [(f"{run_id}.T1", "T1")]


def test_a_run_that_ended_does_not_wait():
    run = Agent(said(finish())).run_sync("go").run
    assert run.waiting is None

    async def main():
        return [item async for item in run.watch() if isinstance(item, Waiting)]

    assert asyncio.run(main()) == []


def test_a_model_that_goes_on_beside_an_open_call():
    replies = [call("/pay", {"amount": 1}), call("/pay", {"amount": 2}), wait("T1"), give("done")]

    async def main():
        agent = Agent(said(*replies), protocol=TicketProtocol(grace=0), tools=[pay])
        run = agent.start("go")
        seen = []

        def decide(waiting):
            seen.append(([ticket.id for ticket in waiting.tickets], run.turns))
            for ticket in waiting.tickets:
                run.approve(ticket)

        await watched(run, decide)
        return seen

    assert asyncio.run(main()) == [(["T1", "T2"], 3)]


@pytest.mark.parametrize("seed", seeds(60))
def test_it_waits_exactly_where_only_a_decision_goes_on(seed):
    """Whatever happens: at a wait nothing goes on, and each decision that is due is in one."""
    chance = random.Random(seed)

    async def main():
        busy = 0

        @tool
        async def work(n: int) -> int:
            """Work."""
            nonlocal busy
            busy += 1
            for _ in range(n):
                await asyncio.sleep(0)
            busy -= 1
            return n

        def one(name):
            tool_name = chance.choice(["pay", "work"])
            return name, tool_name, {"amount" if tool_name == "pay" else "n": chance.randrange(9)}

        turns = [
            block(*(one(f"c{turn}_{n}") for n in range(chance.randrange(1, 5))))
            for turn in range(chance.randrange(1, 4))
        ]
        run = Agent(said(*turns, "done"), protocol="chatty", tools=[pay, work]).start("go")
        decided = set()

        def decide(waiting):
            assert not busy
            open_ids = {ticket.id for ticket in run.tickets if ticket.status == "IN_PROGRESS"}
            assert {ticket.id for ticket in waiting.tickets} == open_ids
            ticket = chance.choice(waiting.tickets)
            assert ticket.id not in decided
            decided.add(ticket.id)
            chance.choice([run.approve, run.deny])(ticket)

        async with asyncio.timeout(60):
            await watched(run, decide)
        assert decided == {ticket.id for ticket in run.tickets if ticket.tool == "pay"}

    asyncio.run(main())


def test_a_run_that_is_cancelled_waits_no_longer():
    async def main():
        run = Agent(said(act("pay", amount=1), finish()), tools=[pay]).start("go")
        await until(lambda: run.waiting)
        run.cancel()
        with pytest.raises(RunCancelled):
            await run
        assert run.waiting is None

    asyncio.run(main())
