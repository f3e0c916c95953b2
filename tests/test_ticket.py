"""The ticket protocol through the public face: each rule obeyed and broken."""

import json
import threading
import time

import pytest

from callslip import Agent, OpenAPI, ScriptedModel, TicketProtocol, tool
from scripted import call, give, load, output, wait


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise RuntimeError(why)


TOOLS = [add, fail]


def run(*replies, protocol="ticket", tools=TOOLS, **options):
    model = ScriptedModel(list(replies))
    result = Agent(model, protocol=protocol, tools=tools, **options).run_sync("the task")
    model.assert_done()
    return result


def tickets(message):
    return json.loads(message["content"].rpartition("Tickets:\n")[2])


def violation(first, **options):
    result = run(first, give("done"), **options)
    assert result.tickets == []
    event = next(event for event in result.run.log if event.kind == "violated")
    return event.data["violation"], result.messages[3]["content"]


def test_return_any_json():
    assert run(give({"rows": [1, None, "x"]})).value == {"rows": [1, None, "x"]}
    big = '{"type": "RETURN", "value": 123456789012345678901234567890}'
    assert (
        run(f"<thoughts>t</thoughts><output>{big}</output>").value == 123456789012345678901234567890
    )


def test_every_message_of_the_runtime_ends_with_the_ticket_list():
    result = run(call("POST /add", {"a": 1, "b": 2}, "sum it"), load("T1"), give(3))
    users = [message for message in result.messages if message["role"] == "user"]
    assert users[0]["content"].startswith("the task")
    assert tickets(users[0]) == []
    row = {"id": "T1", "description": "sum it", "status": "COMPLETED"}
    assert [tickets(message) for message in users[1:]] == [[row], [row]]
    assert "3" in users[2]["content"].splitlines()[1]


def test_the_model_goes_on_while_a_call_is_in_progress():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        assert release.wait(5)
        return "late"

    def second(messages):
        assert tickets(messages[-1])[0]["status"] == "IN_PROGRESS"
        release.set()
        return wait("T1")

    result = run(call("/slow"), second, load("T1"), give("ok"), tools=[slow])
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

    result = run(call("/quick"), give(1), tools=[quick], protocol=TicketProtocol(grace=2))
    assert tickets(result.messages[3])[0]["status"] == "COMPLETED"


def test_await_returns_at_once_for_a_completed_ticket():
    result = run(call("/add", {"a": 1, "b": 1}), wait("T1"), give(2))
    assert "T1 is COMPLETED" in result.messages[5]["content"]


def test_await_can_load():
    result = run(
        call("/add", {"a": 20, "b": 3}),
        wait("T1"),
        give(23),
        protocol=TicketProtocol(await_loads=True),
    )
    assert "Result of ticket T1:\n23" in result.messages[5]["content"]


def test_an_unknown_ticket_lists_those_there_are():
    result = run(call("/add", {"a": 1, "b": 1}), load("T7"), wait("T8"), give(2))
    assert result.run.violations == 2
    assert "T7" in result.messages[5]["content"]
    assert "T1" in result.messages[5]["content"]


def test_loading_before_completion_names_await():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        assert release.wait(5)
        return "late"

    def after(_messages):
        release.set()
        return wait("T1")

    result = run(call("/slow"), load("T1"), after, give("x"), tools=[slow])
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
    assert "DELEGATE" not in TicketProtocol().system_prompt(TOOLS)


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
    assert [repair["code"] for repair in replied.data["repairs"]] == ["missing_thoughts"]


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

    result = run(call("/slow"), give("early"), tools=[slow])
    assert done == [1]
    assert result.tickets[0].status == "COMPLETED"
    assert result.value == "early"


def test_open_tickets_can_be_cancelled_at_the_end():
    release = threading.Event()

    @tool
    def slow() -> str:
        """Wait for the test."""
        release.wait(5)
        return "x"

    result = run(call("/slow"), give("early"), tools=[slow], on_open_tickets="cancel")
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
