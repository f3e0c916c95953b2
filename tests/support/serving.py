"""MCP servers that run for a test, and what they are asked."""

import os
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import callslip
from callslip import Agent, ScriptedModel
from callslip.mcp import MCPServer
from mcp_servers.nursery import RELAY, Forked, nursery
from scripted import act, finish

SERVERS = Path(__file__).parent / "mcp_servers"

PACKAGE = {"PYTHONPATH": str(Path(callslip.__file__).parent.parent)}
"""For servers that use the package under test: they inherit nothing."""


def script(name):
    return str(SERVERS / f"{name}.py")


def forked(name):
    """Arguments for Python to be a server that starts in milliseconds: a fork takes its streams."""
    return ["-IS", str(RELAY), str(nursery()), name]


def stdio(which="everything", /, **options):
    return MCPServer.stdio(sys.executable, forked(which), **{"name": f"{which}.py", **options})


def stdio_process(which="everything", /, env=None, **options):
    """For tests of the process that a client starts, which takes a second."""
    env = {**PACKAGE, **(env or {})}
    return MCPServer.stdio(sys.executable, [script(which)], env=env, **options)


def python(code, *, name="odd", **options):
    """A server that is a few lines of Python."""
    return MCPServer.stdio(sys.executable, ["-c", code], name=name, **options)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start_http(name, port):
    """Start a server process and wait until it listens."""
    process = Forked(name, "http", str(port))
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            assert not process.has_ended()
            time.sleep(0.02)
        else:
            return process
    raise AssertionError("the server does not listen")


def stop(process):
    process.kill()
    process.wait()


@contextmanager
def http_process(name="everything"):
    """A server over HTTP: its port and its process."""
    port = free_port()
    process = start_http(name, port)
    try:
        yield port, process
    finally:
        stop(process)


def at(port, **options):
    return MCPServer.http(f"http://127.0.0.1:{port}/mcp", **options)


def agent_for(server, *calls):
    """An agent that makes these calls, `(tool, arguments)`, one after the other."""
    replies = [act(name, **arguments) for name, arguments in calls]
    return Agent(ScriptedModel([*replies, finish()]), tools=[server])


def tickets(server, *calls):
    return agent_for(server, *calls).run_sync("t").tickets


def result(server, tool, /, **arguments):
    """What a call gives."""
    ticket = tickets(server, (tool, arguments))[0]
    assert ticket.outcome == "ok", ticket.error
    return ticket.result


def error(server, tool, /, **arguments):
    """What a call that fails says."""
    ticket = tickets(server, (tool, arguments))[0]
    assert ticket.outcome == "error"
    return ticket.error


def is_running(pid):
    """Whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def eventually(holds, seconds=60.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.01)
    return False
