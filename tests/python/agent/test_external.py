"""Calls whose results come from outside: declared tools, which nothing calls."""

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

import pytest

from callslip import (
    Agent,
    Context,
    Event,
    Fail,
    File,
    Limits,
    RunCancelled,
    TicketStore,
    Tool,
    ToolError,
    UsageError,
    replay,
    tool,
)
from scripted import (
    act,
    asked,
    block,
    call,
    call_once,
    delegate,
    finish,
    give,
    patient,
    results_of,
    task_of,
    turn_of,
    wait,
)

PROTOCOLS = ["react", "chatty", "ticket"]
LONG = 30


@dataclass
class Address:
    street: str
    number: int


@tool(external=True)
def pick_date(title: str) -> date:
    """Let the user pick a date."""
    raise AssertionError("it is never called")


@tool(external=True)
def ship_to(reason: str) -> Address:
    """Ask where to ship."""
    raise AssertionError("it is never called")


@tool(external=True)
def anything(about: str = ""):
    """Ask for anything."""
    raise AssertionError("it is never called")


def say(script):
    """Return a model that says these in turn, in every run."""
    return lambda messages: script[turn_of(messages)]


def agent_of(protocol, name, arguments, **options):
    model = say(call_once(protocol, name, arguments))
    tools = [pick_date, ship_to, anything]
    return Agent(model, protocol=patient(protocol), tools=tools, **options)


def drive_async(agent, task, act_on):
    """Run on an event loop, and act on the run once a call of the tree awaits a result."""

    async def main():
        async with agent.stream(task) as run:
            async for event in run:
                if isinstance(event, Event) and run.awaiting_result:
                    act_on(run.run)
        return run.result

    return asyncio.run(asyncio.wait_for(main(), LONG))


def drive_sync(agent, task, act_on):
    """Run in a thread, and act on the run from this one."""
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(agent.run_sync, task)
        while not (waiting := agent.store.tickets(awaiting="result")):
            assert not working.done(), working.result()
        root = waiting[0].run_id.partition(".")[0]
        act_on(agent.store.run(root))
        return working.result(LONG)


DRIVERS = {"async": drive_async, "sync": drive_sync}


@pytest.fixture(params=DRIVERS)
def drive(request):
    return DRIVERS[request.param]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_is_the_result_of_the_call(protocol, drive, store):
    def answer(run):
        (ticket,) = run.awaiting_result
        assert (ticket.awaiting, ticket.awaiting_approval) == ("result", False)
        assert ticket.answers == {"type": "string", "format": "date"}
        run.answer(ticket, date(2026, 12, 1), by="ann")

    agent = agent_of(protocol, "pick_date", {"title": "x"}, store=store)
    result = drive(agent, "go", answer)
    (ticket,) = result.tickets
    assert (result.value, ticket.result, ticket.outcome) == ("done", "2026-12-01", "ok")
    assert (ticket.awaiting, ticket.attempts) == (None, 1)
    (completed,) = [event for event in result.run.log if event.kind == "ticket_completed"]
    assert completed.by == "ann"
    assert any("2026-12-01" in message["content"] for message in asked(result.messages))
    assert replay(result.run).export() == result.run.export()
    assert store.tickets(awaiting="result") == []
    assert store.tickets()[0].answers == ticket.answers


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_answers_in_both_drivers(protocol, is_async):
    seen = []

    def answer(ticket):
        seen.append(ticket)
        return "2026-12-01"

    async def answer_later(ticket):
        await asyncio.sleep(0)
        return answer(ticket)

    function = answer_later if is_async else answer
    agent = agent_of(protocol, "pick_date", {"title": "x"})
    results = [
        agent.run_sync("go", answer=function),
        asyncio.run(agent.run("go", answer=function)),
    ]
    assert [result.tickets[0].result for result in results] == ["2026-12-01"] * 2
    assert [ticket.arguments for ticket in seen] == [{"title": "x"}] * 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_failure_from_outside_is_read_by_the_model(protocol, drive, store):
    agent = agent_of(protocol, "anything", {}, store=store)
    result = drive(agent, "go", lambda run: run.answer("T1", error="the farm is full."))
    (ticket,) = result.tickets
    assert ticket.outcome == "error"
    assert ticket.error == "Error calling tool 'anything': the farm is full."
    assert replay(result.run).export() == result.run.export()


