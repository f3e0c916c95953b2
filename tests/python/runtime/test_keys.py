"""Keys and owners of runs: a key is one run of an owner and an agent, whoever asks and when."""

import asyncio
import contextlib
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import Agent, Image, TicketStore, _core, tool
from callslip._runtime import keyed
from callslip._runtime.session_end import SessionEnd
from callslip.errors import KeyTaken, ModelError, RunCancelled, StoreError, UsageError
from callslip.fleet import Fleet
from pictures import png
from random_cases import seeds
from scripted import act, finish, turn_of

PLACES = ["memory", "file", "database"]


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    if request.param == "database":
        return request.getfixturevalue("database")
    return None if request.param == "memory" else tmp_path / "runs.sqlite"


@pytest.fixture
def store(place):
    with TicketStore(place) as store:
        yield store


def agent_of(store, replies=None, **options):
    said = replies or [finish("done")]
    options = {"name": "clerk", **options}
    return Agent(lambda messages: said[turn_of(messages)], store=store, **options)


def run(agent, how, *args, **options):
    if how == "run_sync":
        return agent.run_sync(*args, **options).run.id
    if how == "run":
        return asyncio.run(agent.run(*args, **options)).run.id

    async def started():
        run = agent.start(*args, **options)
        await run
        return run.id

    return asyncio.run(started())


WAYS = ["run", "run_sync", "start"]


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_the_same_key_gives_the_same_run(store, first, second):
    agent = agent_of(store)
    ids = [run(agent, how, "Pay 7.", key="order-7", owner="ann") for how in (first, second)]
    assert ids[0] == ids[1]
    (row,) = store.runs()
    assert (row.owner, row.key, row.turns) == ("ann", "order-7", 1)
    assert store.run(key="order-7", owner="ann", agent="clerk").id == ids[0]


def test_a_key_belongs_to_an_owner_and_an_agent(store):
    clerk, other = agent_of(store), agent_of(store, name="other")
    ids = {
        run(agent, "run", f"Pay for {owner}.", key="order-7", owner=owner)
        for agent in (clerk, other)
        for owner in ("ann", "bob", None)
    }
    assert len(ids) == 6
    assert {row.owner for row in store.runs(owner="bob")} == {"bob"}
    assert store.run(key="order-7", owner="eve", agent="clerk") is None


@pytest.mark.parametrize("how", WAYS)
def test_another_task_is_refused_with_the_run_that_has_the_key(store, how):
    agent = agent_of(store)
    first = run(agent, "run", "Pay 7.", key="k")
    with pytest.raises(KeyTaken, match="use another key") as caught:
        run(agent, how, "Pay 8.", key="k")
    assert caught.value.run.id == first
    assert len(store.runs()) == 1


def test_images_are_a_part_of_the_task(store):
    agent = agent_of(store)
    task = ["What is it?", Image(png(4, 4))]
    assert run(agent, "run", task, key="k") == run(agent, "start", task, key="k")
    with pytest.raises(KeyTaken):
        run(agent, "run", ["What is it?", Image(png(8, 4))], key="k")


def test_a_key_is_free_again_after_its_run_was_deleted(store):
    agent = agent_of(store)
    first = run(agent, "run", "Pay 7.", key="k")
    store.delete(first)
    assert run(agent, "run", "Pay 8.", key="k") != first


def test_a_key_is_free_again_where_its_run_did_not_begin(store):
    def check(task, context):
        if task == "bad":
            raise ValueError("no")

    agent = agent_of(store, check_task=check)
    for how in WAYS:
        with pytest.raises(ValueError, match="no"):
            run(agent, how, "bad", key="k")
    assert store.run(key="k", agent="clerk") is None
    assert run(agent, "run", "good", key="k")
    assert len(store.runs()) == 1


def test_a_cancelled_run_stays_cancelled(store):
    agent = agent_of(store, [act("hold"), finish()], tools=[holding := Holding()])

    async def main():
        begun = agent.start("Pay 7.", key="k")
        await asyncio.to_thread(holding.entered.wait)
        begun.cancel()
        holding.go.set()
        with contextlib.suppress(RunCancelled):
            await begun
        for _ in range(2):
            with pytest.raises(RunCancelled):
                await agent.run("Pay 7.", key="k")
        return begun

    begun = asyncio.run(main())
    assert begun.stop_reason == "cancelled"
    with pytest.raises(RunCancelled):
        agent.run_sync("Pay 7.", key="k")
    assert len(store.runs()) == 1


