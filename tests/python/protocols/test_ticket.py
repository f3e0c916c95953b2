"""The ticket protocol through the public face: each rule obeyed and broken."""

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest

from callslip import (
    Agent,
    Limits,
    ModelError,
    OpenAPI,
    ScriptedModel,
    TicketProtocol,
    replay,
    tool,
)
from scripted import call, delegate, give, load, output, task_of, turn_of, wait


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise RuntimeError(why)


TOOLS = [add, fail]


# A call has all the time that a busy machine takes; or none, where it is to be late.
PATIENT = TicketProtocol(grace=60, examples=False)
HASTY = TicketProtocol(grace=0.01, examples=False)


def run(*replies, protocol=PATIENT, tools=TOOLS, **options):
    model = ScriptedModel(list(replies))
    result = Agent(model, protocol=protocol, tools=tools, **options).run_sync("the task")
    model.assert_done()
    return result


def tickets(message):
    own, *rows = json.loads(message["content"].rpartition("Tickets:\n")[2])
    assert own == {"id": "T0", "description": "your own task: the task", "status": "IN_PROGRESS"}
    return rows


def violation(first, **options):
    result = run(first, give("done"), **options)
    assert result.tickets == []
    event = next(event for event in result.run.log if event.kind == "violated")
    return event.violation, result.messages[3]["content"]


def test_return_any_json():
    assert run(give({"rows": [1, None, "x"]})).value == {"rows": [1, None, "x"]}
    big = '{"type": "RETURN", "value": 123456789012345678901234567890}'
    assert (
        run(f"<thoughts>t</thoughts><output>{big}</output>").value == 123456789012345678901234567890
    )


def users(result):
    return [message for message in result.messages if message["role"] == "user"]


def test_every_message_of_the_runtime_ends_with_the_tickets_that_changed():
    first, called, loaded = users(
        run(call("POST /add", {"a": 1, "b": 2}, "sum it"), load("T1"), give(3))
    )
    assert first["content"].startswith("the task")
    assert tickets(first) == []
    row = {"id": "T1", "description": "sum it", "status": "COMPLETED"}
    assert tickets(called) == [row]
    assert tickets(loaded) == []
    # The others are told of in one line.
    assert loaded["content"].splitlines()[-4:-1] == ["T1 COMPLETED", "", "Tickets:"]
    assert "COMPLETED\n" not in called["content"]


# Results in the message that says they are there.


def test_a_short_result_stands_in_the_next_message():
    result = run(call("/add", {"a": 20, "b": 3}, "sum it"), give(23))
    assert result.messages[3]["content"] == (
        "Result of ticket T1:\n23\n\n"
        'Tickets:\n[{"id":"T0","description":"your own task: the task","status":"IN_PROGRESS"},'
        '{"id":"T1","description":"sum it","status":"COMPLETED"}]'
    )


def test_a_failure_stands_in_the_next_message():
    result = run(call("/fail", {"why": "no"}), give("x"))
    title, told = result.messages[3]["content"].splitlines()[:2]
    assert title == "Result of ticket T1:"
    assert json.loads(told) == {"error": "Error calling tool 'fail': RuntimeError: no."}


@tool
def page(length: int) -> str:
    """Return a text of this length."""
    return "x" * length


@pytest.mark.parametrize(("length", "shown"), [(1_998, True), (1_999, False), (50_000, False)])
def test_a_long_result_is_told_of_and_loaded(length, shown):
    result = run(call("/page", {"length": length}), load("T1"), give("x"), tools=[page])
    called, loaded = (message["content"] for message in users(result)[1:])
    assert ("x" * 100 in called) is shown
    assert ("T1 is COMPLETED: LOAD_TICKET T1 to see its result." in called) is not shown
    assert "x" * 100 in loaded


def test_inline_results_can_be_turned_off():
    protocol = TicketProtocol(inline_results=False, grace=60, examples=False)
    result = run(call("/add", {"a": 20, "b": 3}), load("T1"), give(23), protocol=protocol)
    assert result.messages[3]["content"].startswith(
        "T1 is COMPLETED: LOAD_TICKET T1 to see its result.\n\nTickets:\n"
    )
    assert result.messages[5]["content"].startswith("Result of ticket T1:\n23\n")


