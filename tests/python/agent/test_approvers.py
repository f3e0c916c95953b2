"""`run(task, approve=…)`: a function decides on the calls that are awaiting approval."""

import asyncio
import threading

import pytest

from callslip import (
    Agent,
    LimitExceeded,
    Limits,
    ScriptedModel,
    TicketProtocol,
    UsageError,
    replay,
    tool,
)
from payments import made, pay
from scripted import act, asked, block, call_once, finish

pytestmark = pytest.mark.usefixtures("no_payments")


def run_async(agent, **options):
    return asyncio.run(asyncio.wait_for(agent.run("go", **options), 60))


def run_sync(agent, **options):
    return agent.run_sync("go", **options)


WAYS = pytest.mark.parametrize("run", [run_async, run_sync])
PROTOCOLS = pytest.mark.parametrize("protocol", ["react", "chatty", TicketProtocol(grace=0)])


def agent_with(amount=5, protocol="react", **options):
    name = getattr(protocol, "name", protocol)
    model = ScriptedModel(call_once(name, "pay", {"amount": amount}))
    return Agent(model, protocol=protocol, tools=[pay], **options)


def at_once(decision):
    return lambda ticket: decision


def awaitable(decision):
    def approve(ticket):
        return later(decision)(ticket)

    return approve


def later(decision):
    async def approve(ticket):
        await asyncio.sleep(0)
        return decision

    return approve


@WAYS
@PROTOCOLS
@pytest.mark.parametrize("kind", [at_once, later, awaitable])
@pytest.mark.parametrize(
    ("decision", "outcome", "error"),
    [
        (True, "ok", None),
        (False, "denied", "The call of 'pay' was denied"),
        ("too much", "denied", "The call of 'pay' was denied: too much"),
        ({"amount": 7}, "ok", None),
    ],
)
def test_the_function_decides(run, protocol, kind, decision, outcome, error):  # noqa: PLR0917
    result = run(agent_with(protocol=protocol), approve=kind(decision))
    (ticket,) = result.tickets
    assert (ticket.outcome, ticket.error, result.value) == (outcome, error, "done")
    assert made == ([] if error else [7 if isinstance(decision, dict) else 5])
    assert replay(result.run).export() == result.run.export()


@WAYS
@pytest.mark.parametrize("limits", [None, Limits(seconds=60)])
def test_the_function_gets_the_ticket(run, limits):
    seen = []

    def approve(ticket):
        seen.append(ticket)
        return True

    result = run(agent_with(), approve=approve, limits=limits)
    (ticket,) = seen
    assert ticket.awaiting_approval
    assert ticket.call == 'pay {"amount": 5}'
    assert ticket.run_id == result.run.id


@WAYS
def test_it_decides_for_child_runs_too(run):
    def inner():
        model = ScriptedModel([act("pay", amount=5), finish("in")])
        return Agent(model, tools=[pay], name="inner")

    outer = Agent(ScriptedModel([act("inner", task="x"), finish()]), tools=[inner().as_tool()])
    assert run(outer, approve=lambda ticket: {"amount": 6}).value == "done"
    assert made == [6]

    @tool
    async def ask_inner() -> str:
        """Ask."""
        return (await inner().run("x")).value

    outer = Agent(ScriptedModel([act("ask_inner"), finish()]), tools=[ask_inner])
    result = run(outer, approve=lambda ticket: True)
    assert (made, result.tickets[0].result) == ([6, 5], "in")


@WAYS
def test_a_sync_function_is_called_for_one_call_at_a_time(run):
    now = []

    def approve(ticket):
        now.append(ticket.id)
        assert len(now) == 1
        threading.Event().wait(0.02)
        now.clear()
        return True

    calls = block(*((f"c{n}", "pay", {"amount": n}) for n in range(4)))
    agent = Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[pay])
    run(agent, approve=approve)
    assert sorted(made) == [0, 1, 2, 3]


def test_an_async_function_is_called_for_several_calls_at_once():
    waiting = asyncio.Barrier(3)

    async def approve(ticket):
        await waiting.wait()
        return True

    calls = block(*((f"c{n}", "pay", {"amount": n}) for n in range(3)))
    agent = Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[pay])
    run_async(agent, approve=approve)
    assert sorted(made) == [0, 1, 2]


@WAYS
def test_other_calls_continue_while_somebody_is_asked(run):
    looked = threading.Event()

    @tool
    def look() -> str:
        """Look."""
        looked.set()
        return "seen"

    def approve(ticket):
        assert looked.wait(20)
        return True

    calls = block(("c", "pay", {"amount": 5}), ("l", "look", {}))
    agent = Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[pay, look])
    assert run(agent, approve=approve).value == "done"


