"""Several objects of one run: messages and decisions reach its driver by each of them."""

import asyncio
import json
import threading

import pytest

from callslip import Agent, RunCancelled, ScriptedModel, TicketStore
from callslip._runtime import opening
from payments import pay
from scripted import act, finish

pytestmark = [pytest.mark.usefixtures("no_payments"), pytest.mark.timeout(60)]

LONG = 30


@pytest.fixture
def parked(tmp_path):
    """A store with a run that was left while its call awaits approval, and the id of the run."""

    async def park(store):
        model = ScriptedModel([act("pay", amount=5)])
        async with Agent(model, tools=[pay], store=store).stream("go") as run:
            async for event in run:
                if getattr(event, "needs_approval", False):
                    return run.run.export()
        return ""

    with TicketStore(tmp_path / "first.sqlite") as first:
        log = asyncio.run(park(first))
    with TicketStore(tmp_path / "runs.sqlite") as store:
        yield store, store.import_run(log)


def agent_of(store, *replies):
    return Agent(ScriptedModel([*replies, finish()]), tools=[pay], store=store)


DECISIONS = {
    "approve": (lambda run: run.approve("T1"), "ok"),
    "approve with arguments": (lambda run: run.approve("T1", arguments={"amount": 6}), "ok"),
    "deny": (lambda run: run.deny("T1", "too much"), "denied"),
}
decisions = pytest.mark.parametrize(("decide", "outcome"), DECISIONS.values(), ids=DECISIONS)


@decisions
def test_a_decision_by_an_object_that_was_read_before(parked, decide, outcome):
    store, run_id = parked
    before = store.run(run_id)

    async def main():
        task = asyncio.create_task(agent_of(store).resume(run_id))
        while store.run(run_id)._driver is None:
            await asyncio.sleep(0.01)
        decide(before)
        return await asyncio.wait_for(task, LONG)

    assert asyncio.run(main()).tickets[0].outcome == outcome


async def streamed(agent, run_id):
    async with agent.stream(run=run_id) as stream:
        async for _ in stream:
            pass
    return stream.result


OPENED = pytest.mark.parametrize("opened", [Agent.resume, streamed], ids=["resume", "stream"])


@OPENED
@decisions
def test_a_decision_while_the_run_is_being_resumed(parked, opened, decide, outcome):
    store, run_id = parked

    async def main():
        task = asyncio.create_task(opened(agent_of(store), run_id))
        await hold_the_loop_while_it_opens(store, run_id)
        decide(store.run(run_id))
        return await asyncio.wait_for(task, LONG)

    assert asyncio.run(main()).tickets[0].outcome == outcome


async def hold_the_loop_while_it_opens(store, run_id):
    """Return once the run is open, with its driver still to begin: the loop has had no time."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    pause = threading.Event()
    while store.run(run_id)._driver is None:
        pause.wait(0.01)


@OPENED
@decisions
def test_a_decision_in_another_thread_while_the_run_is_being_opened(
    parked, opened, decide, outcome, monkeypatch
):
    store, run_id = parked
    is_claimed, goes_on = threading.Event(), threading.Event()
    begin = opening.EarlyDriver

    def begin_late(session):
        is_claimed.set()
        assert goes_on.wait(LONG)
        return begin(session)

    monkeypatch.setattr(opening, "EarlyDriver", begin_late)

    async def main():
        task = asyncio.create_task(opened(agent_of(store), run_id))
        await asyncio.to_thread(is_claimed.wait, LONG)
        deciding = asyncio.create_task(asyncio.to_thread(decide, store.run(run_id)))
        await asyncio.sleep(0.1)
        monkeypatch.undo()
        goes_on.set()
        await asyncio.wait_for(deciding, LONG)
        return await asyncio.wait_for(task, LONG)

    assert asyncio.run(main()).tickets[0].outcome == outcome


@OPENED
def test_a_message_by_an_object_that_was_read_before(parked, opened):
    store, run_id = parked
    before = store.run(run_id)

    async def main():
        task = asyncio.create_task(opened(agent_of(store), run_id))
        await hold_the_loop_while_it_opens(store, run_id)
        said = before.send("Never mind.")
        before.approve("T1")
        assert (await asyncio.wait_for(said, LONG)).run.id == run_id
        await asyncio.wait_for(task, LONG)

    asyncio.run(main())
    log = store.run(run_id).log
    assert [event.text for event in log if event.kind == "user_said"] == ["Never mind."]


@OPENED
def test_a_cancel_by_an_object_that_was_read_before(parked, opened):
    store, run_id = parked
    before = store.run(run_id)

    async def main():
        task = asyncio.create_task(opened(agent_of(store), run_id))
        await hold_the_loop_while_it_opens(store, run_id)
        before.cancel()
        with pytest.raises(RunCancelled):
            await asyncio.wait_for(task, LONG)

    asyncio.run(main())
    assert store.run(run_id).stop_reason == "cancelled"


@OPENED
def test_a_resume_that_is_cancelled_while_it_opens_leaves_the_run(parked, opened):
    store, run_id = parked

    async def main():
        task = asyncio.create_task(opened(agent_of(store), run_id))
        await hold_the_loop_while_it_opens(store, run_id)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    run = store.run(run_id)
    assert (run._driver, run.finished) == (None, False)
    run.approve("T1")
    assert agent_of(store).resume_sync(run_id).tickets[0].outcome == "ok"


@pytest.fixture
def slow_commits(parked, monkeypatch):
    """Two events: a decision is being written down, and may end."""
    store, _ = parked
    commits = type(store._commits)
    begun, may_end, written = threading.Event(), threading.Event(), commits.written

    def slowly(self, core):
        begun.set()
        assert may_end.wait(LONG)
        written(self, core)

    monkeypatch.setattr(commits, "written", slowly)
    return begun, may_end


@pytest.mark.parametrize("how", ["resume_all", "resume_all_sync"])
@decisions
def test_a_run_is_not_left_out_because_a_decision_is_being_written(
    parked, slow_commits, how, decide, outcome
):
    store, run_id = parked
    begun, may_end = slow_commits
    deciding = threading.Thread(target=decide, args=[store.run(run_id)])
    deciding.start()
    assert begun.wait(LONG)
    threading.Timer(0.3, may_end.set).start()
    agent = agent_of(store)
    results = asyncio.run(agent.resume_all()) if how == "resume_all" else agent.resume_all_sync()
    deciding.join(LONG)
    assert results[run_id].tickets[0].outcome == outcome


def test_a_child_run_is_ended_though_a_decision_is_being_written(parked, slow_commits):
    store, run_id = parked
    begun, may_end = slow_commits
    log = store.run(run_id).export().splitlines()
    first = json.loads(log[0])
    first["event"]["run_started"] |= {"run_id": "child", "parent": {"run_id": "p", "ticket": 1}}
    store.import_run([json.dumps(first), *log[1:]])
    deciding = threading.Thread(target=store.run("child").approve, args=["T1"])
    deciding.start()
    assert begun.wait(LONG)
    threading.Timer(0.3, may_end.set).start()
    store._end_children("p")
    deciding.join(LONG)
    assert store.run("child").finished


def test_a_run_is_deleted_once_a_decision_is_written(parked, slow_commits):
    store, run_id = parked
    begun, may_end = slow_commits
    deciding = threading.Thread(target=store.run(run_id).approve, args=["T1"])
    deciding.start()
    assert begun.wait(LONG)
    threading.Timer(0.3, may_end.set).start()
    assert store.delete(run_id) == 1
    deciding.join(LONG)
    assert store.runs() == []
