"""MCP servers that write bytes of any kind, die, refuse and repeat themselves: sessions go on."""

import asyncio
import base64
import itertools
import json
import random
import sys

import pytest

from callslip import ToolError
from callslip._runtime import tool_attempts
from callslip.mcp import MCPServer
from callslip.mcp._faults import ServerFailure
from callslip.mcp._incoming import _Repair
from callslip.tools import Fail
from random_cases import seeds
from serving import SERVERS, at, error, eventually, forked, http_process, python, stdio, tickets

AFTER = 120.0
"""Seconds after which a call hangs: more than the time of each."""


def call(server, name, /, **arguments):
    """What one call gives, or the failure that it raises."""

    async def one():
        try:
            return await asyncio.wait_for(server.call(name, arguments, None), AFTER)
        except Fail as failure:
            return failure

    return asyncio.run(one())


def write(server, raw, name="write"):
    return call(server, name, base64=base64.b64encode(raw).decode())


def answer(inner):
    """The bytes of an answer with these within its text."""
    before, after = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": "<id>",
            "result": {"content": [{"type": "text", "text": "<text>"}]},
        }
    ).replace('"<id>"', "<id>").split("<text>")  # fmt: skip
    return before.encode() + inner + after.encode() + b"\n"


def some_bytes(draw, most=200):
    return draw.randbytes(draw.randrange(most))


def some_message(draw):
    """What looks like a message, with some of its fields missing or of other types."""
    fields = {
        "jsonrpc": ["2.0", "2.0", "2.0", "1.0", 2],
        "id": [None, -3, "asked", 1.5, 10**40, []],
        "method": ["ping", "roots/list", "tools/list", "notifications/progress", "\ud800", 5],
        "params": [None, [], {}, {"progressToken": 1, "progress": "x"}, {"requestId": []}],
        "result": [None, "x", {"tools": 3}, {"tools": [None]}, {"content": {}}],
        "error": ["x", {}, {"code": 1.5, "message": 5}, {"code": -32000, "message": "", "data": 1}],
    }
    kept = [name for name in fields if draw.random() < 0.6]
    return json.dumps({name: draw.choice(fields[name]) for name in kept}).encode()


def lines(draw):
    """Random bytes, and what looks like messages, that end their last line."""
    one = draw.choice([some_bytes, some_message])
    return b"".join(one(draw) + b"\n" for _ in range(draw.randrange(4)))


def textual(draw):
    """Random bytes that do not end the text in which they stand."""
    return bytes(one for one in some_bytes(draw) if one >= 0x20 and one not in b'"\\')


def halves(draw):
    """Escapes of characters, whole and half, and what is to be read for them."""
    written, read = "", ""
    for _ in range(draw.randrange(1, 8)):
        one, said = draw.choice(
            [
                ("\\ud83d\\ude00", "😀"),
                ("\\uD83D", "\ufffd"),
                ("\\uDE00", "\ufffd"),
                ("\\\\ud83d", "\\ud83d"),
                ("\\u0041", "A"),
                ("x", "x"),
            ]
        )
        if one == "\\uDE00" and written.endswith("\\uD83D"):
            continue
        written, read = written + one, read + said
    return written.encode(), read


def test_a_session_survives_any_bytes_and_recovers_from_any_end():
    with stdio("rude") as server:
        pid, count = None, 0
        for seed in seeds(30):
            draw = random.Random(seed)
            what = draw.choice(["bytes", "bytes", "halves", "refuse", "die"])
            if what == "bytes":
                inner = textual(draw)
                assert write(server, lines(draw) + answer(inner)) == inner.decode(errors="replace")
            elif what == "halves":
                inner, read = halves(draw)
                assert write(server, lines(draw) + answer(inner)) == read
            elif what == "refuse":
                words = f"refused no. {seed}"
                code = draw.choice([-32000, -32700, -32001, draw.randrange(-40000, 40000)])
                refusal = call(
                    server, "refuse", code=code, message=words, data=draw.choice([1, {}])
                )
                assert isinstance(refusal, ServerFailure)
                assert str(refusal) == words
            else:
                lost = str(write(server, lines(draw), "die"))
                assert "was lost during the call" in lost
                pid, count = None, 0
            now, counted = call(server, "count").split()
            # The process is the same, with its state, unless it has ended.
            assert (now, int(counted)) == (pid or now, count + 1), (seed, what)
            pid, count = now, count + 1


def test_no_code_of_an_error_ends_a_session():
    codes = range(-32768, -31999)

    async def refused(server, code):
        with pytest.raises(ServerFailure) as raised:
            await server.call("refuse", {"code": code, "message": f"no {code}"}, None)
        return str(raised.value)

    async def main(server):
        return await asyncio.gather(*(refused(server, code) for code in codes))

    with stdio("rude") as server:
        first = call(server, "count").split()[0]
        assert asyncio.run(asyncio.wait_for(main(server), AFTER)) == [
            f"no {code}" for code in codes
        ]
        assert call(server, "count").split() == [first, "2"]


def test_characters_are_whole_over_http_too():
    with http_process("rude") as (port, _), at(port) as server:
        for seed in seeds(20):
            draw = random.Random(seed)
            (inner, read), raw = halves(draw), textual(draw)
            said = write(server, answer(raw + b" " + inner))
            assert said == f"{raw.decode(errors='replace')} {read}", seed