def test_an_unfinished_run_goes_on(place):
    """The process that has begun it is gone; whoever asks next with its key gets its result."""
    if place is None:
        pytest.skip("a store in memory ends with its process")
    calls = []

    @tool(effect="once")
    def pay() -> str:
        """Pay."""
        calls.append(1)
        return "paid"

    asked = threading.Event()

    async def silent(messages):
        if turn_of(messages):
            asked.set()
            await asyncio.Event().wait()
        return act("pay")

    async def left():
        with TicketStore(place) as store:
            agent = Agent(silent, store=store, tools=[pay], name="clerk")
            agent.start("Pay 7.", key="k")
            await asyncio.to_thread(asked.wait)

    asyncio.run(left())
    for how in WAYS:
        with TicketStore(place) as store:
            agent = agent_of(store, [act("pay"), finish("done")], tools=[pay])
            run(agent, how, "Pay 7.", key="k")
            assert len(store.runs(status="finished")) == 1
    assert len(calls) == 1


class Holding:
    """A tool that waits until it may go on."""

    def __new__(cls):
        entered, go = threading.Event(), threading.Event()

        @tool
        def hold() -> str:
            """Hold."""
            entered.set()
            assert go.wait(60)
            return "held"

        hold.entered, hold.go = entered, go
        return hold


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_who_comes_during_the_run_waits_for_it(store, first, second):
    agent = agent_of(store, [act("hold"), finish("done")], tools=[holding := Holding()])
    ids = []

    def begin(how):
        ids.append(run(agent, how, "Pay 7.", key="k"))

    threads = [threading.Thread(target=begin, args=(first,))]
    threads[0].start()
    assert holding.entered.wait(60)
    threads.append(threading.Thread(target=begin, args=(second,)))
    threads[1].start()
    holding.go.set()
    for thread in threads:
        thread.join(60)
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert len(store.runs()) == 1


@pytest.mark.random_cases
def test_any_number_that_ask_at_once_begin_one_run(store):
    for seed in seeds(2):
        chance, calls = random.Random(seed), []

        def model(messages, calls=calls):
            calls.append(1)
            return finish("done")

        agent = Agent(model, store=store, name=f"clerk {seed}")
        asked = [
            (chance.choice(WAYS), f"key {chance.randrange(4)}", chance.choice(["ann", "bob"]))
            for _ in range(24)
        ]
        with ThreadPoolExecutor(len(asked)) as threads:
            ids = list(threads.map(lambda one, agent=agent: (one[1:], ask(agent, *one)), asked))
        runs = dict(ids)
        assert (seed, set(ids)) == (seed, set(runs.items()))
        assert (seed, len(calls)) == (seed, len(runs))
        assert (seed, len(store.runs(agent=agent.name))) == (seed, len(runs))


def ask(agent, how, key, owner):
    return run(agent, how, f"{key} of {owner}", key=key, owner=owner)


def test_child_runs_have_the_owner_and_no_key(store):
    inner = agent_of(store, name="inner")
    outer = agent_of(
        store, [act("inner", task="t"), finish()], tools=[inner.as_tool()], name="outer"
    )
    run(outer, "run", "Go.", owner="ann", key="k")
    assert {(row.agent, row.owner, row.key) for row in store.runs()} == {
        ("outer", "ann", "k"),
        ("inner", "ann", None),
    }
    assert {ticket.tool for ticket in store.tickets(owner="ann")} == {"inner"}
    assert store.tickets(owner="bob") == []


def test_the_owner_is_not_shown_to_the_model_and_stands_in_the_log(store):
    shown = []

    def model(messages):
        shown.append(str(messages))
        return finish("done")

    agent = Agent(model, store=store, name="clerk")
    asyncio.run(agent.run("Pay 7.", owner="ann-7731", key="key-4410"))
    assert "7731" not in shown[0]
    assert "4410" not in shown[0]
    (row,) = store.runs()
    started = store.run(row.run_id).log[0]
    assert (started.owner, started.key) == ("ann-7731", "key-4410")
    store.compact(row.run_id)
    assert store.run(key="key-4410", owner="ann-7731", agent="clerk").id == row.run_id