def test_a_result_that_comes_later_is_told_of_and_loaded():
    began, release = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        began.set()
        assert release.wait(10)
        return "late"

    def second(messages):
        assert tickets(messages[-1])[0]["status"] == "IN_PROGRESS"
        assert "is COMPLETED" not in messages[-1]["content"]
        release.set()
        for _ in range(1000):
            if run_now.tickets[0].status == "COMPLETED":
                break
            time.sleep(0.01)
        return call("/quick")

    @tool
    async def quick() -> int:
        """Return at once."""
        return 2

    async def main():
        nonlocal run_now
        model = ScriptedModel([call("/slow"), second, load("T1"), give("x")])
        agent = Agent(model, protocol=HASTY, tools=[slow, quick])
        async with agent.stream("the task") as run:
            run_now = run.run
            async for _ in run:
                pass
            return run.result

    run_now = None
    result = asyncio.run(main())
    text = result.messages[5]["content"]
    assert "T1 is COMPLETED: LOAD_TICKET T1 to see its result." in text
    assert "Result of ticket T2:\n2\n" in text
    assert [row["id"] for row in tickets(result.messages[5])] == ["T1", "T2"]
    assert '"late"' in result.messages[7]["content"]


# What a message lists.


def test_a_message_lists_what_changed_and_what_is_in_progress():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        assert release.wait(10)
        return "late"

    def end(_messages):
        release.set()
        return wait("T4")

    @tool
    async def quick(n: int) -> int:
        """Return at once."""
        return n

    calls = [call("/quick", {"n": n}) for n in range(7)]
    model = ScriptedModel([*calls[:3], call("/slow"), *calls[3:], end, give("x")])
    agent = Agent(model, protocol=HASTY, tools=[slow, quick])
    result = asyncio.run(agent.run("the task"))
    listed = [
        ([row["id"] for row in tickets(message)], message["content"].splitlines()[:-3])
        for message in users(result)
    ]
    assert [ids for ids, _ in listed] == [
        [],
        ["T1"],
        ["T2"],
        ["T3"],
        ["T4"],
        ["T4", "T5"],
        ["T4", "T6"],
        ["T4", "T7"],
        ["T4", "T8"],
        ["T4"],
    ]
    others = [lines[-1] for _, lines in listed]
    assert others[2:] == [
        "T1 COMPLETED",
        "T1, T2 COMPLETED",
        "T1 to T3 COMPLETED",
        "T1 to T3 COMPLETED",
        "T1 to T3, T5 COMPLETED",
        "T1 to T3, T5, T6 COMPLETED",
        "T1 to T3, T5 to T7 COMPLETED",
        "T1 to T3, T5 to T8 COMPLETED",
    ]


def test_the_last_turn_lists_all_tickets():
    sums = [call("/add", {"a": n, "b": 1}) for n in range(4)]
    result = run(*sums, give("x"), limits=Limits(turns=4))
    assert result.stop_reason == "limit"
    assert [row["id"] for row in tickets(users(result)[-1])] == ["T1", "T2", "T3", "T4"]
    assert users(result)[-1]["content"].count("Result of ticket T4") == 1


def test_the_last_turn_shows_what_was_never_loaded_and_names_no_other_move():
    pages = [call("/page", {"length": 3_000 + n}) for n in range(3)]
    result = run(*pages, give("x"), tools=[page], limits=Limits(turns=3))
    last = users(result)[-1]["content"]
    assert [last.count(f"Result of ticket T{n}:") for n in (1, 2, 3)] == [1, 1, 1]
    assert "LOAD_TICKET" not in last


def test_a_transcript_grows_with_the_calls_and_not_with_their_square():
    def characters(calls):
        sums = [call("/add", {"a": n, "b": 1}, "add one more") for n in range(calls)]
        result = run(*sums, give("x"), limits=Limits(turns=None, tickets=None))
        return sum(len(message["content"]) for message in result.messages)

    small, middle, large = (characters(calls) for calls in (20, 100, 180))
    assert large - middle < 1.1 * (middle - small)


# A call that is made once more.