def test_an_escape_may_come_in_parts():
    for seed in seeds(300):
        draw = random.Random(seed)
        (inner, read), repair = halves(draw), _Repair()
        whole = b'"' + textual(draw) + inner + b'"'
        cuts = sorted(draw.randrange(len(whole)) for _ in range(draw.randrange(6)))
        parts = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
        assert read in json.loads(b"".join(map(repair.next, parts)))
        assert repair.next(b"", is_last=True) == b""


def test_what_a_server_says_with_the_codes_of_the_sdk_reaches_the_model():
    with stdio("rude") as server, http_process("rude") as (port, _), at(port) as over_http:
        for one in (server, over_http):
            for code in (-32000, -32700):
                said = error(one, "refuse", code=code, message="Failed to parse the amount.")
                assert said == "Error calling tool 'refuse': Failed to parse the amount."
            said = error(one, "refuse", code=-32000, message="")
            assert said == "Error calling tool 'refuse': it failed without saying why."


def test_bytes_in_place_of_an_answer_cost_a_call_its_time_and_no_more():
    async def main(server):
        raw = [
            base64.b64encode(lines(random.Random(seed)) + b"\xff\n").decode() for seed in range(6)
        ]
        calls = (server.call("write", {"base64": one}, None) for one in raw)
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), AFTER)

    with stdio("rude", timeout=1.0, name="odd") as server:
        said = {str(one) for one in asyncio.run(main(server))}
        assert said == {
            "the MCP server 'odd' gave no result within 1 seconds, but it sent something that is "
            "not an MCP message"
        }
        assert eventually(lambda: not isinstance(call(server, "count"), Fail))


SILENT = """
import os, sys
sys.path.insert(0, SUPPORT)
from mcp_servers import rude
plain = rude.reply_to
def reply_to(message):
    if (message.get("params") or {}).get("name") == "die":
        os.close(1)
        for line in sys.stdin: pass
        os._exit(0)
    return plain(message)
rude.reply_to = reply_to
rude.speak_stdio()
"""


def test_a_process_that_lives_on_without_its_output_is_started_anew():
    with python(SILENT.replace("SUPPORT", repr(str(SERVERS.parent)))) as server:
        first = call(server, "count")
        assert "was lost during the call" in str(call(server, "die"))
        assert call(server, "count").split()[1] == "1"
        assert call(server, "count") != first


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        ({"": (["a", "b"], "x"), "x": (["c"], "x")}, ["a", "b", "c"]),
        ({"": (["a"], "x"), "x": (["b"], "y"), "y": (["c"], "x")}, ["a", "b", "c"]),
        ({"": (["a"], ""), "x": ([], None)}, ["a"]),
        # A server that ignores the cursor.
        ({"": (["a"], "x"), "x": (["a"], "x")}, ["a"]),
    ],
)
def test_a_cursor_that_comes_again_ends_the_list(pages, names, caplog):
    command = [*forked("rude"), json.dumps(pages)]
    with MCPServer.stdio(sys.executable, command, name="odd") as server:
        assert [one.name for one in server.as_tools()] == names
    assert (
        "a server sent a cursor of the list of its tools again: the list ends there"
        in caplog.messages
    )


@pytest.mark.parametrize("name", ["a b", "", "x" * 129, "a\nb", "ß\u00a0"])
def test_a_tool_that_no_agent_can_have_is_left_out(name, caplog):
    pages = json.dumps({"": (["good", name], None)})
    command = [*forked("rude"), pages]
    with MCPServer.stdio(sys.executable, command, name="odd") as server:
        assert [one.name for one in server.as_tools()] == ["good"]
    assert any(text.startswith(f"odd: left out the tool '{name}': ") for text in caplog.messages)
    if name:
        named = MCPServer.stdio(sys.executable, command, name="odd", include=[name])
        with pytest.raises(ToolError, match="can't be offered"), named:
            pass


@pytest.mark.parametrize("status", [429, 502, 503, 400])
@pytest.mark.parametrize("body", [None, "error"])
def test_a_busy_server_over_http_is_asked_again_where_that_is_allowed(rude, status, body):
    port, unique = rude
    passes = status != 400
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "busy"}}
    asked = {"status": status, "times": 2, **({"body": refusal} if body else {})}
    with at(port, name="web") as server:
        for name, attempts in (("busy", 1), ("busy_read", 3), ("busy_set", 3)):
            (ticket,) = tickets(server, (name, {**asked, "key": next(unique)}))
            if passes and attempts > 1:
                assert (ticket.outcome, ticket.result) == ("ok", "attempt 3")
            else:
                assert ticket.outcome == "error"
                assert ("busy" if body else f"HTTP status {status}") in ticket.error
            assert ticket.attempts == (attempts if passes else 1)


def test_a_busy_server_says_how_long_to_wait_and_may_be_asked_by_the_model(rude):
    port, unique = rude
    asked = {"status": 503, "times": 1, "headers": {"Retry-After": "7"}, "key": next(unique)}
    with at(port, name="web") as server:
        by_name = {one.name: one for one in server.as_tools()}
        outcome = asyncio.run(by_name["busy_read"].acall(asked, None))
        assert (outcome.transient, outcome.again, outcome.wait) == (True, True, 7.0)
        # What is called once is repeated by the model alone.
        asked["key"] = next(unique)
        first, second = tickets(server, ("busy", asked), ("busy", asked))
        assert (first.outcome, second.outcome) == ("error", "ok")


@pytest.fixture(scope="module")
def _port():
    with http_process("rude") as (port, _):
        yield port


@pytest.fixture
def rude(_port, monkeypatch):
    """A server over HTTP, and keys for its calls; attempts do not wait."""
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.0)
    return _port, map(str, iter(lambda: random.getrandbits(64), None))
