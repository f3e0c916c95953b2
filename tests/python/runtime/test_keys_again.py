"""A request with a key that is sent again goes on with its run, whatever became of the first one:
its model failed, its task was cancelled, its loop ended. Only `Run.cancel` ends the run."""

import asyncio
import contextlib
import itertools
import random
import threading

import pytest

from callslip import Agent, Limits, TicketStore, tool
from callslip.errors import LimitExceeded, ModelError, ProtocolError, RunCancelled
from random_cases import seeds
from scripted import act, finish, turn_of

WAYS = ["run", "run_sync", "start"]
numbers = itertools.count()


@pytest.fixture(scope="module", params=["memory", "file", "database"])
def store(request, tmp_path_factory):
    """One store for all tests, each with an agent of its own."""
    place = None
    if request.param == "file":
        place = tmp_path_factory.mktemp("store") / "runs.sqlite"
    elif request.param == "database":
        place = request.getfixturevalue("postgres").new_database()
    with TicketStore(place) as store:
        yield store


def ask(agent, how, **options):
    options = {"key": "k", "owner": "ann", **options}
    if how == "run_sync":
        return agent.run_sync("Pay 7.", **options).value
    if how == "run":
        return asyncio.run(agent.run("Pay 7.", **options)).value

    async def started():
        return (await agent.start("Pay 7.", **options)).value

    return asyncio.run(started())


class Desk:
    """An agent that pays once and then answers, as its model behaves at the time.

    Attributes:
        behave: Called in each request to the model after the payment.
    """

    def __init__(self, store, **options):
        self.paid, self.asked, self.behave = [], 0, None

        @tool(effect="once")
        def pay() -> str:
            """Pay."""
            self.paid.append(1)
            return "paid"

        async def model(messages):
            self.asked += 1
            turn = turn_of(messages)
            if turn and self.behave is not None:
                found = await self.behave()
                if found is not None:
                    return found
            return [act("pay"), finish("done")][turn]

        name = f"clerk-{next(numbers)}"
        self.agent = Agent(model, tools=[pay], store=store, name=name, **options)

    def rows(self):
        return self.agent.store.runs(agent=self.agent.name)


async def fail():
    raise ConnectionError("the service is down")


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_a_run_whose_model_failed_goes_on_with_its_key(store, first, second):
    desk = Desk(store)
    desk.behave = fail
    for how in (first, second):
        with pytest.raises(ModelError):
            ask(desk.agent, how)
    assert desk.asked == 3
    desk.behave = None
    for _ in range(2):
        assert ask(desk.agent, second) == "done"
    assert (desk.asked, desk.paid) == (4, [1])
    assert [(row.key, row.stop_reason) for row in desk.rows()] == [("k", "finished")]


@pytest.mark.parametrize("how", WAYS)
def test_any_other_end_of_a_run_stays(how):
    async def babble():
        return "no move"

    for options, behave, error in [
        ({}, babble, ProtocolError),
        ({"limits": Limits(turns=1), "on_limit": "raise"}, None, LimitExceeded),
    ]:
        desk = Desk(TicketStore(), **options)
        desk.behave = behave
        with pytest.raises(error):
            ask(desk.agent, how)
        asked, desk.behave = desk.asked, None
        with pytest.raises(error):
            ask(desk.agent, how)
        assert desk.asked == asked


class Held:
    """A model that answers once it may."""

    def __init__(self, desk):
        self.entered, self.go = threading.Event(), threading.Event()
        desk.behave = self.wait

    async def wait(self):
        self.entered.set()
        while not self.go.is_set():
            await asyncio.sleep(0.001)


async def cut_off(desk, held, how):
    request = asyncio.create_task(desk.agent.run("Pay 7.", key="k", owner="ann"))
    await asyncio.to_thread(held.entered.wait, 60)
    if how == "cancelled":
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
    elif how == "timed out":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(request, 0.001)
    # Else the loop ends.


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", ["cancelled", "timed out", "loop ended"])
def test_a_request_that_was_cut_off_leaves_the_run_to_the_next(store, first, second):
    desk = Desk(store)
    held = Held(desk)
    asyncio.run(cut_off(desk, held, first))
    assert [row.stop_reason for row in desk.rows()] == [None]
    held.go.set()
    assert ask(desk.agent, second) == "done"
    assert desk.paid == [1]


