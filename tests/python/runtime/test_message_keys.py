"""Messages with a key: the same one is said once, and another one under its key is refused."""

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import Agent, Image, TicketStore
from callslip.errors import KeyTaken
from callslip.fleet import Fleet
from fleets.here import until, working
from pictures import png
from random_cases import seeds
from scripted import finish


@pytest.fixture
def store(any_store):
    return any_store


def clerk(store, model=lambda _: finish("done")):
    return Agent(model, store=store, name="clerk")


def said(run):
    return [event.text for event in run.log if event.kind == "user_said"]


def by_send(agent, run, message, key):
    agent.store.run(run.id).send(message, key=key)


def by_own(agent, run, message, key):
    run.send(message, key=key)


def by_start(agent, run, message, key):
    async def main():
        await agent.start(run=run.id, say=message, key=key)

    asyncio.run(main())


def by_send_sync(agent, run, message, key):
    run.send_sync(message, key=key)


WAYS = {"send": by_send, "own": by_own, "start": by_start, "send_sync": by_send_sync}


PAIRS = [("start", "send"), ("start", "start"), *(("send_sync", one) for one in WAYS)]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_another_message_is_refused_with_the_run(store, first, second):
    agent = clerk(store)
    run = agent.run_sync("Pay 7.").run
    WAYS[first](agent, run, "And 8.", "m")
    for again in (False, True):
        if again:
            store.compact(run.id)
            run = store.run(run.id) if second in {"send", "start"} else run
        with pytest.raises(KeyTaken, match="use another key for another message") as caught:
            WAYS[second](agent, run, "And 9.", "m")
        assert caught.value.run.id == run.id
    WAYS["start"](agent, run, "And 8.", "m")
    (row,) = store.runs()
    assert (row.turns, row.stop_reason) == (2, "finished")


def test_images_are_a_part_of_the_message(store):
    agent = clerk(store)
    run = agent.run_sync(["What is it?", Image(png(2, 2))]).run
    by_start(agent, run, ["And this?", Image(png(4, 4))], "m")
    by_start(agent, run, ["Or this?", Image(png(8, 4))], "n")
    by_start(agent, run, ["And this?", Image(png(4, 4))], "m")
    for message in (["And this?", Image(png(8, 4))], ["And this?"], ["And?", Image(png(4, 4))]):
        with pytest.raises(KeyTaken):
            by_start(agent, run, message, "m")
    assert len(said(store.run(run.id))) == 2


def test_a_run_in_progress_refuses_it_too(store):
    entered, go = threading.Event(), threading.Event()

    def model(messages):
        entered.set()
        assert go.wait(60)
        return finish("done")

    agent = clerk(store, model)

    async def main():
        run = agent.start("Pay 7.")
        await asyncio.to_thread(entered.wait, 60)
        for one in (run, store.run(run.id)):
            one.send("And 8.", key="m")
            with pytest.raises(KeyTaken) as caught:
                one.send("And 9.", key="m")
            assert caught.value.run.id == run.id
        go.set()
        await run
        return run

    assert said(asyncio.run(main())) == ["And 8."]


def test_what_waits_for_a_worker_counts(database):
    async def main():
        with TicketStore(database) as web:
            run_id = await Fleet(web).submit("clerk", "Pay 7.", owner="ann", key="k")
            run = web.run(run_id)
            for _ in range(2):
                run.send("And 8.", key="m")
                with pytest.raises(KeyTaken) as caught:
                    web.run(run_id).send("And 9.", key="m")
                assert caught.value.run.id == run_id
            assert web.query("SELECT count(*) AS n FROM callslip.inbox") == [{"n": 1}]
            async with working(database, clerk(None)):
                await until(lambda: web.run(run_id).finished)
                await until(lambda: said(web.run(run_id)) == ["And 8."])
                with pytest.raises(KeyTaken):
                    web.run(run_id).send("And 9.", key="m")

    asyncio.run(main())


@pytest.mark.random_cases
def test_of_any_number_at_once_one_message_is_said(store):
    for seed in seeds(3):
        chance = random.Random(seed)
        agent = clerk(store)
        run = agent.run_sync(f"Pay {seed}.").run
        asked = [f"And {chance.randrange(3)}." for _ in range(8)]

        def send(message, run=run):
            try:
                store.run(run.id).send(message, key="m")
            except KeyTaken:
                return None
            return message

        with ThreadPoolExecutor(len(asked)) as threads:
            taken = {one for one in threads.map(send, asked) if one is not None}
        assert (seed, len(taken)) == (seed, 1)
        agent.resume_sync(run.id)
        assert (seed, said(store.run(run.id))) == (seed, [*taken])