def test_a_call_whose_result_was_not_loaded_is_answered_with_the_move_that_loads_it():
    made = []

    @tool
    def big(n: int) -> str:
        """Return much."""
        made.append(n)
        return "x" * 5_000

    result = run(
        call("/big", {"n": 1}), call("big", {"n": 1.0}), load("T1"), give("x"), tools=[big]
    )
    assert made == [1]
    text = result.messages[5]["content"]
    assert '{"type": "LOAD_TICKET", "ticket_id": "T1"}' in text
    assert "result you have" not in text
    event = next(event for event in result.run.log if event.kind == "violated")
    assert event.violation["code"] == "repeated"
    # It is no breach of the syntax.
    assert result.run.violations == 1
    assert replay(result.run).export() == result.run.export()


def test_a_call_that_is_still_in_progress_is_not_made_again():
    made, release = [], threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        made.append(1)
        assert release.wait(10)
        return "late"

    def end(_messages):
        release.set()
        return wait("T1")

    result = run(
        call("/slow"), call("POST /slow"), end, load("T1"), give("x"), tools=[slow], protocol=HASTY
    )
    assert made == [1]
    assert '{"type": "AWAIT", "ticket_id": "T1"}' in result.messages[5]["content"]


def test_a_call_whose_result_was_read_may_be_made_again_with_a_note():
    again = call("/add", {"a": 1, "b": 1})
    result = run(*[again] * 4, give(2))
    assert [ticket.id for ticket in result.tickets] == ["T1", "T2", "T3"]
    assert "Note on ticket T2: this is the same call" in result.messages[5]["content"]
    assert "Result of ticket T2:\n2\n" in result.messages[5]["content"]
    # Its result may have left the model's view since.
    assert "LOAD_TICKET T3 shows that result" in result.messages[9]["content"]
    assert "result you have" not in result.messages[9]["content"]


def test_a_failed_call_whose_failure_was_not_seen_names_the_move_that_shows_it():
    again = call("/fail", {"why": "no"})
    result = run(
        again,
        again,
        load("T1"),
        give("x"),
        protocol=TicketProtocol(inline_results=False, grace=60, examples=False),
    )
    assert len(result.tickets) == 1
    assert '{"type": "LOAD_TICKET", "ticket_id": "T1"}' in result.messages[5]["content"]
    event = next(event for event in result.run.log if event.kind == "violated")
    assert event.violation["code"] == "repeated_after_failure"


def test_a_repeatable_call_is_made_again_without_loading():
    @tool(repeatable=True)
    def big() -> str:
        """Return much."""
        return "x" * 5_000

    assert len(run(call("/big"), call("/big"), give("x"), tools=[big]).tickets) == 2


def test_a_task_whose_result_was_not_loaded_is_not_delegated_again():
    def reply(messages):
        task = task_of(messages)
        if task == "part":
            return give("x" * 5_000)
        move = [delegate("part"), wait("T1"), delegate("part"), load("T1"), give("x")]
        return move[turn_of(messages)]

    result = Agent(reply, protocol=PATIENT).run_sync("whole")
    assert len(result.tickets) == 1
    assert '{"type": "LOAD_TICKET", "ticket_id": "T1"}' in result.messages[7]["content"]


# Nothing is waited for after the end.


@pytest.mark.parametrize("kind", ["run", "run_sync", "stream"])
@pytest.mark.parametrize("moves", ["calls", "task", "awaited"])
def test_a_run_does_not_wait_for_the_grace(kind, moves):
    @tool
    async def quick(n: int) -> int:
        """Return at once."""
        return n

    def reply(messages):
        if task_of(messages) == "part":
            return [call("/quick", {"n": 0}), give("done")][turn_of(messages)]
        middle = {
            "calls": call("/quick", {"n": 2}),
            "task": delegate("part"),
            "awaited": wait("T1"),
        }
        return [call("/quick", {"n": 1}), middle[moves], give("x")][turn_of(messages)]

    agent = Agent(reply, protocol=TicketProtocol(grace=60, examples=False), tools=[quick])

    async def streamed():
        async with agent.stream("go") as run:
            async for _ in run:
                pass
            return run.result

    began = time.perf_counter()
    match kind:
        case "run":
            result = asyncio.run(agent.run("go"))
        case "run_sync":
            result = agent.run_sync("go")
        case _:
            result = asyncio.run(streamed())
    assert result.value == "x"
    assert time.perf_counter() - began < 30


