"""Whoever approves a call sees what it is made with: whole, final, not in the model's words."""

import asyncio

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Event,
    OpenAPI,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from payments import made
from payments import pay_to as pay
from scripted import act, block, call, call_once, finish, give, wait

pytestmark = pytest.mark.usefixtures("no_payments")


@tool
def price(of: str) -> int:
    """Look a price up."""
    return 900 if of == "it" else -1


def seen_by_approver(agent, task="go", choose=None):
    """Run with somebody who notes what is to be approved, and approves it."""
    seen = []

    async def main():
        async with agent.stream(task) as run:
            async for event in run:
                if isinstance(event, Event) and getattr(event, "needs_approval", False):
                    for ticket in run.awaiting_approval:
                        seen.append((event, ticket))
                        (choose or (lambda run, ticket: run.approve(ticket)))(run, ticket)
        return run.result

    result = asyncio.run(asyncio.wait_for(main(), 60))
    return seen, result


LONG = "x" * 5_000


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket", "native"])
def test_the_whole_arguments_are_shown_whatever_the_model_says(protocol):
    arguments = {"to": LONG, "amount": 900}
    model = ScriptedModel(call_once(protocol, "pay", arguments, description="pay 1 euro to ann"))
    agent = Agent(model, protocol=protocol, tools=[pay])
    ((event, ticket),), result = seen_by_approver(agent)
    assert ticket.arguments == event.arguments == arguments
    assert ticket.call == f'pay {{"to": "{LONG}", "amount": 900}}'
    assert made == [(LONG, 900)]
    assert (result.tickets[0].arguments, result.tickets[0].awaiting_approval) == (arguments, False)
    if protocol == "ticket":
        assert ticket.description == "pay 1 euro to ann"


SENT = block(("p", "price", {"of": "it"}), ("c", "pay", {"to": "ann", "amount": "$p"}))


def test_approval_is_asked_only_when_references_are_filled():
    agent = Agent(ScriptedModel([SENT, "done"]), protocol="chatty", tools=[pay, price])
    early = []

    async def main():
        async with agent.stream("go") as run:
            async for event in run:
                if not isinstance(event, Event):
                    continue
                if event.kind == "ticket_opened" and event.tool == "pay":
                    assert not event.needs_approval
                    if not run.awaiting_approval:
                        early.append(run.run.tickets[1].arguments)
                        with pytest.raises(UsageError, match="ticket that awaits approval"):
                            run.approve("T2")
                if event.kind == "arguments_filled":
                    assert event.arguments == {"to": "ann", "amount": 900}
                    assert event.needs_approval is True
                    (ticket,) = run.awaiting_approval
                    assert ticket.arguments == {"to": "ann", "amount": 900}
                    run.approve(ticket)
        return run.result

    result = asyncio.run(asyncio.wait_for(main(), 60))
    assert made == [("ann", 900)]
    assert early in ([], [{"to": "ann", "amount": "$p"}])
    assert replay(result.run).export() == result.run.export()


def test_what_becomes_invalid_is_asked_of_nobody():
    @tool
    def listing() -> list[int]:
        """List."""
        return [1, 2]

    model = ScriptedModel(
        [block(("p", "listing", {}), ("c", "pay", {"to": "$p", "amount": 1})), "done"]
    )
    agent = Agent(model, protocol="chatty", tools=[pay, listing])
    seen, result = seen_by_approver(agent)
    assert (seen, made) == ([], [])
    assert result.tickets[1].outcome == "error"
    assert "InvalidArguments" in result.tickets[1].error
    assert replay(result.run).export() == result.run.export()


def test_calls_of_runs_below_are_shown_with_filled_references():
    inner = Agent(ScriptedModel([SENT, "in"]), protocol="chatty", tools=[pay, price], name="inner")
    outer = Agent(ScriptedModel([act("inner", task="x"), finish()]), tools=[inner.as_tool()])
    ((event, ticket),), _ = seen_by_approver(outer)
    assert event.kind == "arguments_filled"
    assert ticket.arguments == {"to": "ann", "amount": 900}
    assert made == [("ann", 900)]


def park(path, model, tools):
    """Leave a run awaiting approval, as a process that ends does."""

    async def main():
        with TicketStore(path) as store:
            agent = Agent(model, protocol="chatty", tools=tools, store=store)
            task = asyncio.create_task(agent.run("go"))
            while not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.01)
            run_id = store.runs()[0].run_id
            log = store.run(run_id).export()
            task.cancel()
            await asyncio.wait([task])
        return run_id, log

    return asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("compacted", [False, True])
