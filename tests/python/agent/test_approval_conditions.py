"""A function decides for each call whether it needs approval."""

import asyncio
import threading

import pytest

from callslip import (
    Agent,
    Context,
    Event,
    Limits,
    OpenAPI,
    RunCancelled,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from scripted import act, block, call, call_once, finish, give, wait

made = []
asked = []


@pytest.fixture(autouse=True)
def _fresh():
    made.clear()
    asked.clear()


def large(arguments, context):
    asked.append((arguments, context))
    return arguments["amount"] > 100


async def large_later(arguments, context):
    await asyncio.sleep(0)
    return large(arguments, context)


def large_awaitable(arguments, context):
    return large_later(arguments, context)


def pay_with(condition, **options):
    @tool(needs_approval=condition, **options)
    def pay(amount: int) -> str:
        """Pay."""
        made.append(amount)
        return f"paid {amount}"

    return pay


def seen_by_approver(agent, task="go"):
    """Run with somebody who notes what awaits approval, and approves it."""
    seen = []

    async def main():
        async with agent.stream(task) as run:
            async for event in run:
                if isinstance(event, Event):
                    for ticket in run.awaiting_approval:
                        seen.append(ticket)
                        run.approve(ticket)
        return run.result

    return seen, asyncio.run(asyncio.wait_for(main(), 60))


def kinds(result):
    return [event.kind for event in result.run.log]


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket", "native"])
@pytest.mark.parametrize("condition", [large, large_later, large_awaitable])
@pytest.mark.parametrize("amount", [5, 900])
def test_the_condition_decides(protocol, condition, amount):
    model = ScriptedModel(call_once(protocol, "pay", {"amount": amount}))
    agent = Agent(model, protocol=protocol, tools=[pay_with(condition)])
    seen, result = seen_by_approver(agent)
    assert [ticket.arguments for ticket in seen] == ([{"amount": 900}] if amount > 100 else [])
    assert (made, result.value, len(asked)) == ([amount], "done", 1)
    (checked,) = (event for event in result.run.log if event.kind == "approval_checked")
    assert checked.needs_approval == (amount > 100)
    assert kinds(result).count("approved") == (amount > 100)
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("condition", [large, large_later, large_awaitable])
@pytest.mark.parametrize("limits", [None, Limits(seconds=60)])
def test_the_condition_decides_in_a_sync_run(store, condition, limits):
    model = ScriptedModel([act("pay", amount=5), finish()])
    agent = Agent(model, tools=[pay_with(condition)], store=store)
    result = agent.run_sync("go", limits=limits)
    assert (made, result.value, len(asked)) == ([5], "done", 1)


def test_the_condition_gets_checked_arguments_and_the_context():
    model = ScriptedModel([act("pay", amount="900"), finish()])
    _, result = seen_by_approver(Agent(model, tools=[pay_with(large)]))
    ((arguments, context),) = asked
    assert arguments == {"amount": 900}
    assert isinstance(context, Context)
    assert (context.run_id, context.ticket_id, context.tool) == (result.run.id, "T1", "pay")


def test_the_condition_gets_the_deps(store):
    agent = Agent(
        ScriptedModel([act("pay", amount=5), finish()]),
        tools=[pay_with(lambda arguments, context: arguments["amount"] > context.deps)],
        store=store,
    )
    assert agent.run_sync("go", deps=10).value == "done"


def test_the_condition_can_not_change_the_arguments():
    def double(arguments, context):
        arguments["amount"] *= 2
        return False

    seen_by_approver(
        Agent(ScriptedModel([act("pay", amount=5), finish()]), tools=[pay_with(double)])
    )
    assert made == [5]


def test_the_condition_sees_what_references_are_filled_with():
    @tool
    def price() -> int:
        """Look a price up."""
        return 900

    calls = block(("p", "price", {}), ("c", "pay", {"amount": "$p"}))
    agent = Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[price, pay_with(large)])
    seen, result = seen_by_approver(agent)
    assert [arguments for arguments, _ in asked] == [{"amount": 900}]
    assert [ticket.arguments for ticket in seen] == [{"amount": 900}]
    assert made == [900]
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("path", [None, "runs.sqlite"])
def test_the_reason_is_shown_and_kept(path, tmp_path):
    def why(arguments, context):
        return f"more than {arguments['amount'] - 1}"

    with TicketStore(None if path is None else tmp_path / path) as store:
        model = ScriptedModel([act("pay", amount=5), finish()])
        agent = Agent(model, tools=[pay_with(why)], store=store)
        seen, result = seen_by_approver(agent)
        assert [ticket.approval_reason for ticket in seen] == ["more than 4"]
        assert result.tickets[0].approval_reason == "more than 4"
        assert store.tickets()[0].approval_reason == "more than 4"
        store.compact(result.run.id)
        assert store.tickets()[0].approval_reason == "more than 4"
        assert store.run(result.run.id).tickets[0].approval_reason == "more than 4"
        if path:
            rows = store.query("SELECT approval_reason FROM tickets")
            assert rows == [{"approval_reason": "more than 4"}]