@WAYS
def test_only_calls_that_need_approval_are_asked_for(run):
    seen = []

    @tool(name="pay", needs_approval=lambda arguments, context: arguments["amount"] > 100 and "big")
    def checked(amount: int) -> str:
        """Pay."""
        made.append(amount)
        return "paid"

    def approve(ticket):
        seen.append((ticket.arguments, ticket.approval_reason))
        return True

    model = ScriptedModel([act("pay", amount=5), act("pay", amount=900), finish()])
    run(Agent(model, tools=[checked]), approve=approve)
    assert (seen, made) == ([({"amount": 900}, "big")], [5, 900])


@WAYS
def test_wrong_arguments_raise(run):
    with pytest.raises(UsageError, match="'amount'"):
        run(agent_with(), approve=lambda ticket: {"much": 5})
    assert made == []


@WAYS
def test_a_function_that_takes_the_problem_is_asked_again(run):
    problems = []

    def approve(ticket, problem=None):
        problems.append(problem)
        return {"amount": 7} if len(problems) > 2 else {"amount": "x"}

    run(agent_with(), approve=approve)
    assert made == [7]
    assert problems[0] is None
    assert all("which still awaits approval" in one and "amount" in one for one in problems[1:])


@WAYS
@pytest.mark.parametrize("decision", [None, 1, object()])
def test_anything_else_is_no_approval(run, decision):
    with pytest.raises(UsageError, match="expected approve to return"):
        run(agent_with(), approve=lambda ticket: decision)
    assert made == []


@WAYS
@pytest.mark.parametrize("error", [LookupError("gone"), KeyboardInterrupt()])
def test_an_exception_of_the_function_ends_the_run(run, error):
    def approve(ticket):
        raise error

    if run is run_async and isinstance(error, KeyboardInterrupt):
        pytest.skip("it is pressed in the main thread")
    with pytest.raises(type(error)):
        run(agent_with(), approve=approve)
    assert made == []


@WAYS
@pytest.mark.parametrize("wrong", [True, "ask", 5])
def test_it_is_a_function(run, wrong):
    with pytest.raises(UsageError, match="expected approve to be a function"):
        run(agent_with(), approve=wrong)


@pytest.mark.parametrize("sync", [True, False])
def test_somebody_else_may_decide_meanwhile(store, sync):
    """The function is given up; a sync one can't be, and its decision is dropped."""
    threads = []
    agent = agent_with(store=store)

    def approve(ticket):
        store.run(ticket.run_id).deny(ticket, "by another")
        return True

    async def approve_never(ticket):
        threads.append(threading.Thread(target=approve, args=[ticket]))
        threads[-1].start()
        await asyncio.Event().wait()

    result = run_sync(agent, approve=approve if sync else approve_never)
    assert (result.tickets[0].error, made) == ("The call of 'pay' was denied: by another", [])
    result = run_async(agent_with(store=store), approve=approve if sync else approve_never)
    assert (result.tickets[0].error, made) == ("The call of 'pay' was denied: by another", [])
    for thread in threads:
        thread.join()


@WAYS
def test_a_time_limit_does_not_wait_for_an_answer(run):
    stuck = threading.Event()

    @tool
    def work(n: int) -> int:
        """Work."""
        stuck.wait(60)
        return n

    calls = block(("a", "work", {"n": 1}), ("b", "pay", {"amount": 5}))
    agent = Agent(ScriptedModel([calls]), protocol="chatty", tools=[work, pay], on_limit="raise")
    try:
        with pytest.raises(LimitExceeded):
            run(agent, approve=lambda ticket: stuck.wait(60), limits=Limits(seconds=0.2))
    finally:
        stuck.set()
    assert made == []


def test_a_cancelled_run_does_not_wait_for_an_answer():
    stuck = threading.Event()

    async def main():
        asking = asyncio.Event()
        loop = asyncio.get_running_loop()

        def approve(ticket):
            loop.call_soon_threadsafe(asking.set)
            return stuck.wait(60)

        task = asyncio.create_task(agent_with().run("go", approve=approve))
        await asking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(asyncio.wait_for(main(), 30))
    finally:
        stuck.set()
    assert made == []


def test_the_model_reads_why_a_call_was_denied():
    result = run_sync(agent_with(), approve=lambda ticket: "too much")
    assert "was denied: too much" in asked(result.messages)[2]["content"]


@WAYS
def test_an_answer_is_checked_beside_it(run):
    checked = []
    agent = agent_with(check_answer=lambda answer, context: checked.append(answer))
    assert run(agent, approve=lambda ticket: True).value == "done"
    assert checked == ["done"]


@pytest.mark.parametrize("how", ["send", "send_sync"])
def test_the_approver_of_a_run_decides_in_its_next_turns(how):
    asked, paid = [], []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    def approve(ticket):
        asked.append(ticket.id)
        return True

    model = ScriptedModel([act("pay", amount=1), finish(), act("pay", amount=2), finish("end")])
    result = Agent(model, tools=[pay]).run_sync("go", approve=approve)
    if how == "send_sync":
        result = result.run.send_sync("again")
    else:

        async def main():
            return await asyncio.wait_for(result.run.send("again"), 20)

        result = asyncio.run(main())
    assert (result.value, asked, paid) == ("end", ["T1", "T2"], [1, 2])
