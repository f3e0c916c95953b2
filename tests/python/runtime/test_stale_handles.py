"""An object of a run that was read while nobody worked on it is used later: what it is told counts,
whoever has resumed the run, or told it something, since then."""

import asyncio
import random
import threading
from contextlib import suppress

import pytest

from callslip import Agent, RunCancelled, TicketStore, tool
from callslip.errors import UsageError
from random_cases import seeds
from scripted import act, finish, turn_of

ACTS = {
    "cancel": lambda run: run.cancel(),
    "send": lambda run: run.send("and?"),
    "approve": lambda run: run.approve("T1"),
    "deny": lambda run: run.deny("T1"),
}
DONE = {
    "cancel": "run_finished",
    "send": "user_said",
    "approve": "approved",
    "deny": "ticket_completed",
}


def agent_of(store):
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    def model(messages):
        return [act("pay"), *[finish("done")] * 200][turn_of(messages)]

    return Agent(model, tools=[pay], store=store, name="clerk")


def left(agent):
    async def main():
        run = agent.start("Pay.")
        while not run.awaiting_approval:
            await asyncio.sleep(0.001)
        return run.id

    return asyncio.run(main())


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite" if request.param == "file" else None) as store:
        yield store


@pytest.mark.parametrize("what", ACTS)
def test_the_run_was_resumed_in_this_process(store, what):
    agent = agent_of(store)
    run_id = left(agent)
    handle = store.run(run_id)

    async def main():
        run = agent.start(run=run_id)
        await asyncio.to_thread(ACTS[what], handle)
        assert DONE[what] in [event.kind for event in store.run(run_id).log]
        run.cancel()
        with suppress(RunCancelled):
            await run

    asyncio.run(main())


@pytest.mark.parametrize("second", ACTS)
@pytest.mark.parametrize("first", ACTS)
def test_somebody_else_has_told_the_run_something(store, first, second):
    run_id = left(agent_of(store))
    handles = [store.run(run_id), store.run(run_id)]
    ACTS[first](handles[0])
    is_decided = first in {"approve", "deny", "cancel"} and second in {"approve", "deny"}
    if is_decided:
        with pytest.raises(UsageError):
            ACTS[second](handles[1])
    else:
        ACTS[second](handles[1])
        assert DONE[second] in [event.kind for event in store.run(run_id).log]
    assert (store.run(run_id).stop_reason == "cancelled") == (
        second == "cancel" or (first == "cancel" and second != "send")
    )


def test_any_number_of_messages_to_a_run_that_is_over_are_all_said(store):
    agent = agent_of(store)
    run_id = left(agent)
    store.run(run_id).cancel()
    threads = [
        threading.Thread(target=lambda n=n: store.run(run_id).send(f"message {n}"))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    said = [event.text for event in store.run(run_id).log if event.kind == "user_said"]
    assert sorted(said) == sorted(f"message {n}" for n in range(20))
    assert agent.resume_sync(run_id).value == "done"


@pytest.mark.random_cases
@pytest.mark.parametrize("what", ["cancel", "send"])
def test_at_the_very_moment_at_which_the_run_is_resumed(what):
    store = TicketStore()
    agent = agent_of(store)
    for seed in seeds(15):
        chance, failed = random.Random(seed), []
        run_id, together = left(agent), threading.Barrier(2)

        def resume(run_id=run_id, together=together):
            async def main():
                agent.start(run=run_id)
                # It is left when the loop ends.

            together.wait()
            asyncio.run(main())

        resuming = threading.Thread(target=resume)
        resuming.start()
        handle = store.run(run_id)
        together.wait()
        for _ in range(chance.randrange(300)):
            pass
        try:
            ACTS[what](handle)
        except Exception as error:
            failed.append(error)
        resuming.join(60)
        assert (seed, failed) == (seed, [])
        assert DONE[what] in [event.kind for event in store.run(run_id).log], seed
