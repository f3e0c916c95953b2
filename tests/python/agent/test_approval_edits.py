"""A person approves a call with other arguments: they are checked, recorded, told and executed."""

import asyncio
import threading

import pytest

from callslip import (
    Agent,
    Event,
    OpenAPI,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from payments import made
from payments import pay_to as pay
from scripted import act, asked, block, call, call_once, finish, give, load, wait

pytestmark = pytest.mark.usefixtures("no_payments")


@tool
def price(of: str) -> int:
    """Look a price up."""
    return 900


CALL = {"to": "bob", "amount": 900}
EDIT = {"to": "ann", "amount": 5}


def decide(choose, agent, task="go"):
    async def main():
        async with agent.stream(task) as run:
            async for event in run:
                if isinstance(event, Event) and getattr(event, "needs_approval", False):
                    for ticket in run.awaiting_approval:
                        choose(run, ticket)
        return run.result

    return asyncio.run(asyncio.wait_for(main(), 60))


def edit(run, ticket):
    run.approve(ticket, arguments=EDIT)


NOTES = {
    "react": "Note: a person changed the arguments of the call of 'pay' before it was made: ",
    "chatty": "Note: a person changed the arguments of call 'c' before it was made: ",
    "ticket": "Note: a person changed the arguments of T1 before it was made: ",
}


@pytest.mark.parametrize("protocol", NOTES)
def test_the_edited_arguments_are_executed_and_the_model_is_told(protocol):
    agent = Agent(
        ScriptedModel(call_once(protocol, "pay", CALL)),
        protocol=TicketProtocol(grace=0) if protocol == "ticket" else protocol,
        tools=[pay],
    )
    result = decide(edit, agent)
    (ticket,) = result.tickets
    assert (made, ticket.arguments, ticket.result) == ([("ann", 5)], EDIT, "paid 5")
    (approved,) = (event for event in result.run.log if event.kind == "approved")
    assert approved.arguments == EDIT
    told = "\n".join(message["content"] for message in asked(result.messages))
    assert told.count(NOTES[protocol] + '{"to":"ann","amount":5}') == 1
    assert replay(result.run).export() == result.run.export()


def test_a_call_that_is_approved_as_it_is_tells_the_model_nothing():
    result = decide(
        lambda run, ticket: run.approve(ticket),
        Agent(ScriptedModel(call_once("react", "pay", CALL)), tools=[pay]),
    )
    assert made == [("bob", 900)]
    assert "a person" not in "".join(message["content"] for message in result.messages)


def test_the_model_is_told_of_a_failed_call_too():
    @tool(needs_approval=True)
    def fail(why: str) -> None:
        raise ValueError(why)

    model = ScriptedModel([act("fail", why="a"), finish()])
    result = decide(
        lambda run, ticket: run.approve(ticket, arguments={"why": "b"}), Agent(model, tools=[fail])
    )
    said = asked(result.messages)[2]["content"]
    assert "ValueError: b" in said
    assert 'before it was made: {"why":"b"}' in said


def test_long_arguments_are_truncated_for_the_model_alone():
    long = "x" * 200_000
    model = ScriptedModel([act("pay", **CALL), finish()])
    result = decide(
        lambda run, ticket: run.approve(ticket, arguments={"to": long, "amount": 5}),
        Agent(model, tools=[pay]),
    )
    assert made == [(long, 5)]
    assert len(asked(result.messages)[2]["content"]) < 100_000


WRONG = [
    ({}, ["'to'", "'amount'"]),
    ({"to": "ann", "amount": "a lot", "when": "now"}, ["'amount'", "'when'", "a lot"]),
    ({"to": ["ann"], "amount": None}, ["to", "amount"]),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG)
def test_a_wrong_edit_is_refused_with_all_reasons_and_changes_nothing(arguments, named):
    def choose(run, ticket):
        events = len(run.run.log)
        with pytest.raises(UsageError) as caught:
            run.approve(ticket, arguments=arguments)
        assert all(name in str(caught.value) for name in named), caught.value
        assert len(run.run.log) == events
        (still,) = run.awaiting_approval
        assert still == ticket
        run.approve(ticket)

    decide(choose, Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[pay]))
    assert made == [("bob", 900)]


@pytest.mark.parametrize(
    "arguments", [5, "{}", [("to", "ann")], {"to": object()}, {"to": {1, "1"}}]
)
def test_an_edit_is_a_mapping_with_json(arguments):
    def choose(run, ticket):
        with pytest.raises(UsageError):
            run.approve(ticket, arguments=arguments)
        run.deny(ticket)

    decide(choose, Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[pay]))
    assert made == []


def test_an_edit_is_read_as_the_model_s_arguments_are():
    result = decide(
        lambda run, ticket: run.approve(ticket, arguments={"to": "ann", "amount": "5"}),
        Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[pay]),
    )
    assert (made, result.tickets[0].arguments) == ([("ann", 5)], EDIT)


