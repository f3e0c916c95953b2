"""A run that begins from another run is of the same owner, whichever way it begins: `erase` of the
owner leaves nothing of it."""

import asyncio
import pickle

import pytest

from callslip import Agent, TicketStore, replay, tool
from callslip.errors import StoreError, UsageError
from callslip.fleet import Fleet
from scripted import PATIENT, act, block, delegate, finish, give, spawn, turn_of, wait, wait_for

DELEGATED = {
    "ticket": [delegate("t"), wait("T1"), give("done")],
    "chatty": [block(spawn("s", "t")), block(wait_for("s")), "done"],
}


def agent(store, *replies, **options):
    options.setdefault("name", "clerk")

    def model(messages):
        return replies[turn_of(messages)] if replies else finish()

    return Agent(model, store=store, **options)


def first(store, how="run_sync"):
    result = getattr(agent(store, finish("the answer")), how)("the task", owner="ann")
    return result.run


def by_protocol(name):
    def way(store):
        protocol = PATIENT if name == "ticket" else name
        worker = "done" if name == "chatty" else give("in")
        script = DELEGATED[name]

        def model(messages):
            is_worker = "t" in {line.strip() for line in messages[-1]["content"].splitlines()}
            return worker if is_worker else script[turn_of(messages)]

        Agent(model, protocol=protocol, store=store, delegate=True).run_sync("go", owner="ann")

    return way


def as_tool(store):
    inner = agent(store, name="inner").as_tool()
    agent(store, act("inner", task="t"), finish(), tools=[inner]).run_sync("go", owner="ann")


def calling(function):
    """A run with a tool that calls an async function, and so begins another run."""

    def way(store):
        other = first(store)

        @tool
        async def begin() -> str:
            """Begin another run."""
            return (await function(store, other)).value

        agent(store, act("begin"), finish(), tools=[begin]).run_sync("go", owner="ann")

    return way


def after_a_crash(store):
    """The task of a run is delegated by the next process."""
    inner = agent(store, name="inner").as_tool()
    again = agent(store, act("inner", task="t"), finish(), tools=[inner])
    live = TicketStore()
    run = (
        agent(live, act("inner", task="t"), finish(), tools=[agent(live, name="inner").as_tool()])
        .run_sync("go", owner="ann")
        .run
    )
    lines = run.export().splitlines(keepends=True)
    opened = next(number for number, line in enumerate(lines) if "ticket_opened" in line)
    again.resume_sync(store.import_run(lines[: opened + 1]))


def copied(copy):
    def way(store):
        run = copy(store, first(store))
        agent(store, name="sales").hand_over_sync(run, say="go on")

    return way


def compacted(store, run):
    store.compact(run.id)
    return store.run(run.id)


def of_a_child(store):
    as_tool(store)
    (child,) = store.runs(agent="inner")
    agent(store, name="sales").hand_over_sync(store.run(child.run_id), say="go on")


def handed_over_async(store):
    asyncio.run(agent(store, name="sales").hand_over(first(store), say="go on"))


def continued(store):
    run = first(store)
    asyncio.run(run_on(agent(store, finish(), finish("on")), run.id))


async def run_on(clerk, run_id):
    await clerk.start(run=run_id, say="and then?")


WAYS = {
    "delegated task": by_protocol("ticket"),
    "spawned agent": by_protocol("chatty"),
    "agent as a tool": as_tool,
    "run inside a tool": calling(lambda store, _: agent(store, name="inner").run("t")),
    "handed over inside a tool": calling(
        lambda store, other: agent(store, name="inner").hand_over(other, say="t")
    ),
    "delegated after a crash": after_a_crash,
    "handed over": copied(lambda _, run: run),
    "handed over, async": handed_over_async,
    "handed over, read": copied(lambda store, run: store.run(run.id)),
    "handed over, compacted": copied(compacted),
    "handed over, pickled": copied(lambda _, run: pickle.loads(pickle.dumps(run))),
    "handed over, replayed": copied(lambda _, run: replay(run)),
    "child run handed over": of_a_child,
    "next turn": continued,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_begins_from_another_one_has_its_owner(way):
    store = TicketStore()
    agent(store).run_sync("the task of somebody else", owner="bob")
    WAYS[way](store)
    assert {run.owner for run in store.runs()} == {"ann", "bob"}
    logs = [store.run(run.run_id).export() for run in store.runs(owner="ann")]
    assert len(logs) > ("next" not in way)
    other = TicketStore()
    for log in reversed(logs):
        other.import_run(log)
    assert {run.owner for run in other.runs()} == {"ann"}
    store.erase(owner="ann")
    assert [run.owner for run in store.runs()] == ["bob"]


def test_a_run_that_a_tool_submits_has_the_owner_of_the_run_that_calls(database):
    with TicketStore(database) as store:
        fleet = Fleet(store, [])

        @tool
        async def submit(owner: str = "", tenant: str = "") -> str:
            """Submit a run."""
            return await fleet.submit("later", "t", owner=owner or None, tenant=tenant or None)

        script = [act("submit"), act("submit", owner="bob"), act("submit", tenant="acme"), finish()]
        asyncio.run(agent(store, *script, tools=[submit]).run("go", owner="ann"))
        rows = store.query("SELECT owner FROM callslip.run WHERE id NOT LIKE '%.%'")
        assert sorted(row["owner"] for row in rows) == ["acme", "ann", "ann", "bob"]


@pytest.fixture
def store(any_store):
    return any_store


def is_of_ann(store, run):
    assert (run.owner, run.key) == ("ann", "k")
    assert store.run(run.id, owner="ann").id == run.id
    with pytest.raises(StoreError) as missing:
        store.run("0" * 16, owner="bob")
    with pytest.raises(StoreError) as refused:
        store.run(run.id, owner="bob")
    assert str(refused.value).replace(run.id, "0" * 16) == str(missing.value)


def test_a_run_says_whose_it_is_at_any_time(store):
    def check(_task, context):
        seen.append(context.run_id)
        is_of_ann(store, begun[0])

    begun, seen = [], []
    clerk = agent(store, check_task=check)

    async def main():
        run = clerk.start("t", owner="ann", key="k")
        begun.append(run)
        is_of_ann(store, run) if store._shared is None else None
        await run
        is_of_ann(store, run)

    asyncio.run(main())
    run_id = begun[0].id
    assert seen == [run_id]
    is_of_ann(store, store.run(run_id))
    is_of_ann(store, pickle.loads(pickle.dumps(store.run(run_id))))
    store.compact(run_id)
    is_of_ann(store, store.run(run_id))
    nobody = clerk_run(store)
    assert (nobody.owner, nobody.key) == (None, None)
    with pytest.raises(StoreError):
        store.run(nobody.id, owner="ann")
    with pytest.raises(UsageError):
        store.run(run_id, owner="")


def clerk_run(store):
    return store.run(agent(store).run_sync("t").run.id)


def test_a_submitted_run_says_whose_it_is(database):
    with TicketStore(database) as store:
        run_id = asyncio.run(Fleet(store, []).submit("later", "t", owner="ann", key="k"))
        is_of_ann(store, store.run(run_id))
