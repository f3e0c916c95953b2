"""Runs that were submitted: listed and erased before they begin, and continued by their key."""

import asyncio
import contextlib
import threading

import pytest

from callslip import Agent, TicketStore, tool
from callslip._runtime.sessions import resumed_session
from callslip.cli import main
from callslip.errors import DrivenElsewhere, KeyTaken, ModelError, UsageError
from callslip.fleet import Fleet
from fleets.here import until, working
from scripted import act, finish


async def test_runs_are_listed_from_their_submission_on(store):
    fleet = Fleet(store)
    for number in range(3):
        await fleet.submit("clerk", f"Task {number}.", owner="ann", key=str(number))
    other = await fleet.submit("desk", "A task.", owner="bob", at=4_000_000_000)
    listed = store.runs(owner="ann")
    assert [(run.task, run.key, run.status) for run in listed] == [
        (f"Task {number}.", str(number), "running") for number in (2, 1, 0)
    ]
    assert {(run.protocol, run.turns, run.finished_at) for run in listed} == {(None, 0, None)}
    assert [run.run_id for run in store.runs(agent="desk", status="running")] == [other]
    assert store.runs(status="finished") == []
    rows = store.query("SELECT run_id, protocol FROM callslip.runs WHERE owner = $1", ["ann"])
    assert [row["protocol"] for row in rows] == [None] * 3
    assert store.erase(owner="ann") == 3
    assert [run.run_id for run in store.runs()] == [other]


async def test_lists_for_people_show_them_and_other_commands_pass_over_them(
    store, database, capsys
):
    begun = (await Agent(lambda _: finish(), store=store).run("Go.", owner="ann")).run
    queued = await Fleet(store).submit("clerk", "Wait.", owner="ann")
    assert queued in store.to_html()
    assert "queued" in str(store.runs()._repr_mimebundle_())
    for words in (["runs"], ["runs", "--json"], ["show"], ["export"]):
        assert main([words[0], database, *words[1:]]) == 0
    told = capsys.readouterr().out
    for command in ("show", "export"):
        assert main([command, database, queued]) == 2
        assert "waits for a worker" in capsys.readouterr().err
    assert "queued" in told
    assert f'"run_id":"{begun.id}"' in told
    assert f'"run_id":"{queued}"' not in told


async def test_a_key_alone_is_no_run_yet(store):
    def check(task, context):
        seen.append(store.runs())

    seen = []
    agent = Agent(lambda _: finish(), store=store, name="clerk", check_task=check)
    await agent.run("Go.", key="k", owner="ann")
    assert seen == [[]]
    assert len(store.runs(owner="ann")) == 1


class DownError(Exception):
    """The service of the model is away."""


def failing(store, failures, **options):
    def model(messages):
        if failures:
            raise failures.pop()
        return finish("done")

    return Agent(model, store=store, name="clerk", **options)


@pytest.mark.parametrize("how", ["submit", "run", "start", "run_sync"])
async def test_a_run_whose_model_failed_goes_on_when_it_is_asked_for_again(here, database, how):
    failures = [DownError("away")]
    web = Fleet(here)
    async with working(database, failing(None, failures)):
        run_id = await web.submit("clerk", "Pay 7.", owner="ann", key="order-7")
        with pytest.raises(ModelError):
            await web.result(run_id, timeout=60)
        with pytest.raises(KeyTaken):
            await web.submit("clerk", "Pay 8.", owner="ann", key="order-7")
        assert here.run(run_id).stop_reason == "model_error"
        agent, options = failing(here, failures), {"owner": "ann", "key": "order-7"}
        if how == "submit":
            for _ in range(2):
                assert await web.submit("clerk", "Pay 7.", **options) == run_id
            assert (await web.result(run_id, timeout=60)).value == "done"
        elif how == "run":
            assert (await agent.run("Pay 7.", **options)).run.id == run_id
        elif how == "start":
            assert (await agent.start("Pay 7.", **options)).run.id == run_id
        else:
            result = await asyncio.to_thread(agent.run_sync, "Pay 7.", **options)
            assert result.run.id == run_id
        run = here.run(run_id)
        assert (run.stop_reason, len(here.runs())) == ("finished", 1)
        assert [event.kind for event in run.log].count("noted") == 1
        # It is over for good: nobody drives it any more.
        turns = run.seq
        assert await web.submit("clerk", "Pay 7.", **options) == run_id
        assert (await web.result(run_id, timeout=60)).run.seq == turns


