"""MCP servers that die, hang, write nonsense or are not there; and what is left of them."""

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from callslip import ToolError, UsageError
from callslip._runtime import tool_attempts
from callslip.mcp import MCPServer
from serving import (
    SERVERS,
    agent_for,
    at,
    error,
    eventually,
    free_port,
    http_process,
    is_running,
    python,
    result,
    start_http,
    stdio,
    stdio_process,
    stop,
    tickets,
)


def pid_of(server):
    return int(result(server, "pid")["result"])


def timed_errors(server, kill, calls=3):
    """Errors of calls under way while a server is killed, and the seconds that they took."""

    async def one(number):
        done = await agent_for(server, ("wait", {"seconds": 60, "note": str(number)})).run("t")
        return done.tickets[0].error, time.monotonic()

    async def main():
        running = [asyncio.create_task(one(number)) for number in range(calls)]
        await at_work(server, {str(number) for number in range(calls)})
        killed = time.monotonic()
        kill()
        return [(error, at - killed) for error, at in await asyncio.gather(*running)]

    return asyncio.run(main())


async def at_work(server, notes):
    """Wait until the server says that it is at these calls."""
    until = time.monotonic() + 60
    while not notes <= set((await history(server))["calls"]):
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


async def history(server):
    done = await agent_for(server, ("history", {})).run("t")
    return done.tickets[0].result


def test_a_process_killed_in_mid_call_fails_its_calls_at_once_and_is_started_anew(era):
    with stdio(name="files") as server:
        first = pid_of(server)
        ended = timed_errors(server, lambda: os.kill(first, signal.SIGKILL))
        assert [words for words, _ in ended] == [
            "Error calling tool 'wait': the MCP server 'files' was lost during the call, which may "
            "have taken effect."
        ] * 3
        assert max(seconds for _, seconds in ended) < 30
        second = pid_of(server)
        assert second != first
        # What was under way is not repeated.
        assert result(server, "history") == {"calls": [], "cancelled": []}
        assert not is_running(first)
    assert eventually(lambda: not is_running(second))


def test_a_server_over_http_killed_in_mid_call_fails_its_calls_at_once(era):
    port = free_port()
    process = start_http("everything", port)
    with at(port, name="web") as server:
        assert pid_of(server) == process.pid
        ended = timed_errors(server, lambda: stop(process))
        for words, _ in ended:
            assert words.startswith(
                "Error calling tool 'wait': the MCP server 'web' was lost during the call, which "
                "may have taken effect"
            )
        assert max(seconds for _, seconds in ended) < 30
        refused = (
            "Error calling tool 'pid': the MCP server 'web' can't be connected again: "
            "ConnectError: All connection attempts failed."
        )
        assert error(server, "pid") == refused
        assert error(server, "pid") == refused
        process = start_http("everything", port)
        try:
            assert pid_of(server) == process.pid
            # One that is gone while nothing is under way is found out by the next call, which has
            # not reached it, and so may be made once more.
            stop(process)
            process = start_http("everything", port)
            assert pid_of(server) == process.pid
        finally:
            stop(process)


def test_a_server_that_dies_while_nothing_is_under_way_is_started_by_the_next_call():
    with stdio_process() as server:
        first = pid_of(server)
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: not sessions_of(server))
        assert not is_running(first)
        assert pid_of(server) != first


def test_a_session_that_the_server_has_forgotten_is_begun_anew():
    import urllib.request

    with http_process("handwritten") as (port, _), at(port, exclude=["tool 6"]) as server:
        assert result(server, "tool_0") == "tool_0"
        urllib.request.urlopen(f"http://127.0.0.1:{port}/forget", data=b"{}").close()
        assert result(server, "tool_0") == "tool_0"


def test_a_call_that_is_refused_is_said_with_its_status():
    with (
        http_process("handwritten") as (port, _),
        at(port, exclude=["tool 6"], name="web") as server,
    ):
        assert error(server, "tool_3") == (
            "Error calling tool 'tool_3': the MCP server 'web' refused the call: HTTP status 503 "
            "Service Unavailable."
        )
        assert result(server, "tool_0") == "tool_0"