def test_a_stream_has_an_owner(store):
    list(agent_of(store).stream_sync("Pay 7.", owner="ann"))
    assert [row.owner for row in store.runs()] == ["ann"]


@pytest.mark.parametrize("again", ["before", "after"])
def test_a_message_with_a_key_is_said_once(store, again):
    agent = agent_of(
        store, [act("hold"), finish("one"), finish("two")], tools=[holding := Holding()]
    )

    async def main():
        begun = agent.start("Pay 7.")
        await asyncio.to_thread(holding.entered.wait)
        results = [begun.send("And 8.", key="m1")]
        if again == "before":
            results.append(begun.send("And 8.", key="m1"))
        holding.go.set()
        for result in results:
            await result
        if again == "after":
            await begun.send("And 8.", key="m1")
            await agent.start(run=begun.id, say="And 8.", key="m1")
        return begun

    begun = asyncio.run(main())
    said = [event for event in store.run(begun.id).log if event.kind == "user_said"]
    assert [(event.text, event.key) for event in said] == [("And 8.", "m1")]
    store.compact(begun.id)
    asyncio.run(once_more(agent, begun.id))
    assert sum(message["content"].count("And 8.") for message in store.run(begun.id).messages) == 1


async def once_more(agent, run_id):
    await agent.start(run=run_id, say="And 8.", key="m1")


def test_what_an_owner_or_a_key_must_be(store):
    agent = agent_of(store)
    for bad in ("", "x" * 201, 7, "\ud800"):
        for name in ("key", "owner"):
            with pytest.raises(UsageError, match=name):
                agent.run_sync("Pay 7.", **{name: bad})
    with pytest.raises(UsageError, match="a store for key="):
        Agent(lambda _: finish()).run_sync("Pay 7.", key="k")
    with pytest.raises(UsageError, match="its key"):
        store.run("0" * 16, key="k")
    with pytest.raises(UsageError, match="neither"):
        store.run()
    assert store.runs() == []


def test_a_tool_gives_its_runs_neither(store):
    inner = agent_of(store, name="inner")
    told = []

    @tool
    async def ask() -> str:
        """Ask."""
        for options in ({"key": "k"}, {"owner": "bob"}):
            try:
                await inner.run("Go.", **options)
            except UsageError as error:
                told.append(str(error))
        return "asked"

    agent_of(store, [act("ask"), finish()], tools=[ask], name="outer").run_sync("Go.")
    assert len(told) == 2
    assert all("inside a tool" in one for one in told)


def test_a_run_that_was_imported_leaves_the_key_to_the_one_that_has_it(store, tmp_path):
    with TicketStore(tmp_path / "other.sqlite") as other:
        log = other.run(run(agent_of(other), "run", "Pay 7.", key="k")).export()
    first = run(agent_of(store), "run", "Pay 7.", key="k")
    imported = store.import_run(log.splitlines())
    assert imported != first
    assert store.run(key="k", agent="clerk").id == first
    assert len(store.runs()) == 2


async def submitted(database):
    with TicketStore(database) as store:
        fleet = Fleet(store)
        first = await fleet.submit("clerk", "Pay 7.", key="k", tenant="acme")
        assert await fleet.submit("clerk", "Pay 7.", key="k", tenant="acme", queue="quick") == first
        assert await fleet.submit("clerk", "Pay 7.", key="k", owner="acme") == first
        with pytest.raises(KeyTaken) as caught:
            await fleet.submit("clerk", "Pay 8.", key="k", tenant="acme")
        assert caught.value.run.id == first
        others = [
            await fleet.submit("clerk", "Pay 7.", key="k", tenant="beta"),
            await fleet.submit("clerk", "Pay 7.", key="k"),
            await fleet.submit("other", "Pay 7.", key="k", tenant="acme"),
            await fleet.submit("clerk", "Pay 7.", key="k", tenant="acme", owner="ann"),
        ]
        assert len({first, *others}) == 5
        return first