def test_a_function_that_fails_answers_with_its_words():
    def answer(ticket):
        raise Fail("nobody is there")

    async def answer_later(ticket):
        return answer(ticket)

    for function in (answer, answer_later):
        result = agent_of("react", "anything", {}).run_sync("go", answer=function)
        assert result.tickets[0].error == "Error calling tool 'anything': nobody is there."


def test_a_function_is_asked_again_with_the_problems():
    problems = []

    def answer(ticket, problem=None):
        problems.append(problem)
        return {"street": "Main"} if problem is None else {"street": "Main", "number": 5}

    result = agent_of("react", "ship_to", {"reason": "x"}).run_sync("go", answer=answer)
    assert result.tickets[0].result == {"street": "Main", "number": 5}
    assert len(problems) == 2
    assert "number" in problems[1]


def test_a_function_that_cannot_be_asked_again_ends_the_run():
    agent = agent_of("react", "ship_to", {"reason": "x"})
    with pytest.raises(UsageError, match="'answer' lacks the required property 'number'"):
        agent.run_sync("go", answer=lambda ticket: {"street": "Main"})


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (5, ["must be an object"]),
        ({"street": 5, "town": "X"}, ["'answer.street'", "'number'", "'town'"]),
        ({"street": "Main", "number": "many"}, ["'answer.number' must be an integer"]),
    ],
)
def test_a_wrong_answer_names_every_problem_and_the_ticket_waits(value, problems, drive, store):
    def answer(run):
        with pytest.raises(UsageError) as caught:
            run.answer("T1", value)
        for problem in ("T1", "still awaits its result", *problems):
            assert problem in str(caught.value)
        assert [ticket.id for ticket in run.awaiting_result] == ["T1"]
        run.answer("T1", Address("Main", 5))

    result = drive(agent_of("react", "ship_to", {"reason": "x"}, store=store), "go", answer)
    assert result.tickets[0].result == {"street": "Main", "number": 5}


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        (object(), {}, "expected a result with values of JSON"),
        ("x", {"error": "y"}, "got both"),
        (None, {"error": " "}, "blank reason"),
        (None, {"error": 5}, "error"),
        ("x", {"by": " "}, "expected by to be a name"),
    ],
)
def test_wrong_arguments_change_nothing(value, options, words, store):
    def answer(run):
        with pytest.raises(UsageError, match=words):
            run.answer("T1", value, **options)
        run.answer("T1", None)

    result = drive_async(agent_of("react", "anything", {}, store=store), "go", answer)
    assert (result.tickets[0].outcome, result.tickets[0].result) == ("ok", None)


@pytest.mark.parametrize("value", ["größer 😀\u202e\0", "x" * 300_000, [1, {"a": [None, 1e300]}]])
def test_answers_keep_every_character(value, drive, store):
    agent = agent_of("chatty", "anything", {}, store=store, limits=Limits(result_bytes=1_000_000))
    result = drive(agent, "go", lambda run: run.answer("T1", value, by="bö 😀"))
    assert result.tickets[0].result == value
    assert store.run(result.run.id).tickets[0].result == value
    assert replay(result.run).export() == result.run.export()


def test_a_file_is_an_answer(store):
    file = File(b"x,y\n", name="a.csv")
    agent = agent_of("react", "anything", {}, store=store)
    result = drive_async(agent, "go", lambda run: run.answer("T1", {"the": file}))
    assert result.tickets[0].result["the"].data == b"x,y\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_a_hundred_answers_at_once_one_counts(protocol, drive, store):
    told = []

    def answer(run):
        barrier = threading.Barrier(100)

        def one(number):
            barrier.wait(LONG)
            try:
                run.answer("T1", number, by=f"n{number}")
            except UsageError as error:
                return str(error)
            return number

        with ThreadPoolExecutor(100) as pool:
            told.extend(pool.map(one, range(100)))

    result = drive(agent_of(protocol, "anything", {}, store=store), "go", answer)
    counted = [one for one in told if isinstance(one, int)]
    assert counted == [result.tickets[0].result]
    refused = [one for one in told if isinstance(one, str)]
    expected = f"got T1, which n{counted[0]} answered already"
    assert [one for one in refused if expected not in one] == []
    with pytest.raises(UsageError, match=f"n{counted[0]} answered already"):
        store.run(result.run.id).answer("T1", 7)