def test_a_server_that_ends_itself_is_quoted():
    with stdio(name="files") as server:
        assert error(server, "end_with", words="disk is full") == (
            "Error calling tool 'end_with': the MCP server 'files' was lost during the call, which "
            "may have taken effect: its last words: disk is full."
        )


@pytest.mark.parametrize(
    ("options", "attempts"),
    [({}, 1), ({"repeatable": ["end_*"]}, 3), ({"repeatable": True, "retries": 1}, 2)],
    ids=str,
)
def test_calls_that_may_be_repeated_are_tried_again(monkeypatch, options, attempts):
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.0)
    with stdio(name="files", **options) as server:
        (ticket,) = tickets(server, ("end_with", {"words": "disk is full"}))
        assert (ticket.outcome, ticket.attempts) == ("error", attempts)
        again = f" The call was tried {attempts} times." if attempts > 1 else ""
        assert ticket.error.endswith(f"its last words: disk is full.{again}")


def test_hints_say_which_calls_may_be_repeated(monkeypatch):
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.0)
    with http_process() as (port, process), at(port, name="web") as server:
        by_name = {one.name: one for one in server.as_tools()}
        assert [by_name[name].retries for name in ("add", "move", "pid")] == [2, 2, 0]
        assert result(server, "add", a=1, b=2) == {"result": "3"}
        stop(process)
        asked = [("add", {"a": 1, "b": 2}), ("pid", {})]
        assert [one.attempts for one in tickets(server, *asked)] == [3, 1]
    with pytest.raises(UsageError, match="expected retries to be a whole number from 0: got None"):
        stdio(retries=None)


def test_a_command_that_is_not_there_is_said_when_the_agent_is_made():
    server = MCPServer.stdio("no-such-server", ["--token=canary"])
    with pytest.raises(ToolError) as raised:
        agent_for(server)
    assert str(raised.value) == (
        "the MCP server 'no-such-server' can't be started: FileNotFoundError: [Errno 2] No such "
        "file or directory: 'no-such-server'; pass an installed program, and its arguments as a "
        "list beside it"
    )


def test_a_server_that_ends_at_once_is_said_with_its_last_words():
    began = time.monotonic()
    with pytest.raises(ToolError) as raised:
        python("raise SystemExit('no configuration found')").connect_sync()
    assert str(raised.value) == (
        "the MCP server 'odd' can't be connected: connection closed; its last words: no "
        "configuration found"
    )
    assert time.monotonic() - began < 30


def test_an_address_where_nobody_listens_is_said():
    port = free_port()
    with pytest.raises(ToolError) as raised:
        at(port, name="web").connect_sync()
    assert str(raised.value).startswith(
        "the MCP server 'web' can't be connected: ConnectError: All connection attempts failed "
        f"(127.0.0.1:{port}: "
    )
    assert "check that a server listens there" in str(raised.value)


def test_an_address_that_refuses_is_said_with_its_status():
    code = """
        from http.server import BaseHTTPRequestHandler, HTTPServer
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_error(401)
            def log_message(self, *args): pass
        HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
    """
    port = free_port()
    code = textwrap.dedent(code).replace("PORT", str(port))
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        # Until it listens it is an address where nobody does.
        assert eventually(lambda: "401" in refusal(at(port, name="web")))
        assert refusal(at(port, name="web")) == (
            "the MCP server 'web' can't be connected: server returned an error response; HTTP "
            "status 401 Unauthorized"
        )
    finally:
        stop(process)


def refusal(server):
    with pytest.raises(ToolError) as raised:
        server.connect_sync()
    return str(raised.value)


def test_a_server_that_does_not_answer_is_given_up_in_time():
    began = time.monotonic()
    with pytest.raises(ToolError) as raised:
        python("import time; time.sleep(120)", connect_timeout=0.5).connect_sync()
    assert 0.4 < time.monotonic() - began < 30
    assert str(raised.value) == (
        "the MCP server 'odd' can't be connected: it did not answer within 0.5 seconds"
    )