def test_each_call_has_its_whole_grace():
    # The second call begins while the timer of the first would still be running.
    @tool
    async def nap(seconds: float) -> str:
        """Sleep."""
        await asyncio.sleep(seconds)
        return "slept"

    model = ScriptedModel(
        [call("/nap", {"seconds": 1.5}), call("/nap", {"seconds": 1.6}), give("x")]
    )
    agent = Agent(model, protocol=TicketProtocol(grace=3, examples=False), tools=[nap])
    result = asyncio.run(agent.run("go"))
    assert "Result of ticket T2" in result.messages[5]["content"]


def test_the_model_goes_on_while_a_call_is_in_progress():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        assert release.wait(60)
        return "late"

    def second(messages):
        assert tickets(messages[-1])[0]["status"] == "IN_PROGRESS"
        release.set()
        return wait("T1")

    result = run(call("/slow"), second, load("T1"), give("ok"), tools=[slow], protocol=HASTY)
    assert result.tickets[0].result == "late"
    assert "T1 is COMPLETED" in result.messages[5]["content"]
    assert '"late"' not in result.messages[5]["content"]
    assert '"late"' in result.messages[7]["content"]


def test_a_call_that_ends_within_the_grace_is_completed_in_the_next_message():
    @tool
    def quick() -> int:
        """Take a moment."""
        time.sleep(0.01)
        return 1

    result = run(call("/quick"), give(1), tools=[quick])
    assert tickets(result.messages[3])[0]["status"] == "COMPLETED"


def test_await_returns_at_once_for_a_completed_ticket():
    result = run(call("/add", {"a": 1, "b": 1}), wait("T1"), give(2))
    assert "T1 is COMPLETED" in result.messages[5]["content"]


def test_await_can_load():
    result = run(
        call("/add", {"a": 20, "b": 3}),
        wait("T1"),
        give(23),
        protocol=TicketProtocol(await_loads=True, grace=60, examples=False),
    )
    assert "Result of ticket T1:\n23" in result.messages[5]["content"]


def test_an_unknown_ticket_lists_those_there_are():
    sums = [call("/add", {"a": n, "b": 1}) for n in range(4)]
    result = run(*sums, load("T7"), give(2))
    assert "got 'T7', there are T1 to T4" in result.messages[11]["content"]
    result = run(call("/add", {"a": 1, "b": 1}), load("T7"), wait("T8"), give(2))
    assert result.run.violations == 2
    assert "T7" in result.messages[5]["content"]
    assert "T1" in result.messages[5]["content"]


def test_loading_before_completion_names_await():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        assert release.wait(60)
        return "late"

    def after(_messages):
        release.set()
        return wait("T1")

    result = run(call("/slow"), load("T1"), after, give("x"), tools=[slow], protocol=HASTY)
    text = result.messages[5]["content"]
    assert "IN_PROGRESS" in text
    assert "AWAIT" in text


def test_a_failure_is_loaded_as_an_error():
    result = run(call("/fail", {"why": "no"}), load("T1"), give("x"))
    text = result.messages[5]["content"]
    loaded = json.loads(text.split("\n")[1])
    assert loaded == {"error": "Error calling tool 'fail': RuntimeError: no."}


def test_delegation_is_refused_where_it_is_not_offered():
    move = output(type="DELEGATE", task="something else")
    found, text = violation(move, delegate=False)
    assert found["code"] == "not_offered"
    assert "DELEGATE" in text
    assert "DELEGATE" not in TicketProtocol(examples=False).system_prompt(TOOLS)


def test_an_unknown_route_names_the_nearest():
    found, text = violation(call("/ad", {"a": 1, "b": 2}))
    assert found["code"] == "unknown_tool"
    assert "/add" in text


def test_an_unknown_type():
    found, _ = violation('<output>{"type": "SEARCH", "query": "x"}</output>')
    assert found["code"]


def test_missing_thoughts_are_a_repair():
    result = run('<output>{"type": "RETURN", "value": 1}</output>')
    replied = next(event for event in result.run.log if event.kind == "model_replied")
    assert [repair["code"] for repair in replied.repairs] == ["missing_thoughts"]