def test_two_of_a_block_are_answered_in_either_order(drive, store):
    for order in itertools.permutations(["a", "b"]):
        calls = [(name, "anything", {"about": name}) for name in "ab"]
        model = say([block(*calls, ("c", "anything", {"about": "$a"})), "done"])
        agent = Agent(model, protocol="chatty", tools=[anything], store=store)

        def answer(run, order=order):
            while not run.finished and len(run.awaiting_result) < 2:
                pass
            assert [ticket.id for ticket in run.awaiting_result] == ["T1", "T2"]
            # It refers to another call, so that it is not asked for yet.
            with pytest.raises(UsageError, match="but only T1, T2 can be answered"):
                run.answer("T3", "early")
            for name in order:
                run.answer({"a": "T1", "b": "T2"}[name], f"for {name}")
            while not (third := [one for one in run.awaiting_result if one.id == "T3"]):
                pass
            assert third[0].arguments == {"about": "for a"}
            run.answer("T3", "for c")

        result = drive_sync(agent, "go", answer)
        said = results_of(asked(result.messages)[2])
        assert said == {name: f"for {name}" for name in "abc"}
        assert replay(result.run).export() == result.run.export()


def test_other_calls_of_a_block_are_made_meanwhile(store):
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = say([block(("a", "anything", {}), ("l", "look", {})), "done"])
    agent = Agent(model, protocol="chatty", tools=[anything, look], store=store)

    def answer(run):
        if run.tickets[1].outcome == "ok":
            run.answer("T1", "late")

    result = drive_async(agent, "go", answer)
    assert results_of(asked(result.messages)[2]) == {"a": "late", "l": "seen"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_approval_comes_first(protocol, store, drive):
    @tool(external=True, needs_approval=True)
    def ask_bank(amount: int) -> str:
        """Ask the bank."""

    script = call_once(protocol, "ask_bank", {"amount": 5})
    agent = Agent(say(script), protocol=patient(protocol), tools=[ask_bank], store=store)

    def main():
        def decide(run):
            with pytest.raises(UsageError, match="T1, which awaits approval first"):
                run.answer("T1", "early")
            run.approve("T1", arguments={"amount": 6})

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(agent.run_sync, "go")
            while not (waiting := store.tickets(awaiting="approval")):
                assert not working.done()
            run = store.run(waiting[0].run_id)
            assert waiting[0].awaiting == "approval"
            decide(run)
            while not store.tickets(awaiting="result"):
                assert not working.done()
            with pytest.raises(UsageError, match="approved"):
                run.approve("T1")
            run.answer("T1", "fine")
            return working.result(LONG)

    result = main()
    assert result.tickets[0].arguments == {"amount": 6}
    assert result.tickets[0].result == "fine"
    assert replay(result.run).export() == result.run.export()


def test_a_denied_call_cannot_be_answered(store):
    @tool(external=True, needs_approval=True)
    def ask_bank(amount: int) -> str:
        """Ask the bank."""

    model = say([act("ask_bank", amount=5), finish()])
    agent = Agent(model, tools=[ask_bank], store=store)
    result = agent.run_sync("go", approve=lambda ticket: False, answer=lambda ticket: "x")
    assert result.tickets[0].outcome == "denied"
    with pytest.raises(UsageError, match="no ticket awaits a result"):
        result.run.answer("T1", "x")


def test_a_check_decides_whether_the_call_needs_approval():
    @tool(external=True, needs_approval=lambda arguments, context: arguments["amount"] > 5)
    def ask_bank(amount: int) -> str:
        """Ask the bank."""

    for amount, approved in ((5, []), (6, [6])):
        seen = []
        agent = Agent(say([act("ask_bank", amount=amount), finish()]), tools=[ask_bank])
        result = agent.run_sync(
            "go",
            approve=lambda ticket, seen=seen: not seen.append(ticket.arguments["amount"]),
            answer=lambda ticket: "fine",
        )
        assert (seen, result.tickets[0].result) == (approved, "fine")


def test_a_run_without_anybody_to_answer_is_refused():
    agent = agent_of("react", "anything", {})
    for start in (agent.run_sync, lambda task: asyncio.run(agent.run(task))):
        with pytest.raises(UsageError, match="'anything'|'pick_date'.*pass answer="):
            start("go")
    with pytest.raises(UsageError, match="expected answer"):
        agent.run_sync("go", answer=5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_answer_and_a_crash(protocol, compacted, moment, store, drive):
    """The log of a process that has ended while a call awaited its result."""
    logs = []

    def crash(run):
        logs.append(run.export())
        run.answer("T1", "in the first life")

    with TicketStore() as first:
        drive(agent_of(protocol, "anything", {}, store=first), "go", crash)
    run_id = store.import_run(logs[0])
    if compacted:
        store.compact(run_id)
    agent = agent_of(protocol, "anything", {}, store=store)
    (ticket,) = store.tickets(awaiting="result")
    if moment == "after":
        store.run(run_id).answer(ticket, "at rest", by="ann")
        with pytest.raises(UsageError, match="ann (has )?answered (it )?already"):
            store.run(run_id).answer(ticket, "again")
        assert store.tickets(awaiting="result") == []
        result = agent.resume_sync(run_id)
    else:
        result = agent.resume_sync(run_id, answer=lambda ticket: "at rest")
    assert [one.result for one in result.tickets] == ["at rest"]
    assert result.value == "done"
    if not compacted:
        assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cancelled_run_cancels_what_waits(protocol, drive, store):
    runs = []

    def cancel(run):
        runs.append(run)
        run.cancel()

    with pytest.raises(RunCancelled):
        drive(agent_of(protocol, "anything", {}, store=store), "go", cancel)
    (ticket,) = store.run(runs[0].id).tickets
    assert (ticket.outcome, ticket.awaiting) == ("cancelled", None)
    with pytest.raises(UsageError, match="no ticket awaits a result"):
        store.run(runs[0].id).answer("T1", "late")
    assert replay(runs[0]).export() == runs[0].export()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("asks", [False, True])
def test_a_time_limit_of_the_tool_counts_from_the_call(protocol, asks, store):
    @tool(external=True, timeout=0.2)
    def slow() -> str:
        """Take long."""

    async def never(ticket):
        await asyncio.Event().wait()

    model = say(call_once(protocol, "slow", {}))
    agent = Agent(model, protocol=patient(protocol), tools=[slow], store=store)
    options = {"answer": never} if asks else {}
    for result in (
        agent.run_sync("go", **options),
        asyncio.run(asyncio.wait_for(agent.run("go", **options), LONG)),
    ):
        (ticket,) = result.tickets
        assert ticket.outcome == "error"
        assert ticket.error.endswith("TimeoutError: no result within 0.2 seconds.")
        assert ticket.seconds >= 0.19
        assert replay(result.run).export() == result.run.export()
        with pytest.raises(UsageError, match="no ticket awaits a result"):
            result.run.answer("T1", "late")


def test_a_time_that_has_passed_at_rest_ends_the_call(store):
    @tool(external=True, timeout=0.05)
    def slow() -> str:
        """Take long."""

    agent = Agent(say([act("slow"), finish()]), tools=[slow], store=store)
    log = agent.run_sync("go").run.export().splitlines()
    opened = next(at for at, line in enumerate(log) if '"ticket_opened"' in line)
    with TicketStore() as other:
        run_id = other.import_run("\n".join(log[: opened + 1]) + "\n")
        again = Agent(say([act("slow"), finish()]), tools=[slow], store=other)
        assert again.resume_sync(run_id).tickets[0].error.endswith("within 0.05 seconds.")


def test_a_message_waits_behind_the_call(store):
    def answer(run):
        if not any(event.kind == "user_said" for event in run.log):
            run.send("and hurry")
            assert [ticket.id for ticket in run.awaiting_result] == ["T1"]
            run.answer("T1", error="the user said something else")

    result = drive_async(agent_of("chatty", "anything", {}, store=store), "go", answer)
    said = asked(result.messages)[2]["content"]
    assert "the user said something else" in said
    assert "and hurry" in said


@pytest.mark.parametrize("drive_name", DRIVERS)
def test_calls_of_child_runs_are_answered_through_the_run_above(drive_name, store):
    def model(messages):
        if task_of(messages).startswith("part"):
            return [call("/anything"), wait("T1"), give("part done")][turn_of(messages)]
        return [delegate("part"), wait("T1"), give("done")][turn_of(messages)]

    agent = Agent(model, protocol=patient("ticket"), tools=[anything], store=store)

    def answer(run):
        (ticket,) = run.awaiting_result
        assert ticket.run_id != run.id
        run.answer(ticket, "from above")

    result = DRIVERS[drive_name](agent, "go", answer)
    (child,) = result.run.children
    assert child.tickets[0].result == "from above"
    asked_of = []
    with TicketStore() as other:
        again = agent.replace(store=other)
        again.run_sync("go", answer=lambda ticket: asked_of.append(ticket.run_id) or "x")
    assert len(asked_of) == 1


def test_the_model_continues_without_the_result_in_the_ticket_protocol(store):
    script = [call("/anything"), give("done")]
    agent = Agent(say(script), protocol="ticket", tools=[anything], store=store)
    result = agent.replace(on_open_tickets="cancel").run_sync("go")
    assert (result.value, result.tickets[0].outcome) == ("done", "cancelled")
    kept = drive_async(agent, "go", lambda run: run.answer("T1", "after the end"))
    assert kept.tickets[0].result == "after the end"


def test_handing_over_tells_that_there_is_no_result(store):
    runs = []

    def leave(run):
        runs.append(run.export())
        run.cancel()

    with pytest.raises(RunCancelled):
        drive_async(agent_of("react", "anything", {}, store=store), "go", leave)
    with TicketStore() as other:
        run = other.run(other.import_run(runs[0]))
        result = Agent(say([finish("taken over")])).hand_over_sync(run)
    told = asked(result.messages)[0]["content"]
    assert "it awaited a result from outside when the conversation was handed over" in told


def test_a_tool_of_a_page_has_schemas_and_no_function():
    schema = {"type": "string", "enum": ["red", "blue"]}
    colour = Tool.from_schema(
        None,
        external=True,
        name="pick_colour",
        description="Let the user pick.",
        parameters={"properties": {"title": {"type": "string"}}},
        returns=schema,
    )
    agent = Agent(say([act("pick_colour", title="x"), finish()]), tools=[colour])
    seen = []
    result = agent.run_sync("go", answer=lambda ticket: seen.append(ticket.answers) or "red")
    assert (seen, result.tickets[0].result) == ([schema], "red")
    with pytest.raises(UsageError, match='must be one of "red" or "blue"'):
        agent.run_sync("go", answer=lambda ticket: "green")
    with pytest.raises(UsageError, match=r"call run\.answer"):
        colour()


class Desk:
    @tool(external=True)
    def sign(self, paper: str) -> bool:
        """Sign it."""


def test_a_method_is_external_once_it_is_bound():
    desk = Desk()
    assert (desk.sign.external, desk.sign.name) == (True, "sign")
    agent = Agent(say([act("sign", paper="x"), finish()]), tools=[desk.sign])
    seen = []
    agent.run_sync("go", answer=lambda ticket: seen.append(ticket.answers) or True)
    assert seen == [{"type": "boolean"}]


@pytest.mark.parametrize(
    "options",
    [
        {"effect": "pure"},
        {"reconcile": lambda context: None},
        {"retries": 2},
        {"retry_on": OSError},
        {"concurrency": 2},
        {"queue": "slow"},
    ],
)
def test_options_of_calls_are_refused(options):
    (name,) = options
    with pytest.raises(UsageError, match=f"expected no {name} with external=True"):
        tool(external=True, **options)(lambda: None)


def test_wrong_declarations_are_refused():
    with pytest.raises(UsageError, match="pass name="):
        Tool.from_schema(None, external=True, parameters={})
    with pytest.raises(UsageError, match="pass external=True too"):
        Tool.from_schema(lambda: None, name="f", parameters={}, returns={"type": "string"})
    with pytest.raises(UsageError, match="expected returns as a JSON Schema"):
        Tool.from_schema(None, external=True, name="f", parameters={}, returns=5)
    with pytest.raises(UsageError, match="expected external"):
        tool(external="yes")(pick_date)

    @tool(external=True)
    def odd() -> Context:
        """Odd."""

    with pytest.raises(ToolError, match="tool 'odd'"):
        Agent(say([finish()]), tools=[odd])


def test_logs_without_such_tools_have_none_of_the_fields(store):
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    agent = Agent(say([act("look"), finish()]), tools=[look], store=store)
    log = agent.run_sync("go").run.export()
    for field in ('"external"', '"awaits_result"', '"answered_by"', '"by"'):
        assert field not in log
    assert store.tickets()[0].awaiting is None
    assert store.tickets(awaiting="result") == store.tickets(awaiting="approval") == []
    with pytest.raises(UsageError, match="expected awaiting"):
        store.tickets(awaiting="anything")


FORMATS = {
    "date": (["2024-02-29"], ["tomorrow", "2024-02-30", "2024-2-1"]),
    "date-time": (["2024-02-29T10:00", "2024-02-29T10:00:00.5+02:00"], ["2024-02-29", "noon"]),
    "time": (["10:00", "10:00:00Z"], ["10", "25:00", "noon"]),
    "uuid": (["12345678-1234-1234-1234-123456789abc"], ["1234", "12345678-1234"]),
    "duration": (["P1D", "PT2H30M"], ["2 hours", "P"]),
    "ipv4": (["10.0.0.1"], ["10.0.0", "host"]),
}
NESTED = {
    "plain": (lambda schema: schema, lambda text: text, "'answer'"),
    "in a list": (
        lambda schema: {"type": "array", "items": schema},
        lambda text: [text],
        "'answer.0'",
    ),
    "in an object": (
        lambda schema: {"type": "object", "properties": {"at": schema}, "required": ["at"]},
        lambda text: {"at": text},
        "'answer.at'",
    ),
    "or null": (
        lambda schema: {"anyOf": [schema, {"type": "null"}]},
        lambda text: text,
        "'answer'",
    ),
}


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("name", FORMATS)
def test_results_have_the_format_of_their_type(store, name, nested):
    within, value_of, place = NESTED[nested]
    schema = within({"type": "string", "format": name})
    when = Tool.from_schema(None, external=True, name="when", parameters={}, returns=schema)
    right, wrong = FORMATS[name]
    for text in right:
        agent = Agent(say([act("when"), finish()]), tools=[when], store=store)
        problems = []

        def answer(ticket, problem=None, text=text, problems=problems):
            if problem is not None:
                problems.append(problem)
            return value_of(([*wrong, text])[len(problems)])

        run = agent.run_sync("go", answer=answer).run
        assert len(problems) == len(wrong)
        assert all(place in problem for problem in problems)
        (ticket,) = run.tickets
        assert ticket.result == value_of(text)


def test_a_date_is_a_date_whoever_answers(store):
    agent = Agent(say([act("pick_date", title="When?"), finish()]), tools=[pick_date], store=store)

    async def main():
        run = agent.start("go")
        while not run.awaiting_result:
            await asyncio.sleep(0.01)
        for one in (run, store.run(run.id)):
            with pytest.raises(UsageError, match=r"'answer' must be a date: got \"tomorrow\""):
                one.answer("T1", "tomorrow")
        run.answer("T1", date(2024, 2, 29))
        return await run

    (ticket,) = asyncio.run(main()).tickets
    assert ticket.result == "2024-02-29"


BROKEN = {
    "an unknown type": {"type": "strin"},
    "a type that is none": {"type": 5},
    "a broken pattern": {"type": "string", "pattern": "("},
    "a reference to nothing": {"$ref": "#/$defs/nope"},
    "required as text": {"type": "object", "required": "a"},
    "a broken part": {"type": "object", "properties": {"a": {"enum": 1}}},
}


@pytest.mark.parametrize("schema", BROKEN.values(), ids=BROKEN)
def test_a_broken_schema_of_results_is_refused_when_the_tool_is_made(schema):
    with pytest.raises(UsageError, match="expected returns as a JSON Schema: "):
        Tool.from_schema(None, external=True, name="f", parameters={}, returns=schema)
