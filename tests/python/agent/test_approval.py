"""Calls that wait until a person approves them."""

import asyncio
import threading
import time

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Event,
    OpenAPI,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from payments import made, pay
from scripted import (
    act,
    asked,
    block,
    call,
    call_once,
    delegate,
    finish,
    give,
    results_of,
    task_of,
    turn_of,
    wait,
)

pytestmark = pytest.mark.usefixtures("no_payments")


@tool
def look(at: str) -> str:
    """Look."""
    return f"saw {at}"


def decide(choose, agent, task="go", **options):
    """Run with somebody who decides on each call as soon as it is there."""

    async def main():
        async with agent.stream(task, **options) as run:
            async for event in run:
                if isinstance(event, Event) and getattr(event, "needs_approval", False):
                    for ticket in run.awaiting_approval:
                        choose(run, ticket)
        return run.result

    return asyncio.run(asyncio.wait_for(main(), 30))


def approve(run, ticket):
    assert not made
    run.approve(ticket)


def deny(run, ticket):
    run.deny(ticket.id, "too much")


SCRIPTS = {
    "react": call_once("react", "pay", {"amount": 5}),
    "chatty": [block(("c", "pay", {"amount": 5}), ("l", "look", {"at": "it"})), "done"],
    "ticket": call_once("ticket", "pay", {"amount": 5}),
}


@pytest.mark.parametrize("protocol", SCRIPTS)
def test_an_approved_call_is_made(protocol):
    agent = Agent(ScriptedModel(SCRIPTS[protocol]), protocol=protocol, tools=[pay, look])
    result = decide(approve, agent)
    assert made == [5]
    assert result.tickets[0].result == "paid 5"
    assert not result.tickets[0].awaiting_approval
    assert [event.kind for event in result.run.log].count("approved") == 1
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("protocol", SCRIPTS)
def test_a_denied_call_is_not_made_and_the_model_is_told_why(protocol):
    agent = Agent(ScriptedModel(SCRIPTS[protocol]), protocol=protocol, tools=[pay, look])
    result = decide(deny, agent)
    assert made == []
    assert (result.tickets[0].outcome, result.value) == ("denied", "done")
    assert result.tickets[0].error == "The call of 'pay' was denied: too much"
    if protocol != "ticket":
        assert "The call of 'pay' was denied: too much" in asked(result.messages)[2]["content"]
    assert replay(result.run).export() == result.run.export()


def test_the_other_calls_of_a_block_are_made_meanwhile():
    async def main():
        agent = Agent(ScriptedModel(SCRIPTS["chatty"]), protocol="chatty", tools=[pay, look])
        async with agent.stream("go") as run:
            async for event in run:
                if isinstance(event, Event) and event.kind == "ticket_completed":
                    waiting = run.awaiting_approval
                    if waiting:
                        assert event.ticket_id == "T2"
                        run.approve(waiting[0])
        return run.result

    assert results_of(asked(asyncio.run(main()).messages)[2]) == {"c": "paid 5", "l": "saw it"}


def test_a_denied_call_is_not_asked_for_again():
    model = ScriptedModel([act("pay", amount=5), act("pay", amount=5), finish()])
    result = decide(deny, Agent(model, tools=[pay]))
    assert len(result.tickets) == 1
    assert result.run.violations == 1


@pytest.mark.parametrize("ticket", ["T1", "T7", "x", "T\u00b2", "T\u0661"])
def test_what_does_not_wait_cannot_be_approved(ticket):
    async def main():
        model = ScriptedModel([act("look", at="it"), finish()])
        async with Agent(model, tools=[look, pay]).stream("go") as run:
            async for _ in run:
                with pytest.raises(UsageError):
                    run.approve(ticket)
                with pytest.raises(UsageError):
                    run.deny(ticket)

    asyncio.run(main())


@pytest.mark.parametrize("ticket", [5, None, ["T1"]])
def test_a_ticket_is_named_by_itself_or_its_id(ticket):
    run = Agent(ScriptedModel([finish()])).run_sync("go").run
    for decide_on in (run.approve, run.deny):
        with pytest.raises(UsageError) as caught:
            decide_on(ticket)
        assert str(caught.value) == f"expected a Ticket or its id, such as 'T1': got {ticket!r}"