def test_nonsense_on_standard_output_is_said_and_not_printed(capfd, caplog):
    code = "import time; print('Hello!'); print('{}', flush=True); time.sleep(60)"
    with pytest.raises(ToolError) as raised:
        python(code, connect_timeout=3.0).connect_sync()
    assert str(raised.value) == (
        "the MCP server 'odd' can't be connected: it did not answer within 3 seconds; it sent "
        "something that is not an MCP message: standard output is for the protocol alone"
    )
    assert "odd: sent something that is not an MCP message" in caplog.messages
    assert capfd.readouterr() == ("", "")


def test_nonsense_between_messages_does_no_harm():
    with python(NOISY.replace("SERVERS", repr(str(SERVERS)))) as server:
        assert result(server, "tool_0") == "tool_0"


NOISY = """
import sys
sys.path.insert(0, SERVERS)
import handwritten
handwritten.TOOLS = handwritten.TOOLS[:1]
plain = handwritten.reply_to
def noisy(message):
    print("debug: got", message["method"])
    return plain(message)
handwritten.reply_to = noisy
handwritten.speak_stdio()
"""


def test_a_call_has_a_time_and_the_server_is_told_that_it_is_over(era):
    with stdio(timeout=2.0, name="files") as server:
        began = time.monotonic()
        assert error(server, "wait", seconds=30, note="slow") == (
            "Error calling tool 'wait': the MCP server 'files' gave no result within 2 seconds."
        )
        assert time.monotonic() - began < 20
        assert eventually(lambda: result(server, "history")["cancelled"] == ["slow"])


def test_time_stands_still_while_a_person_is_asked():
    def think(question):
        time.sleep(2.2)
        return {"seats": 2}

    options = {"timeout": 2.0, "elicitation": think}
    with stdio(**options) as new, stdio("handwritten", exclude=["tool 6"], **options) as old:
        assert result(new, "book") == {"result": "accept 2"}
        assert '"seats":2' in result(old, "tool_4").replace(" ", "")
        assert error(old, "tool_1") == (
            "Error calling tool 'tool_1': the MCP server 'handwritten.py' gave no result within "
            "2 seconds."
        )


def test_a_run_that_is_cancelled_cancels_its_call_at_the_server_and_nothing_else(era):
    with http_process() as (port, _), stdio() as over_stdio, at(port) as over_http:
        for server in (over_stdio, over_http):
            asyncio.run(cancel_one_of_two(server))


async def cancel_one_of_two(server):
    given_up = asyncio.create_task(
        agent_for(server, ("wait", {"seconds": 120, "note": "given up"})).run("t")
    )
    await at_work(server, {"given up"})
    kept = asyncio.create_task(agent_for(server, ("wait", {"seconds": 1, "note": "kept"})).run("t"))
    await at_work(server, {"given up", "kept"})
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert (await kept).tickets[0].result == {"result": "waited kept"}

    until = time.monotonic() + 60
    while (
        "given up" not in (seen := await history(server))["cancelled"] and time.monotonic() < until
    ):
        await asyncio.sleep(0.02)
    assert seen == {"calls": ["given up", "kept"], "cancelled": ["given up"]}


def test_connecting_that_is_cancelled_leaves_nothing_behind(tmp_path):
    noted = tmp_path / "pid"
    code = f"import os, time; open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    server = python(code)

    async def main():
        connecting = asyncio.create_task(server.connect())
        while not (noted.exists() and noted.read_text()):
            await asyncio.sleep(0.01)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await server.aclose()

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 50
    assert not is_running(int(noted.read_text()))
    assert sessions_of(server) == []


def test_standard_error_goes_to_the_log_a_line_a_record(caplog, capfd):
    caplog.set_level(logging.INFO, logger="callslip.mcp")
    long = "x" * 10_000
    with stdio(name="files") as server:
        result(server, "write_errors", lines=["one", "two", "", long, "ä"])
        assert eventually(lambda: "files: ä" in caplog.messages)
    seen = [text for text in caplog.messages if text.startswith("files: ")]
    assert seen[:2] == ["files: one", "files: two"]
    assert seen[2:] == [f"files: {'x' * 4096}…", "files: ä"]
    assert {record.name for record in caplog.records if record.message in seen} == {"callslip.mcp"}
    assert capfd.readouterr() == ("", "")


