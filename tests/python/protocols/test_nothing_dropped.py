"""Nothing that could have carried meaning for a call is dropped: it is read, or refused."""

import json

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Limits,
    OpenAPI,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    tool,
)
from scripted import finish, give, turn_of

PROTOCOLS = {"react": ReactProtocol, "chatty": ChattyProtocol, "ticket": TicketProtocol}


def written(protocol, name, arguments, **more):
    """One call in a protocol, with more keys beside it."""
    if protocol == "react":
        return json.dumps({"thought": "t", "action": name, "args": arguments, **more})
    if protocol == "chatty":
        call = {"call_id": "a", "tool_name": name, "arguments": arguments, **more}
        return f"<tool>{json.dumps([call])}</tool>"
    call = {"type": "CALL", "route": name, "payload": arguments, "description": "d", **more}
    return f"<thoughts>t</thoughts><output>{json.dumps(call)}</output>"


def read(protocol, text):
    """The reply as a whole, which every split of it must equal."""
    reply = PROTOCOLS[protocol]().parse(text)
    for size in (1, 7):
        reader = PROTOCOLS[protocol]().reader()
        for start in range(0, len(text), size):
            reader.push(text[start : start + size])
        again = reader.finish()
        assert repr(again) == repr(reply)
        assert again.repairs == reply.repairs
    return reply


def streamed(text, size):
    """A model that streams one reply, then gives up."""

    def model(messages):
        if turn_of(messages) > 0:
            yield finish("over") if "react" in text or '"thought"' in text else "over"
            return
        for start in range(0, len(text), size):
            yield text[start : start + size]

    return model


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "more",
    [
        {"body": {"id": 3}},
        {"query_params": {"limit": 3}},
        {"data": "x=1"},
        {"toolInput": {"id": 3}},
        {"request": {"id": 3}},
        {"kwargs": {"id": 3}, "headers": {"X": "1"}},
        {"target": {"id": 3}},
        {"command": "drop"},
        {"url": "/users"},
    ],
)
def test_a_key_that_may_carry_the_call_is_refused_by_name(protocol, more):
    violation = read(protocol, written(protocol, "look", {}, **more)).violation
    assert violation.code == "unknown_key"
    assert all(json.dumps(key) in violation.message for key in more)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "more", [{"confidence": 0.9}, {"notes": ["a", "b"]}, {"body": {}}, {"params": None}]
)
def test_a_key_that_carries_nothing_is_dropped_with_a_record(protocol, more):
    reply = read(protocol, written(protocol, "look", {"at": 1}, **more))
    assert reply.move.calls[0].arguments == {"at": 1}
    codes = {repair.code for repair in reply.repairs}
    assert codes & {"unknown_key_dropped", "null_field"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arguments_that_are_said_twice_are_read_once(protocol):
    reply = read(protocol, written(protocol, "look", {"at": 1}, params={"at": 1}))
    assert reply.move.calls[0].arguments == {"at": 1}
    assert read(protocol, written(protocol, "look", {"at": 1}, params={"at": 2})).violation


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_model_is_told_which_key_was_left_out(protocol):
    made = []

    @tool
    def look(at: int) -> int:
        """Look."""
        made.append(at)
        return at

    over = {"react": finish("ok"), "chatty": "ok", "ticket": give("ok")}[protocol]
    model = ScriptedModel([written(protocol, "look", {"at": 1}, rationale="calm"), over])
    result = Agent(model, tools=[look], protocol=protocol).run_sync("go")
    assert (made, result.value) == ([1], "ok")
    assert any(
        "rationale" in message["content"]
        for message in result.messages
        if message["role"] == "user"
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_argument_beside_the_arguments_is_no_remark(protocol):
    made = []

    @tool
    def weather(city: str, unit: str = "celsius") -> str:
        """Tell the weather."""
        made.append(unit)
        return unit

    over = {"react": finish("ok"), "chatty": "ok", "ticket": give("ok")}[protocol]
    model = ScriptedModel([written(protocol, "weather", {"city": "Oslo"}, Unit="kelvin"), over])
    result = Agent(model, tools=[weather], protocol=protocol).run_sync("go")
    assert made == []
    assert result.value == "ok"
    assert any(
        '"Unit"' in message["content"] for message in result.messages if message["role"] == "user"
    )


CACHE = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/cache": {"delete": {"operationId": "clear", "responses": {"200": {"description": "ok"}}}},
        "/users": {
            "get": {"operationId": "list", "responses": {"200": {"description": "ok"}}},
            "post": {"operationId": "add", "responses": {"200": {"description": "ok"}}},
        },
    },
}