def test_a_store_shows_them_in_a_later_process(tmp_path, compacted):
    model = ScriptedModel([SENT, "done"])
    run_id, log = park(tmp_path / "one.sqlite", model, [pay, price])
    with TicketStore(tmp_path / "two.sqlite") as store:
        store.import_run(log)
        if compacted:
            store.compact(run_id)
        (ticket,) = store.tickets(awaiting_approval=True)
        assert ticket.arguments == {"to": "ann", "amount": 900}
        assert ticket.call == 'pay {"to": "ann", "amount": 900}'
        (row,) = store.query("SELECT arguments FROM tickets WHERE parked")
        assert "900" in row["arguments"]
        assert [one.arguments for one in store.run(run_id).awaiting_approval] == [ticket.arguments]
        store.run(run_id).approve(ticket)
        agent = Agent(model, protocol="chatty", tools=[pay, price], store=store)
        result = agent.resume_sync(run_id)
        assert (made, result.value) == ([("ann", 900)], "done")


def test_a_store_in_memory_shows_them():
    with TicketStore() as store:
        agent = Agent(
            ScriptedModel([SENT, "done"]), protocol="chatty", tools=[pay, price], store=store
        )

        async def main():
            task = asyncio.create_task(agent.run("go"))
            while not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.01)
            (ticket,) = store.tickets(awaiting_approval=True)
            store.run(ticket.run_id).approve(ticket)
            await task
            return ticket.arguments

        assert asyncio.run(asyncio.wait_for(main(), 60)) == {"to": "ann", "amount": 900}


def test_a_log_that_ends_before_the_fill_asks_after_resuming(tmp_path):
    model = ScriptedModel([SENT, "done"])
    run_id, log = park(tmp_path / "one.sqlite", model, [pay, price])
    lines = log.splitlines(keepends=True)
    cut = next(at for at, line in enumerate(lines) if "arguments_filled" in line)
    with TicketStore(tmp_path / "two.sqlite") as store:
        store.import_run("".join(lines[:cut]))
        assert store.tickets(awaiting_approval=True) == []
        agent = Agent(model, protocol="chatty", tools=[pay, price], store=store)

        async def main():
            task = asyncio.create_task(agent.resume(run_id))
            while not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.01)
            assert not made
            (ticket,) = store.tickets(awaiting_approval=True)
            assert ticket.arguments == {"to": "ann", "amount": 900}
            store.run(run_id).approve(ticket)
            return await task

        result = asyncio.run(asyncio.wait_for(main(), 60))
        assert made == [("ann", 900)]
        assert replay(result.run).export() == result.run.export()


def test_the_line_of_a_call_holds_nothing_that_moves_the_text():
    hostile = "ann\u202egro.live\x1b[2Kbob\u009b\u200b"
    agent = Agent(ScriptedModel([act("pay", to=hostile, amount=1), finish()]), tools=[pay])
    ((_, ticket),), _ = seen_by_approver(agent)
    assert ticket.call.isprintable()
    assert ticket.arguments["to"] == hostile


def test_of_an_operation_the_final_path_is_shown():
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/users/{name}": {
                "delete": {
                    "parameters": [
                        {
                            "name": "name",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string"},
                        },
                        {"name": "hard", "in": "query", "schema": {"type": "boolean"}},
                    ]
                }
            }
        },
    }

    def delete(name: str, hard: bool = False) -> None:
        made.append((name, hard))

    handlers = {"DELETE /users/{name}": delete}
    api = OpenAPI.from_dict(document, handlers=handlers, needs_approval=True)
    model = ScriptedModel([call("DELETE /users/a%20b", {"hard": True}), wait("T1"), give("done")])
    ((_, ticket),), _ = seen_by_approver(Agent(model, protocol="ticket", tools=api))
    assert ticket.tool == "DELETE /users/{name}"
    assert ticket.arguments == {"name": "a b", "hard": True}
    assert ticket.call == 'DELETE /users/a%20b {"hard": true}'
    assert made == [("a b", True)]


def test_references_are_filled_once_before_calls_without_approval():
    model = ScriptedModel(
        [block(("a", "price", {"of": "it"}), ("b", "price", {"of": "$a"})), "done"]
    )

    @tool
    def text() -> str:
        """Text."""
        return "$a"

    agent = Agent(model, protocol=ChattyProtocol(), tools=[price, text])
    result = agent.run_sync("go")
    assert result.tickets[1].outcome == "error"  # 900 is no text
    model = ScriptedModel([block(("a", "text", {}), ("b", "price", {"of": "$a"})), "done"])
    result = Agent(model, protocol="chatty", tools=[price, text]).run_sync("go")
    assert result.tickets[1].arguments == {"of": "$a"}
    assert result.tickets[1].result == -1
    assert replay(result.run).export() == result.run.export()