SENT = block(("p", "price", {"of": "it"}), ("c", "pay", {"to": "bob", "amount": "$p"}))


def test_referenced_arguments_are_edited_once_they_are_filled():
    agent = Agent(ScriptedModel([SENT, "done"]), protocol="chatty", tools=[pay, price])

    def choose(run, ticket):
        assert ticket.arguments == CALL
        for wrong in ({"to": "$p", "amount": 5}, {"to": "ann", "amount": "$p"}):
            with pytest.raises(UsageError, match=r"got '\$p', a reference to a call"):
                run.approve(ticket, arguments=wrong)
        run.approve(ticket, arguments={"to": "$$5", "amount": 5})

    result = decide(choose, agent)
    # What is no reference is written as it is.
    assert made == [("$$5", 5)]
    assert replay(result.run).export() == result.run.export()


def test_a_call_that_refers_to_an_edited_one_has_its_result():
    @tool
    def note(text: str) -> str:
        """Note."""
        return text

    calls = block(("c", "pay", CALL), ("n", "note", {"text": "$c"}))
    result = decide(
        edit, Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[pay, note])
    )
    assert result.tickets[1].result == "paid 5"


def test_an_edited_operation_must_be_one_that_is_offered():
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
                        }
                    ]
                }
            },
            "/users/all": {"delete": {}},
        },
    }
    api = OpenAPI.from_dict(
        document,
        handlers={"DELETE /users/{name}": made.append},
        include=["DELETE /users/{name}"],
        needs_approval=True,
    )

    def choose(run, ticket):
        with pytest.raises(UsageError, match="not offered"):
            run.approve(ticket, arguments={"name": "all"})
        run.deny(ticket)

    replies = [call("DELETE /users/ann"), wait("T1"), give("done")]
    decide(choose, Agent(ScriptedModel(replies), protocol="ticket", tools=api))
    assert made == []


@pytest.mark.parametrize("first", ["approve", "edit", "deny"])
def test_of_two_people_one_wins_and_the_other_is_told(first):
    told = {
        "approve": "was approved already",
        "edit": "was approved with other arguments already",
        "deny": "was denied already",
    }

    def choose(run, ticket):
        {"approve": run.approve, "edit": lambda one: edit(run, one), "deny": run.deny}[first](
            ticket
        )
        for second in (run.approve, run.deny, lambda one: edit(run, one)):
            with pytest.raises(UsageError, match=f"got T1, which {told[first]}"):
                second(ticket)

    decide(choose, Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[pay]))
    assert made == {"approve": [("bob", 900)], "edit": [("ann", 5)], "deny": []}[first]


def test_of_many_threads_one_wins():
    refused = []

    def choose(run, ticket):
        barrier = threading.Barrier(8)

        def person(number):
            barrier.wait()
            try:
                run.approve(ticket, arguments={"to": "ann", "amount": number})
            except UsageError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=person, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    result = decide(choose, Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[pay]))
    assert len(refused) == 7
    assert all("already" in one for one in refused)
    assert made == [("ann", result.tickets[0].arguments["amount"])]


def at_rest(store, replies=None, tools=(pay,)):
    """Import a run whose process ended while a call was awaiting approval. Returns its id."""
    seen = []

    def note(run, ticket):
        seen.append(run.run.export())
        run.approve(ticket)

    decide(note, Agent(ScriptedModel(replies or [act("pay", **CALL), finish()]), tools=list(tools)))
    made.clear()
    return store.import_run(seen[0])


def test_an_edit_at_rest_is_executed_when_the_run_is_resumed(path):
    with TicketStore(path) as store:
        run_id = at_rest(store)
    # As another process does.
    with TicketStore(path) as store:
        (ticket,) = store.tickets(awaiting_approval=True)
        assert ticket.arguments == CALL
        with pytest.raises(UsageError, match="amount"):
            store.run(run_id).approve("T1", arguments={"to": "ann"})
        assert store.tickets(awaiting_approval=True) == [ticket]
        run = store.run(run_id)
        run.approve("T1", arguments=EDIT)
        assert run.tickets[0].arguments == EDIT
        assert store.tickets(awaiting_approval=True) == []
        (row,) = store.query("SELECT arguments FROM tickets")
        assert row == {"arguments": '{"to":"ann","amount":5}'}
    with TicketStore(path) as store:
        assert store.tickets()[0].arguments == EDIT
        agent = Agent(ScriptedModel([finish()]), tools=[pay], store=store)
        result = agent.resume_sync(run_id)
        assert (made, result.tickets[0].outcome) == ([("ann", 5)], "ok")
        assert replay(result.run).export() == result.run.export()
        store.compact(run_id)
        assert store.tickets()[0].arguments == EDIT


