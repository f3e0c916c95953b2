"""`callslip watch`: the events of a run, from the file that another process writes."""

import io
import subprocess
import sys

import pytest

from callslip import Agent, ScriptedModel, TicketStore, tool
from callslip.cli import main
from callslip.errors import RunFailed
from scripted import act, finish

PROGRAM = f"""
import sys
sys.path[:0] = {sys.path!r}
from callslip import Agent, ScriptedModel, tool
from scripted import act, finish

@tool(needs_approval=True)
def pay(amount: int) -> str:
    return f"paid {{amount}}"

def decide(ticket):
    print(ticket.run_id, flush=True)
    return bool(input())

script = ScriptedModel([act("pay", amount=3), finish("done")])
Agent(script, tools=[pay], store=sys.argv[1]).run_sync("Pay.", approve=decide)
"""


class Screen(io.StringIO):
    """What is written, by a person who lets the run go on once its call is seen."""

    def __init__(self, owner):
        super().__init__()
        self.owner = owner

    def write(self, text):
        if "awaiting approval" in text:
            self.owner.stdin.write("yes\n")
            self.owner.stdin.flush()
        return super().write(text)


def test_a_run_of_another_process_is_followed_to_its_end(tmp_path, monkeypatch):
    path = tmp_path / "runs.sqlite"
    command = [sys.executable, "-c", PROGRAM, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as owner:
        run_id = owner.stdout.readline().strip()
        screen = Screen(owner)
        monkeypatch.setattr(sys, "stdout", screen)
        assert main(["watch", str(path), run_id]) == 0
    lines = [line.split("  ", 1)[1] for line in screen.getvalue().splitlines()]
    assert lines == [
        f"run {run_id} of agent started: Pay.",
        "turn 1: the model is asked",
        'T1 pay {"amount": 3} (amount: from nowhere), awaiting approval',
        "T1 approved",
        "T1 ok: paid 3",
        "turn 2: the model is asked",
        "run ended, finished: done",
    ]


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("\x1b[2Jno\nrun ended")


def test_what_failed_is_told_and_nothing_acts_on_the_terminal(tmp_path, call):
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        agent = Agent(ScriptedModel([act("fail"), act("nope")]), tools=[fail], store=store)
        with pytest.raises(RunFailed):
            agent.run_sync("\x1b[2JTask\n" + "long " * 100)
        (run,) = store.runs()
        export = store.run(run.run_id).export()
    out = call("watch", path, run.run_id[:8], status=1).out
    assert "started: \\u001b[2JTask\\nlong " in out
    assert "…" in out
    assert "turn 2: violation unknown_tool: unknown tool 'nope'" in out
    lines = out.splitlines()
    assert "run ended, model error: " in lines[-1]
    assert all(line.isprintable() for line in lines)
    assert call("watch", path, run.run_id, "--json", status=1).out == export


def test_an_answer_is_told(tmp_path, call):
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        run = Agent(ScriptedModel([finish("4")]), store=store).run_sync("?").run
    assert call("watch", path, run.id).out.endswith("run ended, finished: 4\n")
    assert "there is no run x" in call("watch", path, "x", status=2).err