@pytest.mark.parametrize(
    ("route", "method", "made"),
    [
        ("/cache", "GET", []),
        ("/cache", "delete", ["clear"]),
        ("DELETE /cache", "GET", []),
        ("DELETE /cache", "DELETE", ["clear"]),
        ("/users", "GET", ["list"]),
        ("/users", "POST", ["add"]),
        ("clear", "GET", []),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_method_beside_the_route_is_the_method(route, method, made, stream):
    called = []
    handlers = {
        name: lambda name=name: called.append(name) or "ok" for name in ("clear", "list", "add")
    }
    reply = {"type": "CALL", "method": method, "route": route, "payload": {}, "description": "d"}
    text = f"<thoughts>t</thoughts><output>{json.dumps(reply)}</output>"
    if stream:

        def model(messages):
            first = not turn_of(messages) > 0
            whole = text if first else give("ok")
            yield from (whole[start : start + 9] for start in range(0, len(whole), 9))

    else:
        model = ScriptedModel([text, give("ok")])
    api = OpenAPI(CACHE, handlers=handlers)
    Agent(model, tools=[api], protocol="ticket").run_sync("go")
    assert called == made


ANOTHER = '[{"call_id": "b", "tool_name": "mark", "arguments": {"what": "second"}}]'
FIRST = '[{"call_id": "a", "tool_name": "mark", "arguments": {"what": "first"}}]'


@pytest.mark.parametrize("end", ["", "</tol>", "<tool/>", "</tools", "[/tool]", "<|tool_end|>"])
@pytest.mark.parametrize(
    "between",
    [
        "\nNow the second.\n",
        "\nTOOL_EXECUTION_RESULT\nok\n",
        "\nUser: go on\n",
        " and then ",
        "\n---\n",
    ],
)
@pytest.mark.parametrize("size", [0, 1, 11])
def test_blocks_with_text_between_are_two_moves_whatever_ends_the_first(end, between, size):
    made = []

    @tool
    def mark(what: str) -> str:
        """Mark."""
        made.append(what)
        return what

    text = f"<tool>{FIRST}{end}{between}<tool>{ANOTHER}</tool>"
    assert read("chatty", text).violation.code in {"multiple_actions", "empty"}
    model = streamed(text, size) if size else ScriptedModel([text, "over"])
    Agent(model, tools=[mark], protocol="chatty").run_sync("go")
    assert made == []


@pytest.mark.parametrize("size", [0, 1, 13])
def test_adjacent_blocks_are_one_list_streamed_and_whole(size):
    made = []

    @tool
    def mark(what: str) -> str:
        """Mark."""
        made.append(what)
        return what

    text = f"<tool>{FIRST}</tool>\n\n<tool>{ANOTHER}</tool>"
    model = streamed(text, size) if size else ScriptedModel([text, "over"])
    Agent(model, tools=[mark], protocol="chatty").run_sync("go")
    assert sorted(made) == ["first", "second"]


@pytest.mark.parametrize("size", [0, 1, 5, 1000])
@pytest.mark.parametrize(
    "rest", [', "append": true}', '\n, "append": true}}', '"append": true}', '{"append": true}']
)
def test_members_behind_the_closed_object_are_not_lost(size, rest):
    made = []

    @tool
    def write(path: str, append: bool = False) -> str:
        """Write."""
        made.append(path)
        return path

    text = '{"thought": "t", "action": "write", "args": {"path": "x"}}' + rest
    model = streamed(text, size) if size else ScriptedModel([text, finish("over")])
    Agent(model, tools=[write], protocol="react").run_sync("go")
    assert made == []


def test_a_stream_is_stopped_soon_after_its_move():
    text = '{"thought": "t", "action": "FINISH", "final_answer": "a", "task_successful": true}'
    taken = []

    def model(messages):
        yield text
        for number in range(100):
            taken.append(number)
            yield f"\nObservation {number}"

    assert Agent(model, protocol="react").run_sync("go").value == "a"
    assert len(taken) <= 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "around",
    [
        ("'", "'"),
        ('"', '"'),
        ("print('", "')"),
        ("print(repr('", "'))"),
        ('reply = """\n', '\n"""'),
        ("json.loads('\\n", "\\n')"),
        ("“", "”"),
        ("Message(content='", "')"),
    ],
)
def test_a_move_in_quotes_is_a_text_about_one(protocol, around):
    opening, closing = around
    text = written(protocol, "look", {"at": 1})
    if protocol == "ticket":
        payload = text.partition("<output>")[2].removesuffix("</output>")
        replies = [f"<thoughts>t</thoughts><output>{opening}{payload}{closing}</output>"]
    elif protocol == "chatty":
        payload = text.removeprefix("<tool>").removesuffix("</tool>")
        replies = [f"<tool>{opening}{payload}{closing}</tool>", f"{opening}{text}{closing}"]
    else:
        replies = [f"{opening}{text}{closing}", f"So:\n{opening}{text}{closing}\nThat is it."]
    for reply in replies:
        assert read(protocol, reply).violation.code == "quoted_move", reply


def test_a_streamed_move_in_quotes_is_not_made():
    made = []

    @tool
    def look(at: int) -> int:
        """Look."""
        made.append(at)
        return at

    text = 'print(\'{"thought": "t", "action": "look", "args": {"at": 1}}\')'
    for size in (1, 4, 61, 200):
        Agent(streamed(text, size), tools=[look], protocol="react").run_sync("go")
    assert made == []
    limits = Limits(max_violations=1)
    Agent(
        ScriptedModel([text, finish("x")]), tools=[look], protocol="react", limits=limits
    ).run_sync("go")
    assert made == []