@pytest.mark.one_process
def test_of_two_people_at_rest_one_wins_and_the_other_is_told(store):
    run_id = at_rest(store)
    first, second, third = (store.run(run_id) for _ in range(3))
    first.approve("T1", arguments=EDIT)
    for late in (second.approve, second.deny):
        with pytest.raises(UsageError, match="approved with other arguments already"):
            late("T1")
    assert second.tickets[0].arguments == EDIT
    Agent(ScriptedModel([finish()]), tools=[pay], store=store).resume_sync(run_id)
    with pytest.raises(UsageError, match="already"):
        third.deny("T1")
    assert made == [("ann", 5)]


@pytest.mark.parametrize("effect", ["once", "idempotent"])
def test_a_crash_after_an_edit_repeats_no_other_call(store, effect):
    @tool(name="pay", needs_approval=True, effect=effect)
    def pay_again(to: str, amount: int) -> str:
        """Pay."""
        made.append((to, amount))
        return "paid"

    logs = []

    def note(run, ticket):
        run.approve(ticket, arguments=EDIT)
        logs.append(run.run.export())

    decide(note, Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[pay_again]))
    made.clear()
    run_id = store.import_run(logs[0], trust=True)
    agent = Agent(ScriptedModel([finish()]), tools=[pay_again], store=store)
    result = agent.resume_sync(run_id)
    # A driver worked on the run: the call may have been made.
    assert made == ([] if effect == "once" else [("ann", 5)])
    assert result.tickets[0].outcome == ("in_doubt" if effect == "once" else "ok")
    assert result.tickets[0].arguments == EDIT


def test_calls_of_child_runs_are_edited_from_above():
    inner = Agent(ScriptedModel([act("pay", **CALL), finish("in")]), tools=[pay], name="inner")
    outer = Agent(ScriptedModel([act("inner", task="x"), finish()]), tools=[inner.as_tool()])
    result = decide(edit, outer)
    assert (made, result.value) == ([("ann", 5)], "done")


def test_a_task_is_edited():
    tasks = []

    def model(messages):
        tasks.append(messages[-1]["content"])
        return "in"

    inner = Agent(model, protocol="chatty", name="inner")
    outer = Agent(
        ScriptedModel([act("inner", task="x"), finish()]),
        tools=[inner.as_tool(needs_approval=True)],
    )
    decide(lambda run, ticket: run.approve(ticket, arguments={"task": "y"}), outer)
    assert len(tasks) == 1
    assert tasks[0].startswith("y")


def test_the_condition_is_not_asked_about_an_edit():
    asked_for = []

    @tool(name="pay", needs_approval=lambda arguments, context: not asked_for.append(arguments))
    def checked(to: str, amount: int) -> str:
        """Pay."""
        made.append((to, amount))
        return "paid"

    decide(edit, Agent(ScriptedModel([act("pay", **CALL), finish()]), tools=[checked]))
    assert (asked_for, made) == ([CALL], [("ann", 5)])


def test_the_call_of_the_model_may_be_made_again_after_an_edit():
    """The guard against repetition knows the call that was made."""
    model = ScriptedModel([act("pay", **CALL), act("pay", **CALL), finish()])
    choices = iter([edit, lambda run, ticket: run.approve(ticket)])

    def choose(run, ticket):
        next(choices)(run, ticket)

    result = decide(choose, Agent(model, tools=[pay]))
    assert (made, result.run.violations) == ([("ann", 5), ("bob", 900)], 0)


def test_nothing_but_a_decision_changes_an_approved_call():
    """A result that the call referred to can't come again, so the log admits no other change."""
    agent = Agent(ScriptedModel([SENT, "done"]), protocol="chatty", tools=[pay, price])
    result = decide(edit, agent)
    lines = result.run.export().splitlines()
    kinds = [event.kind for event in result.run.log]
    filled, approved = (lines[kinds.index(one)] for one in ("arguments_filled", "approved"))
    for extra in (filled, approved):
        at = kinds.index("approved")
        shifted = [*lines[: at + 1], renumbered(extra, at + 1)]
        with pytest.raises(Exception, match="can't follow"):
            TicketStore().import_run("\n".join(shifted), trust=True)


def renumbered(line, seq):
    import json

    record = json.loads(line)
    record["seq"] = seq
    return json.dumps(record)


def test_the_ticket_protocol_tells_of_an_edit_before_its_result_is_loaded():
    long = "z" * 5_000

    @tool(name="pay", needs_approval=True)
    def slow(to: str, amount: int) -> str:
        """Pay."""
        made.append((to, amount))
        return long

    replies = [call("/pay", CALL), wait("T1"), load("T1"), give("done")]
    agent = Agent(ScriptedModel(replies), protocol=TicketProtocol(grace=0), tools=[slow])
    result = decide(edit, agent)
    told = [NOTES["ticket"] in message["content"] for message in asked(result.messages)]
    assert told.count(True) == 1
