"""`callslip chat`: a conversation, with a model that is a server on this machine."""

import io
import signal
import sys

import pytest

from callslip import TicketStore
from scripted import act, finish


@pytest.fixture
def chat(server, call, monkeypatch):
    def command(typed, *words, **options):
        stdin = io.StringIO(typed) if isinstance(typed, str) else typed
        monkeypatch.setattr(sys, "stdin", stdin)
        model = ("-m", "openai:m", "--base-url", f"{server.base}/v1")
        return call("chat", *model, *words, **options)

    return command


def said(server):
    """The messages of the user in the last request, without the example of the prompt."""
    messages = server.bodies[-1]["messages"]
    return [one["content"] for one in messages if one["role"] == "user"]


def test_each_line_is_a_turn_of_one_conversation(server, replies, chat):
    replies(finish("hello\x1b"), finish("four"))
    shown = chat("Hi.\n\n2+2?\n")
    assert (shown.out, shown.err) == ("hello\\u001b\nfour\n", "")
    assert said(server)[-2:] == ["Hi.", "2+2?"]


def test_a_kept_conversation_is_resumed_and_shown(server, replies, chat, call, tmp_path):
    path = tmp_path / "runs.sqlite"
    replies("hello", "four")
    run_id = chat("Hi.\n", "--store", path, "--protocol", "chatty").err.split()[-1]
    shown = chat("2+2?\n", "--store", path, "--resume", run_id[:10])
    assert (shown.out, shown.err) == ("four\n", f"run {run_id}\n")
    assert said(server)[-2:] == ["Hi.", "2+2?"]
    with TicketStore(path) as store:
        assert [one.run_id for one in store.runs()] == [run_id]
    lines = [line.strip() for line in call("show", path).out.splitlines()]
    assert (lines.count("hello"), lines.count("four")) == (1, 1)
    assert lines.index("hello") < lines.index("message of the user") < lines.index("four")
    error = chat("x\n", "--store", path, "--resume", run_id, "--protocol", "react", status=2).err
    assert "the run has the protocol chatty" in error


def test_ctrl_c_cancels_the_turn_and_the_conversation_goes_on(replies, chat, tmp_path):
    path = tmp_path / "runs.sqlite"
    replies(act("press_ctrl_c"), finish("four"))
    # Whoever runs the tests in the background may ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        words = ("--tool", "cli_tools:press_ctrl_c", "--store", path)
        shown = chat("Wait.\n2+2?\n", *words)
    finally:
        signal.signal(signal.SIGINT, before)
    assert shown.out == "four\n"
    assert "callslip: the turn was cancelled\n" in shown.err
    with TicketStore(path) as store:
        (run,) = store.runs()
        assert [one.outcome for one in store.run(run.run_id).tickets] == ["cancelled"]
        assert run.stop_reason == "finished"


def test_a_turn_that_fails_does_not_end_the_conversation(server, replies, chat):
    class Typed(io.StringIO):
        def readline(self, *_):
            server.status = 400 if self.tell() == 0 else 200
            return super().readline()

    replies(finish("four"))
    shown = chat(Typed("Hi.\n2+2?\n"))
    assert shown.out == "four\n"
    assert shown.err.startswith("callslip: the model failed in turn 1: ")
    assert said(server)[-1].endswith("2+2?")


def test_ctrl_c_at_the_prompt_drops_the_line(replies, chat):
    class Person(io.StringIO):
        pressed = False

        def isatty(self):
            return True

        def readline(self, *_):
            if not self.pressed:
                self.pressed = True
                raise KeyboardInterrupt
            return super().readline()

    replies(finish("hello"))
    assert chat(Person("Hi.\n")).out == "> \n> hello\n> \n"


def test_a_run_is_resumed_with_its_store(server, chat, tmp_path):
    assert "expected --resume with --store" in chat("x\n", "--resume", "a", status=2).err
    path = tmp_path / "runs.sqlite"
    TicketStore(path).close()
    error = chat("x\n", "--resume", "a", "--store", path, status=2).err
    assert "there is no run a in " in error
    assert server.bodies == []