def test_a_payload_as_a_string_of_json():
    result = run(call("/add", '{"a": 1, "b": 2}'), give(3))
    assert result.tickets[0].result == 3


def test_two_outputs():
    both = give(1) + "\n" + '<output>{"type": "RETURN", "value": 2}</output>'
    found, _ = violation(both)
    assert found["code"] == "multiple_actions"


def test_an_action_only_in_the_thoughts():
    found, _ = violation('<thoughts>{"type": "RETURN", "value": 1}</thoughts>')
    assert found["code"] == "no_output"


def test_an_unknown_ticket_stops_the_stream():
    text = '<thoughts>t</thoughts><output>{"type": "AWAIT", "ticket_id": "T99"' + " " * 500 + "}"
    model = ScriptedModel([text, give(1)], chunk_size=4)
    result = Agent(model, protocol="ticket", tools=TOOLS).run_sync("x")
    assert result.run.violations == 1
    assert len(model.requests[0].sent) < 90


def test_open_tickets_are_waited_for_at_the_end():
    done = []

    @tool
    def slow() -> str:
        """Take longer than the grace."""
        time.sleep(0.2)
        done.append(1)
        return "x"

    result = run(call("/slow"), give("early"), tools=[slow], protocol=HASTY)
    assert done == [1]
    assert result.tickets[0].status == "COMPLETED"
    assert result.value == "early"


def test_open_tickets_can_be_cancelled_at_the_end():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        release.wait(60)
        return "x"

    result = run(
        call("/slow"), give("early"), tools=[slow], protocol=HASTY, on_open_tickets="cancel"
    )
    release.set()
    assert result.tickets[0].outcome == "cancelled"
    assert result.tickets[0].status == "COMPLETED"


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "summary": "List pets",
                "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
            },
            "post": {
                "operationId": "addPet",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"name": {"type": "string"}},
                                "required": ["name"],
                            }
                        }
                    },
                },
            },
        },
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
            }
        },
    },
}

PETS = OpenAPI.from_dict(
    DOCUMENT,
    handlers={
        "listPets": lambda limit=10: [f"pet {number}" for number in range(limit)],
        "POST /pets": lambda name: {"name": name},
        "GET /pets/{id}": lambda id: {"id": id},  # noqa: A006
    },
)


@pytest.mark.parametrize(
    ("route", "payload", "result"),
    [
        ("GET /pets", {"limit": 1}, ["pet 0"]),
        ("listPets", {"limit": 1}, ["pet 0"]),
        ("POST /pets", {"name": "Rex"}, {"name": "Rex"}),
        ("/pets/{id}", {"id": 7}, {"id": 7}),
        ("GET /pets/{id}", {"id": 7}, {"id": 7}),
        ("GET /pets/7", {}, {"id": 7}),
        ("/pets/7", None, {"id": 7}),
        ("addPet", '{"name": "Rex"}', {"name": "Rex"}),
    ],
)
def test_routes_of_a_document(route, payload, result):
    move = output(type="CALL", route=route, payload=payload, description="d")
    ran = run(move, give("ok"), tools=PETS)
    assert ran.tickets[0].result == result


@pytest.mark.parametrize(
    ("route", "payload", "words"),
    [
        ("/pets", {}, "GET"),
        ("GET /pet", {}, "GET /pets"),
        ("POST /pets", {}, "name"),
        ("POST /pets", {"name": 1}, "string"),
        ("GET /pets/{id}", {"id": "x"}, "integer"),
        ("DELETE /pets", {}, "/pets"),
    ],
)
def test_routes_that_are_refused(route, payload, words):
    _, text = violation(call(route, payload), tools=PETS)
    assert words in text


