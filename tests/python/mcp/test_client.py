"""Tools of MCP servers, over stdio and over HTTP, with real servers."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest

from callslip import Agent, File, Progress, ScriptedModel, ToolError, UsageError, tool
from callslip.mcp import Elicitation, MCPServer
from scripted import act, asked, finish
from serving import (  # fmt: skip
    agent_for,
    at,
    error,
    http_process,
    python,
    result,
    script,
    stdio,
    stdio_process,
)


@pytest.fixture(scope="module")
def over_stdio():
    with stdio() as server:
        yield server


@pytest.fixture(scope="module")
def over_http():
    with http_process() as (port, _), at(port) as server:
        yield server


@pytest.fixture(params=["stdio", "http"])
def server(request):
    return request.getfixturevalue(f"over_{request.param}")


def named(server):
    return {one.name: one for one in server.as_tools()}


def test_a_tool_has_the_name_description_and_schema_of_the_servers(server):
    add = named(server)["add"]
    assert add.description == "Add two numbers."
    assert add.parameters["properties"]["a"] == {
        "description": "The first",
        "title": "A",
        "type": "integer",
    }
    assert add.parameters["required"] == ["a"]


@pytest.mark.parametrize(
    ("name", "readonly", "effect"),
    [("add", True, "pure"), ("move", False, "idempotent"), ("fail", False, "once")],
)
def test_hints_say_what_a_call_does(over_stdio, name, readonly, effect):
    one = named(over_stdio)[name]
    assert (one.readonly, one.effect) == (readonly, effect)


def test_structured_results_are_json(server):
    assert result(server, "move", point={"x": 1, "y": 5}, by=2) == {"x": 3, "y": 5}


def test_several_texts_are_one_text(server):
    assert result(server, "two_texts") == "one\ntwo"


def test_a_result_may_be_large(server):
    assert result(server, "repeat", text="ä", times=1_000_000) == {"result": "ä" * 1_000_000}


def test_what_is_no_text_is_a_file_or_an_object(server):
    sound, blob = (File(b"four", media_type=kind) for kind in ("audio/wav", "x/y"))
    assert result(server, "mixed") == [
        "first",
        {"type": "image", "mime_type": "image/png", "size": 4, "data": "Zm91cg=="},
        sound,
        {
            "type": "resource",
            "uri": "mem://text",
            "mime_type": "text/plain",
            "text": "inside",
        },
        blob,
        {"type": "resource_link", "uri": "mem://link", "name": "link", "size": 9},
    ]


def test_a_failed_call_tells_the_servers_words_whole(server):
    words = "line one\n" + "long " * 300
    assert error(server, "fail", words=words) == f"Error calling tool 'fail': {words.strip()}"


def test_arguments_are_checked_before_the_server_sees_them(server):
    agent = Agent(ScriptedModel([act("move", point={"x": "one"}, by=1), finish()]), tools=[server])
    run = agent.run_sync("t").run
    assert run.tickets == []
    told = "'point.x' must be an integer: got the string \"one\""
    assert told in asked(run.messages)[2]["content"]


def test_tools_of_functions_and_servers_stand_side_by_side(over_stdio, over_http):
    @tool
    def double(n: int) -> int:
        return 2 * n

    port_prefix = at(int(over_http.name.rpartition(":")[2]), prefix="web_")
    replies = [act("double", n=4), act("add", a=1), act("web_add", a=5), finish()]
    agent = Agent(ScriptedModel(replies), tools=[double, over_stdio, port_prefix])
    results = [ticket.result for ticket in agent.run_sync("t").tickets]
    assert results == [8, {"result": "2"}, {"result": "6"}]
    port_prefix.close()


def test_tools_are_chosen_by_name_and_pattern():
    with stdio(include=["add", "t*"], exclude=["two_texts"], prefix="x_") as server:
        assert [one.name for one in server.as_tools()] == ["x_add"]


def test_a_name_that_no_tool_has_is_an_error():
    known = "it has tool_0, tool_1, tool_2, "
    for option in ("include", "exclude", "needs_approval"):
        with pytest.raises(UsageError) as raised:
            stdio("handwritten", **{option: ["tool"]}, name="files").connect_sync()
        message = f"the MCP server 'files' has no tool 'tool' ({option}=): {known}"
        assert str(raised.value).startswith(message)


def test_names_are_given_as_a_list():
    with pytest.raises(UsageError, match=r"^expected include as a list of names: got 'add': pass "):
        stdio(include="add")


def test_two_tools_of_one_name_want_a_prefix(over_stdio):
    def add(a: int) -> int:
        return a

    advice = "use a prefix for the MCP server: MCPServer.…(…, prefix='files_')"
    for tools in ([add, over_stdio], [over_stdio, add], [over_stdio, over_stdio]):
        with pytest.raises(ToolError) as raised:
            Agent(ScriptedModel([]), tools=tools)
        assert str(raised.value) == f"two tools are named 'add': {advice}"


def test_approval_is_asked_for_those_that_need_it():
    plain = {"exclude": ["tool 6"]}
    with (
        stdio("handwritten", needs_approval=["tool_[01]"], **plain) as some,
        stdio("handwritten", needs_approval=True, **plain) as every,
    ):
        asking = [one.name for one in some.as_tools() if one.needs_approval]
        assert asking == ["tool_0", "tool_1"]
        assert all(one.needs_approval for one in every.as_tools())
        with pytest.raises(UsageError, match="the tool 'tool_0' needs approval"):
            agent_for(some, ("tool_2", {})).run_sync("t")


def test_a_function_decides_which_calls_need_approval():
    def check(arguments, context):
        return "a large sum" if arguments["a"] > 10 else False

    shown = []
    with stdio("everything", include=["add"], needs_approval=check) as server:
        agent = agent_for(server, ("add", {"a": 1, "b": 2}), ("add", {"a": 20, "b": 2}))
        result = agent.run_sync("t", approve=lambda ticket: shown.append(ticket) or False)
    assert [ticket.outcome for ticket in result.tickets] == ["ok", "denied"]
    assert [(ticket.id, ticket.approval_reason) for ticket in shown] == [("T2", "a large sum")]


@pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning")
def test_one_session_serves_any_number_of_runs_loops_and_threads(over_stdio):
    seen = [result(over_stdio, "pid") for _ in range(3)]

    async def run():
        done = await agent_for(over_stdio, ("pid", {})).run("t")
        return done.tickets[0].result

    seen += [asyncio.run(run()) for _ in range(2)]

    async def inside():
        # `run_sync` in a running loop, and calls side by side.
        together = await asyncio.gather(*(run() for _ in range(5)))
        return [*together, result(over_stdio, "pid")]

    seen += asyncio.run(inside())
    thread = threading.Thread(target=lambda: seen.append(result(over_stdio, "pid")))
    thread.start()
    thread.join()
    assert len(seen) == 12
    assert len({json.dumps(one) for one in seen}) == 1


@pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning")
def test_entering_and_leaving_in_other_tasks_and_loops_works():
    server = stdio()

    async def enter_in_a_task():
        await asyncio.create_task(server.__aenter__())
        return result(server, "add", a=1)

    async def leave_in_two():
        first = asyncio.create_task(server.__aexit__(None, None, None))
        await asyncio.gather(first, asyncio.create_task(server.aclose()))

    assert asyncio.run(enter_in_a_task()) == {"result": "2"}
    assert result(server, "add", a=2) == {"result": "3"}
    asyncio.run(leave_in_two())
    expected = f"Error calling tool 'add': the MCP server '{server.name}' is closed."
    agent = agent_for(server, ("add", {"a": 1}))  # connects it again
    assert agent.run_sync("t").tickets[0].result == {"result": "2"}
    server.close()
    assert agent_ticket(agent).error == expected


def agent_ticket(agent):
    """The first ticket of one more run of an agent, whose model begins anew."""
    again = Agent(ScriptedModel([act("add", a=1), finish()]), tools=list(agent._setup.toolbox))
    return again.run_sync("t").tickets[0]


def test_leaving_a_group_of_tasks_by_an_error_leaves_the_session_in_peace(over_stdio):
    async def fail():
        async with asyncio.TaskGroup() as group:
            group.create_task(agent_for(over_stdio, ("wait", {"seconds": 30})).run("t"))
            await asyncio.sleep(0.2)
            raise LookupError

    with pytest.raises(BaseExceptionGroup):
        asyncio.run(fail())
    assert result(over_stdio, "add", a=1) == {"result": "2"}


def test_progress_is_told_to_who_watches(server):
    async def watch():
        async with agent_for(server, ("count", {"to": 3})).stream("t") as run:
            return [event async for event in run if isinstance(event, Progress)]

    told = asyncio.run(watch())
    assert [(one.tool, one.ticket_id, one.done, one.total, one.message) for one in told] == [
        ("count", "T1", 1, 3, "step 1"),
        ("count", "T1", 2, 3, "step 2"),
        ("count", "T1", 3, 3, "step 3"),
    ]


def test_all_pages_of_the_list_are_read_and_older_servers_are_spoken_to():
    with stdio("handwritten", exclude=["tool 6"]) as server:
        assert [one.name for one in server.as_tools()] == [f"tool_{n}" for n in range(6)]
        assert result(server, "tool_0") == "tool_0"
        told = json.loads(result(server, "tool_2"))
    assert told["offered"] == [[]]
    assert told["seen"][:6] == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/list",
        "tools/list",
    ]


def test_older_servers_ask_in_mid_call():
    refused = "not supported"
    with stdio("handwritten", exclude=["tool 6"]) as server:
        assert json.loads(result(server, "tool_3"))["error"]["message"] == f"Sampling {refused}"
        assert json.loads(result(server, "tool_4"))["error"]["message"] == (
            f"Elicitation {refused}"
        )
    allowed = {"sampling": async_model, "elicitation": lambda question: {"seats": 2}}
    with stdio("handwritten", exclude=["tool 6"], **allowed) as server:
        assert json.loads(result(server, "tool_2"))["offered"] == [["elicitation", "sampling"]]
        reply = json.loads(result(server, "tool_3"))["result"]
        assert (reply["content"], reply["model"]) == (
            {"type": "text", "text": "WHY?"},
            "async_model",
        )
        answer = json.loads(result(server, "tool_4"))["result"]
        assert (answer["action"], answer["content"]) == ("accept", {"seats": 2})


def test_older_servers_are_spoken_to_over_http():
    with http_process("handwritten") as (port, _), at(port, exclude=["tool 6"]) as server:
        assert result(server, "tool_0") == "tool_0"


def test_a_tool_that_no_agent_could_call_is_left_out_and_named_with_its_server(caplog):
    said = '"tool 6" cannot be a tool\'s name: it must have 1 to 128 characters, none of them blank'
    with stdio("handwritten") as server:
        assert "tool 6" not in [one.name for one in server.as_tools()]
    assert f"handwritten.py: left out the tool 'tool 6': {said}" in caplog.messages
    with pytest.raises(ToolError) as raised:
        Agent(ScriptedModel([]), tools=stdio("handwritten", include=["tool_0", "tool 6"]))
    assert str(raised.value) == (
        f"a tool of the MCP server 'handwritten.py' can't be offered: {said}: leave 'tool 6' out "
        "of include"
    )


def test_sampling_and_elicitation_are_refused_unless_allowed(server):
    assert error(server, "sample", question="Why?").startswith("Error calling tool 'sample': ")
    assert error(server, "book").startswith("Error calling tool 'book': ")


def sync_model(messages, max_tokens=None, stop=()):
    said = "; ".join(f"{one['role']}: {one['content']}" for one in messages)
    return f"[{said}] {max_tokens} {list(stop)}"


async def async_model(messages):
    return messages[-1]["content"].upper()


async def streamed_model(messages):
    for piece in ("so", " it", " is"):
        yield piece


def thread_stream(messages):
    yield from ("in ", "pieces")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (sync_model, "sync_model said [system: Be brief.; user: Why?] 50 ['END'] (endTurn)"),
        (async_model, "async_model said WHY? (endTurn)"),
        (streamed_model, "streamed_model said so it is (endTurn)"),
        (thread_stream, "thread_stream said in pieces (endTurn)"),
    ],
)
def test_a_server_that_may_asks_a_model_of_any_kind(model, said):
    with stdio(sampling=model, include=["sample"]) as server:
        assert result(server, "sample", question="Why?") == {"result": said}


def test_a_model_that_fails_in_sampling_tells_the_server_nothing(caplog):
    def model(messages):
        raise LookupError("the key sk-1234 is wrong")

    with stdio(sampling=model) as server:
        assert "sk-1234" not in error(server, "sample", question="Why?")
    assert "the model for its sampling failed" in caplog.text


def test_a_server_that_may_asks_a_person(era):
    asked = []

    def ask(question: Elicitation):
        asked.append((question, threading.current_thread() is threading.main_thread()))
        return {"seats": 4}

    async def decline(question):
        return None

    with stdio(elicitation=ask, name="trains") as server:
        assert result(server, "book") == {"result": "accept 4"}
    (question, on_main), *_ = asked
    assert (question.server, question.message, question.url) == ("trains", "How many seats?", None)
    assert question.schema["properties"]["seats"]["type"] == "integer"
    assert not on_main
    with stdio(elicitation=decline) as server:
        assert result(server, "book") == {"result": "decline"}


@pytest.mark.parametrize(
    ("answer", "action"), [(True, "accept"), ({}, "accept"), (None, "decline"), (False, "decline")]
)
def test_a_person_may_be_asked_to_open_an_address(answer, action):
    from mcp_types import ElicitRequestURLParams

    from callslip.mcp._callbacks import elicitation_callback

    asked = []

    def ask(question):
        asked.append(question)
        return answer

    params = ElicitRequestURLParams(message="Log in", url="https://login.example/x")
    given = asyncio.run(elicitation_callback(ask, server="bank")(None, params))
    assert asked == [Elicitation("bank", "Log in", {}, "https://login.example/x")]
    assert (given.action, given.content) == (action, None)


def test_headers_reach_the_server_and_so_does_a_client_of_ones_own():
    import httpx2

    with http_process() as (port, _):
        with at(port, headers={"X-Token": "abc"}) as server:
            assert result(server, "header", name="x-token") == {"result": "abc"}
        client = httpx2.AsyncClient(headers={"X-Token": "own"})
        with at(port, client=client) as server:
            assert result(server, "header", name="x-token") == {"result": "own"}
            assert server.name == f"127.0.0.1:{port}"


def test_headers_and_a_client_exclude_one_another():
    import httpx2

    message = "^expected headers or a client, not both: pass the headers to the client$"
    with pytest.raises(UsageError, match=message):
        MCPServer.http("http://x/mcp", headers={"a": "b"}, client=httpx2.AsyncClient())


@pytest.mark.parametrize("seconds", [0, -1])
def test_times_are_more_than_nothing(seconds):
    with pytest.raises(UsageError, match=f"^expected timeout .* above 0, .*: got {seconds}$"):
        stdio(timeout=seconds)


@pytest.mark.parametrize(
    ("args", "env", "message"),
    [
        ("server.py", None, "expected args as a list of texts: got a text: pass [args]"),
        (["--port", 80], None, "expected args as a list of texts: got a list with int"),
        ([], {"PORT": 80}, "expected env['PORT'] to be text: got int"),
    ],
)
def test_arguments_and_environment_are_strings(args, env, message):
    with pytest.raises(UsageError) as raised:
        MCPServer.stdio("python", args, env=env)
    assert str(raised.value) == message


def test_an_address_is_one_of_http():
    message = (
        "^expected an address that begins with http:// or https://: got localhost:80; pass it "
        "with one of them$"
    )
    with pytest.raises(UsageError, match=message):
        MCPServer.http("localhost:80")


def test_the_environment_is_what_was_given_and_little_else(monkeypatch):
    monkeypatch.setenv("OTHER_SECRET", "not for servers")
    with stdio_process(env={"GIVEN": "yes"}) as server:
        assert result(server, "environment", name="GIVEN") == {"result": "yes"}
        assert result(server, "environment", name="OTHER_SECRET") == {"result": "not set"}
        assert result(server, "environment", name="PATH") != {"result": "not set"}


CANARY = "canary-5e1f-secret"


def test_secrets_are_in_no_repr_log_error_or_message(caplog):
    # All of it, that of the SDK and of the HTTP client too.
    caplog.set_level("DEBUG")
    with http_process() as (port, _):
        servers = [
            stdio(env={"KEY": CANARY}),
            at(port, headers={"Authorization": f"Bearer {CANARY}"}),
        ]
        said = []
        for server in servers:
            with server:
                said += [error(server, "reveal")]
            said += [repr(server), server.name]
        with pytest.raises(ToolError) as raised:
            python(
                "import os, sys; sys.exit(os.environ['KEY'])", env={"KEY": CANARY}
            ).connect_sync()
        said += [str(raised.value), caplog.text]
    assert said[0] == "Error calling tool 'reveal': the key is ***"
    assert said[3] == "Error calling tool 'reveal': the key is *** or ***"
    assert "revealing ***" in caplog.text
    assert raised.match(r"its last words: \*\*\*$")
    assert all(CANARY not in text for text in said)


def test_flags_and_paths_are_no_secrets(tmp_path):
    words = f"mode fast in {tmp_path}"
    # Paths are told without the folders above them, as in every failure of a tool.
    told = f"mode fast in …/{tmp_path.name}"
    with stdio(env={"MODE": "fast", "DIR": str(tmp_path)}, include=["fail"]) as server:
        assert error(server, "fail", words=words) == f"Error calling tool 'fail': {told}"


def test_an_address_is_shown_without_its_secrets():
    address = f"http://user:{CANARY}@127.0.0.1:1/mcp?key={CANARY}"
    server = MCPServer.http(address)
    with pytest.raises(ToolError) as raised:
        server.connect_sync()
    assert CANARY not in f"{raised.value} {server!r} {server.name}"
    assert server.name == "127.0.0.1:1"


def test_the_sdk_is_imported_when_a_server_is_connected_and_not_before():
    code = (
        "import sys, callslip\n"
        "from callslip.mcp import MCPServer\n"
        "MCPServer.stdio('x'); MCPServer.http('http://x/mcp')\n"
        "print([name for name in ('mcp', 'httpx2', 'pydantic', 'anyio') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_missing_sdk_is_said_with_what_to_install(monkeypatch):
    from importlib.metadata import PackageNotFoundError

    from callslip.mcp import _sdk as _mcp_sdk

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_mcp_sdk, "version", missing)
    with pytest.raises(ToolError) as raised:
        MCPServer.stdio("python", [script("everything")])
    assert str(raised.value) == (
        "MCP needs the official SDK, which is not installed: pip install 'callslip[mcp]'"
    )
    monkeypatch.setattr(_mcp_sdk, "version", lambda name: "2.2.0")
    message = r"^expected version 2\.3 of the MCP SDK or newer: got 2\.2\.0: pip install"
    with pytest.raises(ToolError, match=message):
        MCPServer.http("http://x/mcp")
