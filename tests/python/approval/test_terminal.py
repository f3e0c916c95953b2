"""`at_terminal`: a person at a terminal decides, and nobody is waited for who is not there."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from callslip import Agent, ScriptedModel, at_terminal, tool
from scripted import act, finish

PROGRAM = """
import asyncio, json, sys
from callslip import Agent, ScriptedModel, RunCancelled, at_terminal, tool
from scripted import act, finish

@tool(needs_approval=lambda arguments, context: "a \\x1b[31mred\\x1b[0m reason")
def pay(to: str, amount: int) -> str:
    made.append([to, amount])
    return "paid"

made = []
arguments, how = json.loads(sys.argv[1]), sys.argv[2]
agent = Agent(ScriptedModel([act("pay", **arguments), finish()]), tools=[pay])
try:
    if how == "child":
        outer = Agent(
            ScriptedModel([act("agent", task="x"), finish()]), tools=[agent.as_tool()]
        )
        result = outer.run_sync("go", approve=at_terminal).run.children[0]
    elif how == "sync":
        result = agent.run_sync("go", approve=at_terminal)
    else:
        result = asyncio.run(agent.run("go", approve=at_terminal))
except KeyboardInterrupt as error:
    run = getattr(error, "run", None)
    print("RESULT" + json.dumps([made, "interrupted", run and run.stop_reason]), flush=True)
else:
    (ticket,) = result.tickets
    print("RESULT" + json.dumps([made, ticket.outcome, ticket.error]), flush=True)
"""

# With the modules of this process.
PROGRAM = f"import sys\nsys.path[:0] = {sys.path!r}\n{PROGRAM}"

ASKED = "or a reason to deny: "
AS_JSON = "in one line: "


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, arguments, how):
        pid, self.fd = pty.fork()
        if pid == 0:
            # Whoever runs the tests in the background may ignore it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            line = [sys.executable, "-c", PROGRAM, json.dumps(arguments), how]
            os.execv(sys.executable, line)
        self.pid, self.shown = pid, ""

    def wait_for(self, text, count=1):
        until = time.monotonic() + 30
        while self.shown.count(text) < count:
            assert time.monotonic() < until, self.shown
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.fd, 65536).decode()
                except OSError:
                    raise AssertionError(self.shown) from None

    def type(self, text):
        os.write(self.fd, text.encode())

    def result(self):
        self.wait_for("RESULT")
        self.wait_for("\n", self.shown.index("RESULT") and self.shown.count("\n"))
        while "\n" not in self.shown.partition("RESULT")[2]:
            self.shown += os.read(self.fd, 65536).decode()
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        return json.loads(self.shown.partition("RESULT")[2].splitlines()[0])


CALL = {"to": "bob", "amount": 900}
HOW = pytest.mark.parametrize("how", ["sync", "async", "child"])


@HOW
@pytest.mark.parametrize(
    ("typed", "result"),
    [
        ("y\n", [[["bob", 900]], "ok", None]),
        ("YES \n", [[["bob", 900]], "ok", None]),
        ("n\n", [[], "denied", "The call of 'pay' was denied"]),
        ("too much\n", [[], "denied", "The call of 'pay' was denied: too much"]),
        (
            "\x04",
            [
                [],
                "denied",
                "The call of 'pay' was denied: nobody has decided: the input of the person has "
                "ended",
            ],
        ),
    ],
)
def test_a_person_decides(how, typed, result):
    terminal = Terminal(CALL, how)
    terminal.wait_for(ASKED)
    terminal.type(typed)
    assert terminal.result() == result


def test_nothing_is_decided_by_an_empty_line():
    terminal = Terminal(CALL, "sync")
    terminal.wait_for(ASKED)
    terminal.type("\n")
    terminal.wait_for(ASKED, 2)
    terminal.type("y\n")
    assert terminal.result()[0] == [["bob", 900]]


@HOW
def test_a_person_edits_the_arguments(how):
    terminal = Terminal(CALL, how)
    for count, (line, problem) in enumerate(
        [
            ("{'to': 5}", "expected a JSON object: "),
            ("[5]", "expected a JSON object: got list"),
            ('{"to": "ann"}', "'amount'"),
            ('{"to": "ann", "amount": 7}', "RESULT"),
        ],
        1,
    ):
        terminal.wait_for(ASKED, count)
        terminal.type("e\n")
        terminal.wait_for(AS_JSON, count)
        terminal.type(line + "\n")
        terminal.wait_for(problem)
    assert terminal.result() == [[["ann", 7]], "ok", None]


def test_the_whole_call_is_shown_and_nothing_in_it_moves_the_cursor():
    long = "x" * 3_000 + "\x1b[2J\r\u202e\n" + "end"
    terminal = Terminal({"to": long, "amount": 900}, "sync")
    terminal.wait_for(ASKED)
    shown = terminal.shown
    lines = [line.removeprefix("    to     | ") for line in shown.split("\r\n")]
    assert "".join(lines).count("x" * 3_000) == 1
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\u27e8U+001B\u27e9[2J\u27e8U+000D\u27e9\u27e8U+202E\u27e9" in "".join(lines)
    assert "end" in lines
    assert "Reason: a \u27e8U+001B\u27e9[31mred\u27e8U+001B\u27e9[0m reason" in shown
    assert "    amount | 900\r\n" in shown
    assert shown.endswith(
        f"pay \u2192 900 (+ 1 longer above)\r\nApprove? [y]es, [n]o, [e]dit the arguments, {ASKED}"
    )
    terminal.type("n\n")
    assert terminal.result()[0] == []


@HOW
def test_ctrl_c_cancels_the_run(how):
    terminal = Terminal(CALL, how)
    terminal.wait_for(ASKED)
    # No person is as fast as the event loop, which may not wait for signals yet.
    time.sleep(0.3)
    terminal.type("\x03")
    made, outcome, reason = terminal.result()
    assert (made, outcome) == ([], "interrupted")
    assert reason == (None if how == "async" else "cancelled")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    raise AssertionError("it was made")


def test_nobody_is_asked_without_a_terminal():
    agent = Agent(ScriptedModel([act("pay", amount=5), finish()]), tools=[pay])
    result = agent.run_sync("go", approve=at_terminal)
    assert result.tickets[0].error == (
        "The call of 'pay' was denied: nobody sits at a terminal to approve this call, so it "
        "cannot be made in this run"
    )


@pytest.mark.parametrize("stream", [None, "closed"])
def test_nobody_is_asked_without_standard_input(monkeypatch, stream):
    if stream == "closed":
        stream = open(os.devnull)  # noqa: SIM115, PTH123
        stream.close()
    monkeypatch.setattr(sys, "stdin", stream)
    agent = Agent(ScriptedModel([act("pay", amount=5), finish()]), tools=[pay])
    assert agent.run_sync("go", approve=at_terminal).tickets[0].outcome == "denied"


def test_nobody_is_asked_in_the_background():
    """A program in the background of a shell would be stopped by the terminal."""
    line = [sys.executable, "-c", PROGRAM, json.dumps(CALL), "sync"]
    pid, fd = pty.fork()
    if pid == 0:
        # Another group of processes, as a shell makes it for `program &`.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os._exit(subprocess.run(line, process_group=0, check=False).returncode)
    shown = b""
    try:
        while chunk := os.read(fd, 65536):
            shown += chunk
    except OSError:  # the end of the terminal
        pass
    assert os.waitpid(pid, 0)[1] == 0
    os.close(fd)
    made, outcome, error = json.loads(shown.decode().partition("RESULT")[2].splitlines()[0])
    assert (made, outcome) == ([], "denied")
    assert "nobody sits at a terminal" in error