def fails(arguments, context):
    raise LookupError("no such account")


async def is_cancelled(arguments, context):
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (fails, "the check failed: LookupError: no such account"),
        (is_cancelled, "the check failed: CancelledError"),
        (
            lambda arguments, context: None,
            "the check failed: expected True, False or a reason as text: got NoneType",
        ),
        (
            lambda arguments, context: 0,
            "the check failed: expected True, False or a reason as text: got int",
        ),
        (lambda arguments, context: "", None),
    ],
)
def test_a_condition_that_fails_asks_for_approval(condition, reason):
    replies = [act("pay", amount=5), finish()]
    seen, _ = seen_by_approver(Agent(ScriptedModel(replies), tools=[pay_with(condition)]))
    assert [ticket.approval_reason for ticket in seen] == [reason]
    assert made == [5]
    made.clear()
    agent = Agent(ScriptedModel(replies), tools=[pay_with(condition)])
    assert agent.run_sync("go", approve=lambda ticket: False).tickets[0].outcome == "denied"
    assert made == []


def test_a_call_that_may_start_early_waits_for_its_condition():
    replies = iter([block(("c", "pay", {"amount": 900}), ("d", "pay", {"amount": 901})), "done"])

    def model(messages):
        yield from next(replies)

    agent = Agent(
        model,
        protocol="chatty",
        tools=[pay_with(large, readonly=True, effect="pure")],
    )
    seen, _ = seen_by_approver(agent)
    assert sorted(ticket.arguments["amount"] for ticket in seen) == [900, 901]
    assert sorted(made) == [900, 901]


def test_a_task_for_another_agent_has_a_condition():
    inner = Agent(ScriptedModel(["in", "in"]), protocol="chatty", name="inner")

    def is_long(arguments, context):
        return len(arguments["task"]) > 5

    model = ScriptedModel(
        [act("inner", task="short"), act("inner", task="a longer task"), finish()]
    )
    seen, result = seen_by_approver(Agent(model, tools=[inner.as_tool(needs_approval=is_long)]))
    assert [ticket.arguments for ticket in seen] == [{"task": "a longer task"}]
    assert [ticket.result for ticket in result.tickets] == ["in", "in"]


def test_calls_of_child_runs_have_conditions():
    model = ScriptedModel([act("pay", amount=900), finish("in")])
    inner = Agent(model, tools=[pay_with(large)], name="inner")
    outer = Agent(ScriptedModel([act("inner", task="x"), finish()]), tools=[inner.as_tool()])
    seen, result = seen_by_approver(outer)
    assert (len(seen), made, result.value) == (1, [900], "done")


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        f"/{name}/{{amount}}": {
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
        for name in ("pay", "ask")
    },
}


@pytest.mark.parametrize("where", ["document", "handler", "both"])
def test_operations_have_a_condition(where):
    def pay(amount: int) -> str:
        made.append(amount)
        return "paid"

    own = tool(needs_approval=large)(pay) if where in {"handler", "both"} else pay
    api = OpenAPI.from_dict(
        DOCUMENT,
        handlers={"POST /pay/{amount}": own},
        needs_approval=False if where == "handler" else large_later,
    )
    replies = [call("POST /pay/5"), wait("T1"), call("POST /pay/900"), wait("T2"), give("done")]
    agent = Agent(ScriptedModel(replies), protocol="ticket", tools=api)
    seen, _ = seen_by_approver(agent)
    assert [ticket.call for ticket in seen] == ["POST /pay/900"]
    assert made == [5, 900]


