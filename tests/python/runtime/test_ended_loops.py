"""The event loop of whoever began a run ends: others who wait for the run go on with it."""

import asyncio
import threading

import pytest

from callslip import Agent, TicketStore, tool
from scripted import act, finish, turn_of

LONG = 60
ENDS = ["asyncio.run", "closed", "stopped"]
STAGES = ["check", "early", "model", "tool"]
WAYS = ["start", "run", "run_sync"]


class Stage:
    """An agent whose run is held up once, at one place."""

    def __init__(self, store, stage):
        self.stage, self.reached, self._has_held = stage, threading.Event(), False
        self.calls = []

        @tool(effect="pure")
        async def pay() -> str:
            """Pay."""
            self.calls.append(1)
            await self._hold("tool")
            return "paid"

        async def model(messages):
            await self._hold("model")
            return act("pay") if turn_of(messages) == 0 else finish("done")

        async def check(task, context):
            await self._hold("check")

        options = {"check_task": check} if stage == "check" else {}
        self.agent = Agent(model, store=store, tools=[pay], name="clerk", **options)

    async def _hold(self, stage):
        if stage == self.stage and not self._has_held:
            self._has_held = True
            self.reached.set()
            await asyncio.Event().wait()

    def begin(self, end, may_end):
        """Begin the run in this thread, in a loop that ends like this once somebody waits."""

        async def main():
            self.agent.start("Pay.", key="k")
            if self.stage == "early":
                self.reached.set()
                # Its driver has not run yet: nothing else runs in this loop.
                assert may_end.wait(LONG)
            while not (self.reached.is_set() and may_end.is_set()):
                await asyncio.sleep(0.01)

        if end == "asyncio.run":
            asyncio.run(main())
            return
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        if end == "closed":
            loop.close()
        else:
            kept.append(loop)

    def wait(self, how, waits):
        """Wait for the result in this thread; `waits` is set when it is asked for."""
        if how == "run_sync":
            waits.set()
            return self.agent.run_sync("Pay.", key="k").run

        async def main():
            if how == "run":
                waits.set()
                return (await self.agent.run("Pay.", key="k")).run
            begun = self.agent.start("Pay.", key="k")
            waits.set()
            result = await begun
            # It is the same run, whoever has driven it to its end.
            assert (begun.finished, begun.stop_reason) == (True, "finished")
            return result.run

        return asyncio.run(main())


kept = []


def in_thread(function, *args):
    """Call a function in a thread. Returns the thread, and a list for what it returns."""
    returned = []
    thread = threading.Thread(target=lambda: returned.append(function(*args)), daemon=True)
    thread.start()
    return thread, returned


def play(store, end, stage, ways):
    held, waits = Stage(store, stage), [threading.Event() for _ in ways]
    may_end = threading.Event()
    first, _ = in_thread(held.begin, end, may_end)
    assert held.reached.wait(LONG)
    others = [in_thread(held.wait, how, one) for how, one in zip(ways, waits, strict=True)]
    for one in waits:
        assert one.wait(LONG)
    # Some may wait already, and some ask when the loop has ended.
    may_end.set()
    first.join(LONG)
    for thread, _ in others:
        thread.join(LONG)
    return held, [run.id for _, returned in others for run in returned]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("end", ENDS)
def test_whoever_waits_for_the_run_of_a_loop_that_ends_goes_on_with_it(end, stage, how):
    store = TicketStore()
    held, ids = play(store, end, stage, [how])
    assert len(ids) == 1
    (row,) = store.runs()
    assert (row.run_id, row.stop_reason) == (ids[0], "finished")
    assert len(held.calls) == 1 + (stage == "tool")


@pytest.mark.parametrize("place", ["file", "database"])
@pytest.mark.parametrize("end", ENDS)
def test_of_many_who_wait_one_goes_on(request, tmp_path, place, end):
    place = tmp_path / "runs.sqlite" if place == "file" else request.getfixturevalue("database")
    with TicketStore(place) as store:
        held, ids = play(store, end, "model", WAYS * 2)
        assert len(ids) == 6
        assert len(set(ids)) == 1
        assert len(held.calls) == 1
        (row,) = store.runs()
        assert row.stop_reason == "finished"


def test_a_run_without_a_key_is_left_too():
    held = Stage(TicketStore(), "model")

    def begin():
        loop = asyncio.new_event_loop()

        async def main():
            run = held.agent.start("Pay.")
            while not held.reached.is_set():
                await asyncio.sleep(0.01)
            return run

        run = loop.run_until_complete(main())
        loop.close()
        return run

    thread, returned = in_thread(begin)
    thread.join(LONG)
    (run,) = returned

    async def wait():
        return await run

    with pytest.raises(Exception, match="call resume") as caught:
        asyncio.run(wait())
    assert type(caught.value).__name__ == "RunCancelled"
    assert held.agent.resume_sync(run.id).value == "done"