def test_a_tenant_gets_no_run_of_another(database):
    first = asyncio.run(submitted(database))

    async def work():
        with TicketStore(database) as store:
            agents = [agent_of(store), agent_of(store, name="other")]
            working = asyncio.create_task(Fleet(store, agents).work())
            assert (await Fleet(store, agents).result(first)).value == "done"
            # What has begun is compared by its log.
            assert await Fleet(store).submit("clerk", "Pay 7.", key="k", tenant="acme") == first
            with pytest.raises(KeyTaken):
                await Fleet(store).submit("clerk", "Pay 8.", key="k", tenant="acme")
            assert (await agents[0].run("Pay 7.", key="k", owner="acme")).run.id == first
            working.cancel()
            await asyncio.wait([working])
            started = store.run(first).log[0]
            assert (started.owner, started.key) == ("acme", "k")

    asyncio.run(work())


def taken(store):
    """Take the key of a run as another process does that has written nothing of the run yet."""
    setup = agent_of(store)._setup.native
    return _core.Run(setup, run_id="a" * 16, agent="clerk", key="k", store=store._native)


def asked_with_the_key(database, how, task):
    with TicketStore(database) as other:
        if how == "submit":
            return asyncio.run(Fleet(other).submit("clerk", task, key="k"))
        return run(agent_of(other), how, task, key="k")


@pytest.mark.parametrize("how", [*WAYS, "submit"])
def test_who_comes_while_a_run_begins_waits_for_what_is_written(database, how):
    with TicketStore(database) as store, ThreadPoolExecutor(1) as threads:
        begun = taken(store)
        with TicketStore(database) as other, pytest.raises(KeyTaken):
            taken(other)
        asked = threads.submit(asked_with_the_key, database, how, "Pay 8.")
        with pytest.raises(TimeoutError):
            asked.result(0.1)
        begun.start("Pay 7.", 1.0)
        with pytest.raises(KeyTaken, match="another task") as caught:
            asked.result(60)
        assert caught.value.run.id == "a" * 16


@pytest.mark.parametrize("how", [*WAYS, "submit"])
def test_a_key_whose_process_ended_before_anything_was_written_is_free(database, how):
    with TicketStore(database) as store, ThreadPoolExecutor(1) as threads:
        begun = taken(store)
        asked = threads.submit(asked_with_the_key, database, how, "Pay 7.")
        with pytest.raises(TimeoutError):
            asked.result(0.1)
        begun.release()
        del begun
        assert asked.result(60) != "a" * 16
        with pytest.raises(StoreError):
            store.run("a" * 16)


def test_a_key_of_which_nothing_gets_written_says_to_ask_again(database, monkeypatch):
    monkeypatch.setattr(keyed, "_WRITTEN_WITHIN", 0.0)
    with TicketStore(database) as store:
        begun = taken(store)
        for how in (*WAYS, "submit"):
            with pytest.raises(KeyTaken, match="call this again") as caught:
                asked_with_the_key(database, how, "Pay 7.")
            assert caught.value.run.id == "a" * 16
        begun.release()


@pytest.mark.parametrize("how", ["start", "run", "run_sync"])
def test_whoever_asks_while_a_failed_run_is_being_left_has_it_go_on(store, how, monkeypatch):
    failures = [OSError("away")]

    def model(messages):
        if failures:
            raise failures.pop()
        return finish("done")

    agent = Agent(model, store=store, name="clerk")
    leave, asked = SessionEnd.leave, []

    def leave_later(end, error, clear):
        if not asked:
            if how == "start":
                asked.append(agent.start("Go.", key="k"))
            else:
                run_sync = agent.run_sync if how == "run_sync" else ask
                asked.append(others.submit(run_sync, "Go.", key="k"))
                time.sleep(0.2)
        leave(end, error, clear)

    async def keyed_run(task, key):
        return await agent.run(task, key=key)

    def ask(task, key):
        return asyncio.run(keyed_run(task, key))

    async def request():
        with pytest.raises(ModelError):
            await agent.run("Go.", key="k")
        (later,) = asked
        return await (later if how == "start" else asyncio.wrap_future(later))

    monkeypatch.setattr(SessionEnd, "leave", leave_later)
    with ThreadPoolExecutor() as others:
        result = asyncio.run(request())
    assert (result.value, len(store.runs())) == ("done", 1)
    assert result.run.stop_reason == "finished"