@pytest.mark.parametrize("wrong", [1, "always", None, lambda: True, lambda arguments: True])
def test_a_wrong_condition_is_refused_at_once(wrong):
    with pytest.raises(UsageError, match="needs_approval"):
        pay_with(wrong)
    with pytest.raises(UsageError, match="needs_approval"):
        Agent(ScriptedModel([])).as_tool(needs_approval=wrong)


def test_nobody_could_approve_is_said_before_the_run():
    agent = Agent(ScriptedModel([]), tools=[pay_with(large)])
    with pytest.raises(UsageError, match="approve=at_terminal"):
        agent.run_sync("go")


def test_a_run_that_is_cancelled_during_the_check_makes_no_call():
    begun = asyncio.Event()

    async def stuck(arguments, context):
        begun.set()
        await asyncio.sleep(60)

    async def main():
        model = ScriptedModel([act("pay", amount=5), finish()])
        async with Agent(model, tools=[pay_with(stuck)]).stream("go") as run:
            await begun.wait()
            run.run.cancel()
            with pytest.raises(RunCancelled):
                async for _ in run:
                    pass
                _ = run.result
        return run.run

    run = asyncio.run(asyncio.wait_for(main(), 30))
    assert (made, run.tickets[0].outcome) == ([], "cancelled")
    assert "before it began" in run.tickets[0].error


def test_other_calls_of_a_block_are_made_during_the_check():
    looked = threading.Event()

    @tool
    def look() -> str:
        """Look."""
        looked.set()
        return "seen"

    def slow(arguments, context):
        assert looked.wait(20)
        return False

    calls = block(("c", "pay", {"amount": 5}), ("l", "look", {}))
    agent = Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[pay_with(slow), look])
    _, result = seen_by_approver(agent)
    assert [ticket.result for ticket in result.tickets] == ["paid 5", "seen"]


def cut_after(result, kind):
    """The log as a crash right after the first event of this kind leaves it."""
    lines = result.run.export().splitlines(keepends=True)
    at = kinds(result).index(kind)
    return "".join(lines[: at + 1])


@pytest.mark.parametrize("amount", [5, 900])
def test_a_resumed_run_asks_the_condition_again_without_a_verdict(amount):
    def model():
        return ScriptedModel([act("pay", amount=amount), finish()])

    _, first = seen_by_approver(Agent(model(), tools=[pay_with(large)]))
    log = cut_after(first, "ticket_opened")
    made.clear()
    asked.clear()
    with TicketStore() as store:
        run_id = store.import_run(log)
        assert store.tickets(awaiting_approval=True) == []
        with pytest.raises(UsageError, match="no ticket awaits approval"):
            store.run(run_id).approve("T1")
        agent = Agent(ScriptedModel([finish()]), tools=[pay_with(large)], store=store)

        async def main():
            task = asyncio.create_task(agent.resume(run_id))
            while not task.done() and not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.01)
            if amount > 100:
                assert made == []
                store.run(run_id).approve("T1")
            return await task

        result = asyncio.run(asyncio.wait_for(main(), 30))
        assert (made, len(asked)) == ([amount], 1)
        assert replay(result.run).export() == result.run.export()


def test_a_verdict_of_the_log_is_kept():
    """With it the call may have begun, so that a crash leaves it in doubt, and asks nobody."""
    model = ScriptedModel([act("pay", amount=5), finish()])
    _, first = seen_by_approver(Agent(model, tools=[pay_with(large)]))
    made.clear()
    asked.clear()
    with TicketStore() as store:
        run_id = store.import_run(cut_after(first, "approval_checked"))
        agent = Agent(ScriptedModel([finish()]), tools=[pay_with(large)], store=store)
        result = agent.resume_sync(run_id)
    assert (result.tickets[0].outcome, made, asked) == ("in_doubt", [], [])


def test_an_agent_with_another_kind_of_approval_can_not_resume():
    model = ScriptedModel([act("pay", amount=900), finish()])
    _, first = seen_by_approver(Agent(model, tools=[pay_with(large)]))
    with TicketStore() as store:
        run_id = store.import_run(cut_after(first, "approval_checked"))
        agent = Agent(ScriptedModel([finish()]), tools=[pay_with(False)], store=store)
        with pytest.raises(UsageError, match="approval"):
            agent.resume_sync(run_id)
