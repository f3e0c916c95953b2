"""Scripts that ask a person at a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pexpect
import pytest

from callslip import PythonRunner, ScriptLimits
from callslip.errors import ScriptRefused
from sandbox import dialogue
from sandbox.cases import SUPPORT
from sandbox.dialogue import HELLO, KEY, NAME
from sandbox.offered import need
from sandbox.scene import gone

pytestmark = [
    # 3.12 warns of forks beside threads; the fork execs at once.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def box():
    need("auto")


def environment():
    paths = [str(SUPPORT), *(path for path in sys.path if path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TERM": "dumb"}


@pytest.fixture
def terminal():
    """A function: start a program at a terminal of its own."""
    started = []

    def start(program):
        child = pexpect.spawn(
            sys.executable, ["-c", program], env=environment(), encoding="utf-8", timeout=100
        )
        child.said = []
        child.logfile_read = Log(child.said)
        started.append(child)
        return child

    yield start
    for child in started:
        child.close(force=True)


class Log:
    def __init__(self, said):
        self.said = said

    def write(self, text):
        self.said.append(text)

    def flush(self):
        pass


def text_of(child):
    return "".join(child.said)


def test_a_dialogue_at_a_terminal(terminal):
    child = terminal(dialogue.RUN)
    child.expect_exact("[script] Name? ")
    child.sendline(NAME)
    child.expect_exact("[script] Key? ")
    assert child.waitnoecho(60)
    child.sendline(KEY)
    child.expect_exact(HELLO)
    child.expect_exact("ended ok")
    child.expect(pexpect.EOF)
    assert KEY not in text_of(child)


def test_the_end_of_input_at_a_terminal(terminal):
    child = terminal(dialogue.RUN)
    child.expect_exact("[script] Name? ")
    child.sendeof()
    child.expect_exact("EOFError")
    child.expect_exact("ended error")


def test_what_a_script_writes_comes_before_what_it_asks(terminal):
    code = "print('first'); import sys; print('second', file=sys.stderr); input('then? ')"
    child = terminal(dialogue.RUN.replace("runner.run(CODE", f"runner.run({code!r}"))
    child.expect_exact("then? ")
    assert "first" in child.before
    assert "second" in child.before
    child.sendline("")
    child.expect_exact("ended ok")


def test_escape_codes_do_not_reach_the_terminal(terminal):
    code = (
        "print('\\x1b[2J\\x1b]0;title\\x07shown\\x9b31m'); "
        "input('\\x1b[8mPassword of root:\\r[callslip] \\x1b[0m')"
    )
    child = terminal(dialogue.RUN.replace("runner.run(CODE", f"runner.run({code!r}"))
    child.expect_exact("[callslip] ")
    child.sendline("")
    child.expect_exact("ended ok")
    child.expect(pexpect.EOF)
    assert "\x1b" not in text_of(child)
    assert "\x9b" not in text_of(child)
    assert "\x07" not in text_of(child)
    assert "shown" in text_of(child)
    # No line of the script's passes for one of ours.
    lines = text_of(child).splitlines()
    assert [line for line in lines if line.startswith("[callslip]")] == []
    assert [line for line in lines if line.startswith("[script]")] != []


@pytest.mark.parametrize("moment", ["it asks", "it works", "it ignores it"])
def test_ctrl_c_ends_the_script(terminal, moment):
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code = {
        "it asks": "print('now', flush=True); input('Name? ')",
        "it works": "import time; print('now', flush=True); time.sleep(60)",
        "it ignores it": ignore + "import time; print('now', flush=True); time.sleep(60)",
    }[moment]
    child = terminal(dialogue.RUN.replace("runner.run(CODE", f"runner.run({code!r}"))
    child.expect_exact("Name? " if moment == "it asks" else "now")
    child.sendintr()
    child.expect_exact("KeyboardInterrupt")
    child.expect(pexpect.EOF)
    child.wait()
    assert gone(child.pid, set(), 30.0) == []
    assert child.exitstatus or child.signalstatus


def test_nobody_waits_for_ever_at_a_terminal(terminal):
    limits = "PythonRunner(limits=__import__('callslip').ScriptLimits(idle_seconds=1.0))"
    child = terminal(dialogue.RUN.replace("PythonRunner()", limits))
    child.expect_exact("Name? ")
    child.expect_exact("ended idle_timeout")


def test_an_agent_s_script_asks_at_the_terminal(terminal):
    child = terminal(dialogue.AGENT)
    child.expect_exact("[script] Name? ")
    child.sendline(NAME)
    child.expect_exact(f"hello {NAME}")
    child.expect_exact("answer It said hello.")
    child.expect(pexpect.EOF)


def test_without_a_terminal_nothing_is_started():
    program = (
        "from callslip import PythonRunner\n"
        "from callslip.errors import ScriptRefused\n"
        "from sandbox.dialogue import CODE\n"
        "heard = []\n"
        "try:\n"
        "    PythonRunner(on_event=heard.append).run(CODE, interactive=True)\n"
        "except ScriptRefused as refused:\n"
        "    print(refused.code, heard)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout == "interactive_unavailable []\n"


# The same dialogue, by a test
def test_a_dialogue_by_a_test():
    heard = []
    with PythonRunner(on_event=heard.append) as runner:
        result = runner.run(dialogue.CODE, interactive=True, answers=[NAME, KEY])
    assert (result.status, result.stdout) == ("ok", f"{HELLO}\n")
    asked = [event.data for event in heard if event.kind == "input_request"]
    assert [(one["prompt"], one["secret"]) for one in asked] == [
        ("Name? ", False),
        ("Key? ", True),
    ]
    assert KEY not in str(heard)


def test_answers_that_run_out():
    with PythonRunner() as runner:
        result = runner.run(dialogue.CODE, interactive=True, answers=[NAME])
    assert result.status == "error"
    assert "EOFError" in result.stderr
    assert "the script asked more often than it was answered: 1 answer was given" in result.hints


def test_answers_are_for_interactive_scripts():
    with PythonRunner() as runner:
        result = runner.run("try: input('?')\nexcept EOFError: print('nobody')")
    assert result.stdout.endswith("nobody\n")


def test_nobody_is_asked_where_nobody_may_be():
    with PythonRunner(ask=None) as runner, pytest.raises(ScriptRefused) as refused:
        runner.run(dialogue.CODE, interactive=True)
    assert refused.value.code == "interactive_unavailable"


def test_a_flood_of_questions_is_stopped():
    limits = ScriptLimits(prompts=5)
    asked = []
    with PythonRunner(ask=lambda request: asked.append(request) or "", limits=limits) as runner:
        result = runner.run("while True: input('?')", interactive=True)
    assert result.status == "prompt_limit"
    assert len(asked) == 5
    assert [request.number for request in asked] == [1, 2, 3, 4, 5]