def test_closing_ends_the_process_and_what_it_has_started():
    server = stdio_process().connect_sync()
    own, child = pid_of(server), int(result(server, "spawn_child")["result"])
    threads = set(threading.enumerate())
    server.close()
    server.close()
    assert eventually(lambda: gc.collect() >= 0 and not is_running(own))
    os.kill(child, signal.SIGKILL)
    assert set(threading.enumerate()) <= threads


def test_closing_does_not_wait_for_a_server_that_does_not_answer(monkeypatch):
    from callslip.mcp import _session as _mcp_session

    monkeypatch.setattr(_mcp_session, "_PATIENCE", 0.5)
    with http_process("handwritten") as (port, _):
        server = MCPServer.http(f"http://127.0.0.1:{port}/slow", exclude=["tool 6"])
        with server:
            assert result(server, "tool_0") == "tool_0"
            began = time.monotonic()
        assert 0.4 < time.monotonic() - began < 60
        assert sessions_of(server) == []


def test_a_server_that_nobody_has_any_more_is_ended():
    server = stdio_process().connect_sync()
    own = pid_of(server)
    del server
    gc.collect()
    assert eventually(lambda: gc.collect() >= 0 and not is_running(own))


def test_a_forked_child_has_sessions_of_its_own():
    with stdio_process() as server:
        own = pid_of(server)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            # pragma: no cover
            said = "failed"
            try:
                said = str(pid_of(server))
                server.close()
            finally:
                os.write(writing, said.encode())
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            other = pipe.read()
        assert os.waitpid(child, 0)[1] == 0
        assert other.isdigit()
        assert int(other) != own
        assert pid_of(server) == own


def run_script(code, *args):
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=Path(__file__).parents[2] / "support",
    )
    return done, time.monotonic() - began


def test_a_program_that_ends_after_its_last_await_ends_its_servers_quietly():
    code = """
        import asyncio, sys
        from serving import at, agent_for, stdio_process

        async def main():
            options = {"exclude": ["tool 6"]}
            if len(sys.argv) > 1:
                server = at(int(sys.argv[1]), **options)
            else:
                server = stdio_process("handwritten", **options)
            done = await agent_for(server, ("tool_5", {})).run("t")
            print(done.tickets[0].result)

        asyncio.run(main())
    """
    with http_process("handwritten") as (port, _):
        for args in [()] * 2 + [(str(port),)]:
            done, _ = run_script(code, *args)
            assert (done.returncode, done.stderr) == (0, "")
            pid = int(done.stdout)
            assert eventually(lambda pid=pid, lives=bool(args): is_running(pid) == lives)


def test_a_program_that_ends_in_mid_call_does_not_wait_for_it():
    code = """
        import asyncio
        from serving import agent_for, stdio_process

        async def main():
            server = stdio_process()
            run = asyncio.create_task(agent_for(server, ("wait", {"seconds": 300})).run("t"))
            await asyncio.sleep(0.3)

        asyncio.run(main())
    """
    done, seconds = run_script(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert seconds < 150


def test_connecting_inside_a_call_on_the_private_loop_is_refused():
    from callslip import Agent, ScriptedModel, tool
    from scripted import act, finish

    server = stdio_process()

    @tool
    async def delegate() -> str:
        return Agent(ScriptedModel([finish()]), tools=server).run_sync("t").value

    agent = Agent(ScriptedModel([act("delegate"), finish()]), tools=[delegate])
    assert agent.run_sync("t").tickets[0].error == (
        "Error calling tool 'delegate': ToolError: the MCP server 'everything.py' is not connected "
        "yet, and can't be while a call is made on the private event loop: connect it before the "
        "run."
    )


def test_calls_side_by_side_share_one_attempt_to_connect():
    port = free_port()
    process = start_http("everything", port)
    with at(port, name="web") as server:
        stop(process)

        async def main():
            runs = [agent_for(server, ("pid", {})).run("t") for _ in range(5)]
            return {done.tickets[0].outcome for done in await asyncio.gather(*runs)}

        assert asyncio.run(main()) == {"error"}
        process = start_http("everything", port)
        try:
            assert asyncio.run(main()) == {"ok"}
            assert len(sessions_of(server)) == 1
        finally:
            stop(process)


def sessions_of(server):
    from callslip.mcp._session import live_sessions

    return [one for one in live_sessions if one._transport.name == server.name]