def test_a_reason_is_text():
    run = Agent(ScriptedModel([finish()])).run_sync("go").run
    with pytest.raises(UsageError, match="expected the reason as a string: got int"):
        run.deny("T1", 5)


@pytest.mark.parametrize("children", [False, True])
def test_calls_of_runs_below_are_approved_from_above(children):
    model = ScriptedModel([delegate("part"), wait("T1"), give("done")])

    def reply(messages):
        if task_of(messages) == "part":
            return [call("/pay", {"amount": 5}), wait("T1"), give("ok")][turn_of(messages)]
        return model(messages)

    agent = Agent(reply, protocol=TicketProtocol(grace=0), tools=[pay])
    result = decide(lambda run, ticket: run.approve(ticket), agent, children=children)
    assert (made, result.value) == ([5], "done")


def test_of_the_runs_below_a_stream_is_told_what_waits_for_approval_and_nothing_else():
    inner = Agent(
        ScriptedModel([block(("p", "pay", {"amount": 5}), ("l", "look", {"at": "it"})), "in"]),
        protocol="chatty",
        tools=[pay, look],
        name="inner",
    )

    async def main():
        outer = Agent(ScriptedModel([act("inner", task="x"), finish()]), tools=[inner.as_tool()])
        below = []
        async with outer.stream("go") as run:
            async for event in run:
                if isinstance(event, Event) and event.run_id != run.run.id:
                    below.append((event.kind, event.tool))
                for ticket in run.awaiting_approval:
                    run.approve(ticket)
        return below, run.result.value

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ([("ticket_opened", "pay")], "done")


def test_nobody_could_approve_is_said_before_the_run():
    inner = Agent(ScriptedModel([]), tools=[pay], name="inner")
    for agent in (
        Agent(ScriptedModel([]), tools=[pay]),
        Agent(ScriptedModel([]), tools=[inner.as_tool()]),
        Agent(ScriptedModel([]), tools=[inner.as_tool(needs_approval=True)]),
    ):
        with pytest.raises(UsageError, match="needs approval"):
            agent.run_sync("go")
        with pytest.raises(UsageError, match="needs approval"):
            asyncio.run(agent.run("go"))


def test_a_task_for_another_agent_may_need_approval():
    inner = Agent(ScriptedModel(["in"]), protocol="chatty", name="inner")
    model = ScriptedModel([act("inner", task="x"), finish()])
    agent = Agent(model, tools=[inner.as_tool(needs_approval=True)])
    result = decide(lambda run, ticket: run.approve(ticket), agent)
    assert result.tickets[0].result == "in"


def test_an_operation_of_a_document_may_need_approval():
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/pay/{amount}": {
                "post": {
                    "parameters": [
                        {
                            "name": "amount",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "integer"},
                        }
                    ]
                }
            }
        },
    }
    api = OpenAPI.from_dict(document, handlers={"POST /pay/{amount}": pay})
    model = ScriptedModel([call("POST /pay/5"), wait("T1"), give("done")])
    decide(approve, Agent(model, protocol="ticket", tools=api))
    assert made == [5]


def test_a_sync_run_is_approved_from_another_thread(store):
    def later():
        while not store.tickets(awaiting_approval=True):
            time.sleep(0.01)
        (ticket,) = store.tickets(awaiting_approval=True)
        store.run(ticket.run_id).approve(ticket)

    thread = threading.Thread(target=later)
    thread.start()
    agent = Agent(ScriptedModel([act("pay", amount=5), finish()]), tools=[pay], store=store)
    result = agent.run_sync("go")
    thread.join()
    assert (result.value, made) == ("done", [5])
    assert store.tickets(awaiting_approval=True) == []