def test_a_run_goes_on_without_the_request_that_began_it(store):
    desk = Desk(store)
    held = Held(desk)

    async def main():
        await cut_off(desk, held, "cancelled")
        (row,) = desk.rows()
        held.go.set()
        assert (await store.run(row.run_id)).value == "done"

    asyncio.run(main())
    assert desk.paid == [1]


def test_ctrl_c_leaves_the_run_of_a_key_unfinished(store):
    desk = Desk(store)

    async def interrupt():
        raise KeyboardInterrupt

    desk.behave = interrupt
    with pytest.raises(KeyboardInterrupt) as caught:
        ask(desk.agent, "run_sync")
    assert caught.value.run.status == "running"
    desk.behave = None
    assert ask(desk.agent, "run_sync") == "done"
    assert desk.paid == [1]


@pytest.mark.parametrize("second", ["run", "run_sync"])
def test_who_waits_for_a_run_goes_on_with_it_where_its_loop_ends(second):
    desk = Desk(TicketStore())
    held, found = Held(desk), []
    waiting = threading.Thread(target=lambda: found.append(ask(desk.agent, second)))

    async def first():
        run = desk.agent.start("Pay 7.", key="k", owner="ann")
        await asyncio.to_thread(held.entered.wait, 60)
        waiting.start()
        readers = run._feed.readers
        while not readers._count:
            await asyncio.sleep(0.001)

    asyncio.run(first())
    held.go.set()
    waiting.join(60)
    assert (found, desk.paid) == (["done"], [1])


@pytest.mark.parametrize("second", WAYS)
def test_a_run_that_was_cancelled_stays_so_though_its_request_was_cut_off(store, second):
    desk = Desk(store)
    held = Held(desk)

    async def main():
        await cut_off(desk, held, "cancelled")
        (row,) = desk.rows()
        run = store.run(row.run_id)
        run.cancel()
        with contextlib.suppress(RunCancelled):
            await run

    asyncio.run(main())
    held.go.set()
    with pytest.raises(RunCancelled):
        ask(desk.agent, second)
    assert [row.stop_reason for row in desk.rows()] == ["cancelled"]


def test_the_next_request_decides_on_calls_too(store):
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = Agent(
        lambda messages: [act("pay"), finish("done")][turn_of(messages)],
        tools=[pay],
        store=store,
        name=f"clerk-{next(numbers)}",
    )

    async def begin():
        run = agent.start("Pay 7.", key="k", owner="ann")
        while not run.awaiting_approval:
            await asyncio.sleep(0.001)

    asyncio.run(begin())
    assert ask(agent, "run", approve=lambda _: True) == "done"


@pytest.mark.random_cases
def test_any_requests_that_are_cut_off_at_any_moment_pay_at_most_once():
    for seed in seeds(12):
        chance, store = random.Random(seed), TicketStore()
        desk = Desk(store)

        async def hesitate(chance=chance):
            await asyncio.sleep(chance.random() * 0.004)
            if chance.random() < 0.3:
                raise ConnectionError("the service is down")

        desk.behave = hesitate

        async def request(chance=chance, desk=desk):
            asked = desk.agent.run("Pay 7.", key="k", owner="ann")
            with contextlib.suppress(TimeoutError, ModelError):
                await asyncio.wait_for(asked, chance.random() * 0.006)

        async def requests(count, request=request):
            await asyncio.gather(*(request() for _ in range(count)))

        def loop(chance=chance, requests=requests):
            for _ in range(3):
                asyncio.run(requests(chance.randrange(1, 4)))

        threads = [threading.Thread(target=loop) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        desk.behave = None
        assert (seed, ask(desk.agent, "run")) == (seed, "done")
        # A call that a loop has left in the middle is in doubt, and is not made again.
        assert (seed, len(desk.paid) <= 1, len(store.runs())) == (seed, True, 1)