@pytest.mark.parametrize("how", ["run", "start", "run_sync", "start_run", "stream", "resume"])
async def test_a_run_that_failed_goes_on_when_its_driver_lets_go_of_it(here, database, how):
    failures = [DownError("away")]
    agent, options = failing(here, failures), {"owner": "ann", "key": "k"}
    with pytest.raises(ModelError) as failed:
        await agent.run("Go.", **options)
    run_id = failed.value.run.id
    with TicketStore(database) as elsewhere:
        held = resumed_session(failing(elsewhere, failures), run_id, None)
        freed = threading.Timer(0.2, held.core.release)
        freed.start()
        if how == "run":
            result = await agent.run("Go.", **options)
        elif how == "start":
            result = await agent.start("Go.", **options)
        elif how == "run_sync":
            result = await asyncio.to_thread(agent.run_sync, "Go.", **options)
        elif how == "start_run":
            result = await agent.start(run=run_id)
        elif how == "stream":
            async with agent.stream(run=run_id) as stream:
                result = await stream.run
        else:
            result = await agent.resume(run_id)
        freed.join()
    assert (result.run.id, result.value) == (run_id, "done")
    assert here.run(run_id).stop_reason == "finished"


async def test_a_run_that_failed_and_is_not_let_go_of_is_an_error(here, database):
    failures = [DownError("away")]
    agent = failing(here, failures)
    with pytest.raises(ModelError) as failed:
        await agent.run("Go.", key="k")
    with TicketStore(database) as elsewhere:
        held = resumed_session(failing(elsewhere, failures), failed.value.run.id, None)
        with pytest.raises(DrivenElsewhere):
            await agent.run("Go.", key="k")
        held.core.release()


async def test_an_engine_is_called_for_a_run_that_goes_on(here):
    failures, called = [DownError("away")], []
    fleet = Fleet(here, [failing(here, failures)], dispatch=called.append)
    run_id = await fleet.submit("clerk", "Pay 7.", key="k")
    with contextlib.suppress(ModelError):
        await fleet.drive(run_id)
    called.clear()
    assert await fleet.submit("clerk", "Pay 7.", key="k") == run_id
    await until(lambda: run_id in called)
    assert await fleet.drive(run_id) == "over"
    assert (await fleet.result(run_id)).value == "done"


async def test_a_cancelled_run_stays_cancelled_when_it_is_submitted_again(here, database):
    fleet = Fleet(here)
    run_id = await fleet.submit("clerk", "Pay 7.", key="k")
    here.run(run_id).cancel()
    async with working(database, failing(None, [])):
        await until(lambda: here.run(run_id).finished)
    assert await fleet.submit("clerk", "Pay 7.", key="k") == run_id
    assert here.run(run_id).stop_reason == "cancelled"
    assert here.query("SELECT msg FROM callslip.run")[0]["msg"] is None


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


@tool(external=True)
def choose(what: str) -> str:
    """Choose."""


@pytest.mark.parametrize("which", ["approve", "deny", "answer"])
async def test_nothing_is_decided_after_a_cancel_that_was_acknowledged(any_store, which):
    asks = act("choose", what="one") if which == "answer" else act("pay", amount=1)
    agent = Agent(lambda messages: asks, store=any_store, name="clerk", tools=[pay, choose])
    begun = agent.start("Go.")
    await until(lambda: any(one.awaiting for one in begun.tickets))
    # The loop of its driver ends: nobody has the run any more.
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    run, read = any_store.run(begun.id), any_store.run(begun.id)
    assert not run.finished
    run.cancel()
    assert any_store.tickets(awaiting="approval") == any_store.tickets(awaiting="result") == []
    waits = "a result" if which == "answer" else "approval"
    for one in (run, read, any_store.run(begun.id)):
        decide = {"approve": one.approve, "deny": one.deny, "answer": lambda t: run.answer(t, "x")}
        with pytest.raises(UsageError, match=f"that awaits {waits}: got T1, and no ticket"):
            decide[which]("T1")