def park(path, model):
    """Leave a run awaiting approval, as a process that ends does."""

    async def main():
        with TicketStore(path) as store:
            agent = Agent(model, tools=[pay], store=store)
            task = asyncio.create_task(agent.run("go"))
            while not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.01)
            run_id = store.runs()[0].run_id
            log = store.run(run_id).export()
            task.cancel()
            await asyncio.wait([task])
        return run_id, log

    return asyncio.run(main())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("choice", ["approve", "deny"])
def test_a_decision_outlives_the_process(path, tmp_path, when, choice):
    model = ScriptedModel([act("pay", amount=5), finish()])
    run_id, log = park(path, model)
    with TicketStore(tmp_path / "other.sqlite") as store:
        store.import_run(log)
        (ticket,) = store.tickets(awaiting_approval=True)
        assert (ticket.run_id, ticket.tool, ticket.status) == (run_id, "pay", "IN_PROGRESS")
        rows = store.query("SELECT run_id FROM tickets WHERE parked")
        assert rows == [{"run_id": run_id}]

        def choose():
            run = store.run(run_id)
            run.approve(ticket) if choice == "approve" else run.deny(ticket, "no")

        if when == "before":
            choose()
            assert store.tickets(awaiting_approval=True) == []
        agent = Agent(model, tools=[pay], store=store)

        async def main():
            resuming = asyncio.create_task(agent.resume(run_id))
            if when == "after":
                await asyncio.sleep(0.2)
                assert not made
                assert not resuming.done()
                choose()
            return await resuming

        result = asyncio.run(main())
        assert made == ([5] if choice == "approve" else [])
        assert result.tickets[0].outcome == {"approve": "ok", "deny": "denied"}[choice]
        assert result.value == "done"
        assert replay(result.run).export() == result.run.export()


def test_a_call_awaiting_approval_is_not_in_doubt_after_a_crash(path, tmp_path):
    model = ScriptedModel([act("pay", amount=5), finish()])
    run_id, log = park(path, model)
    with TicketStore(tmp_path / "other.sqlite") as store:
        store.import_run(log)
        agent = Agent(model, tools=[pay], store=store)

        async def main():
            task = asyncio.create_task(agent.resume(run_id))
            await asyncio.sleep(0.1)
            run = store.run(run_id)
            assert [one.id for one in run.awaiting_approval] == ["T1"]
            run.approve("T1")
            return await task

        assert asyncio.run(main()).tickets[0].result == "paid 5"


@pytest.mark.parametrize("way", ["resume", "resume_sync"])
@pytest.mark.parametrize(
    ("decision", "amounts", "outcome"),
    [(True, [5], "ok"), ({"amount": 6}, [6], "ok"), ("no", [], "denied")],
)
def test_a_resumed_run_asks_the_approver(tmp_path, way, decision, amounts, outcome):
    model = ScriptedModel([act("pay", amount=5), finish()])
    run_id, log = park(tmp_path / "first.sqlite", model)
    shown = []

    def approve(ticket):
        shown.append(ticket.arguments)
        return decision

    with TicketStore(tmp_path / "other.sqlite") as store:
        store.import_run(log)
        agent = Agent(model, tools=[pay], store=store)
        if way == "resume":
            result = asyncio.run(agent.resume(run_id, approve=approve))
        else:
            result = agent.resume_sync(run_id, approve=approve)
    assert shown == [{"amount": 5}]
    assert made == amounts
    assert result.tickets[0].outcome == outcome


def test_an_approved_call_waits_for_no_neighbour():
    @tool
    async def slow(n: int) -> int:
        """Work."""
        await asyncio.sleep(60)
        return n

    calls = block(("a", "slow", {"n": 1}), ("b", "pay", {"amount": 5}))
    protocol = ChattyProtocol(early_start=False)
    agent = Agent(ScriptedModel([calls, "done"]), protocol=protocol, tools=[slow, pay])

    async def main():
        async with agent.stream("go") as run:
            async for event in run:
                if run.awaiting_approval:
                    run.approve("T2")
                    began = time.monotonic()
                elif isinstance(event, Event) and event.kind == "ticket_completed":
                    return event.ticket_id, time.monotonic() - began
        return None

    ticket, took = asyncio.run(main())
    assert ticket == "T2"
    assert took < 30