# The whole of it.


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_template_of_ones_own_with_a_document_calls_each_operation_once(kind):
    asked = []

    def name(id):  # noqa: A002
        asked.append(id)
        return {"id": id, "name": f"Rex {id}"}

    pets = OpenAPI.from_dict(DOCUMENT, handlers={"GET /pets/{id}": name})
    template = Path(__file__).parents[3] / "examples" / "prompts" / "ticket.txt"

    def answer(messages):
        results = [m["content"].splitlines()[1] for m in messages if m["role"] == "user"][1:]
        return give(" and ".join(json.loads(result)["name"] for result in results))

    model = ScriptedModel([call("GET /pets/7"), call("/pets/{id}", {"id": 8}), answer])
    agent = Agent(
        model,
        protocol=TicketProtocol(template=template, grace=60, examples=False),
        tools=pets,
        delegate=False,
        python=False,
    )
    result = agent.run_sync("go") if kind == "sync" else asyncio.run(agent.run("go"))
    assert result.value == "Rex 7 and Rex 8"
    assert asked == [7, 8]
    assert result.run.violations == 0


@pytest.mark.parametrize("length", [3, 5_000])
def test_under_a_grammar_an_answer_is_offered_once_a_result_was_read(length):
    moves = ("CALL", "DELEGATE", "LOAD_TICKET", "AWAIT", "RETURN")
    offered = []

    def model(messages, grammar):
        offered.append([move for move in moves if f"{move}\\" in grammar.lark])
        script = [call("/page", {"length": length}), load("T1"), give("x")]
        return script[turn_of(messages)]

    protocol = TicketProtocol(first_move="call", grace=60, examples=False)
    Agent(model, protocol=protocol, tools=[page]).run_sync("go")
    every = ["CALL", "DELEGATE", "LOAD_TICKET", "AWAIT"]
    after_call = every if length > 2_000 else [*every, "RETURN"]
    assert offered == [["CALL"], after_call, [*every, "RETURN"]]


def test_an_answer_is_offered_in_the_last_turn_whatever_was_read():
    offered = []

    def model(messages, grammar):
        offered.append("RETURN" in grammar.lark)
        return [call("/page", {"length": 5_000}), give("x")][turn_of(messages)]

    protocol = TicketProtocol(first_move="call", grace=60, examples=False)
    Agent(model, protocol=protocol, tools=[page], limits=Limits(turns=1)).run_sync("go")
    assert offered == [False, True]


# Runs that an earlier version began.


def test_a_run_of_an_earlier_version_goes_on_as_it_began(tmp_path):
    kept = Path(__file__).parents[2] / "data" / "logs" / "version_1" / "ticket.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines()
    (started,) = json.loads(lines[0])["event"].values()
    document = started["setup"]["tools"]["openapi"]
    made = []

    def name(id):  # noqa: A002
        made.append(id)
        return {"id": id, "name": "Rex"}

    again = call("GET /pets/7")
    agent = Agent(
        ScriptedModel([again, load("T1"), give("x")]),
        protocol=PATIENT,
        tools=OpenAPI.from_dict(document, handlers={"getPet": name}),
        store=tmp_path / "runs.sqlite",
        delegate=False,
    )
    # As it was when it had asked after its first call.
    run_id = agent.store.import_run(lines[:7])
    result = agent.resume_sync(run_id)
    assert result.value == "x"
    assert made == [7]
    first, called, again, loaded = (message["content"] for message in users(result))
    assert "Result of" not in called + again
    assert [
        [row["id"] for row in json.loads(text.rpartition("Tickets:\n")[2])]
        for text in (first, called, again, loaded)
    ] == [[], ["T1"], ["T1", "T2"], ["T1", "T2"]]
    assert "Note on ticket T2: this is the same call" in again
    assert replay(result.run).export() == result.run.export()
    assert replay(lines).export().splitlines() == lines


def test_a_run_keeps_the_way_in_which_it_is_told(tmp_path):
    def agent(model, **options):
        return Agent(
            model,
            protocol=TicketProtocol(grace=60, **options, examples=False),
            tools=[add],
            store=tmp_path / "runs.sqlite",
        )

    first = call("/add", {"a": 1, "b": 1})
    begun = agent(ScriptedModel([first, ConnectionError("no line")]), inline_results=False)
    with pytest.raises(ModelError) as caught:
        begun.run_sync("go")
    later = agent(ScriptedModel([load("T1"), call("/add", {"a": 1, "b": 2}), give("x")]))
    result = later.resume_sync(caught.value.run.id)
    assert "LOAD_TICKET T2 to see its result" in users(result)[-1]["content"]
