"""`callslip ask`: one task, with a model that is a server on this machine."""

import io
import json
import sys

import pytest

from callslip import TicketStore
from scripted import act, block, finish


@pytest.fixture
def ask(server, call):
    def command(*words, **options):
        return call("ask", "-m", "openai:m", "--base-url", f"{server.base}/v1", *words, **options)

    return command


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_answer_is_printed_and_the_calls_beside_it(server, replies, ask):
    replies(act("weather", city="Oslo"), finish("4\x1b[2J\ndegrees"))
    shown = ask("Weather?", "--tool", "cli_tools:weather")
    assert shown.out == "4\\u001b[2J\ndegrees\n"
    assert shown.err.splitlines() == [
        'T1 weather {"city": "Oslo"}',
        "T1 ok: 4 degrees\\u001b[1m in Oslo",
    ]
    assert server.bodies[0]["model"] == "m"
    assert server.bodies[0]["messages"][-1]["content"] == "Weather?"


@pytest.mark.parametrize("words", [[], ["-"]])
def test_the_question_is_read_from_input(server, replies, ask, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Weather\nin Oslo?"))
    replies(finish("4"))
    assert ask(*words).out == "4\n"
    assert server.bodies[0]["messages"][-1]["content"] == "Weather\nin Oslo?"


@pytest.mark.parametrize(
    ("protocol", "texts"),
    [
        ("react", [act("weather", city="Oslo"), finish("4\x1b degrees")]),
        ("chatty", ["I look." + block(("c", "weather", {"city": "Oslo"})), "4\x1b degrees"]),
    ],
)
def test_text_is_printed_once_at_a_terminal(replies, ask, monkeypatch, protocol, texts):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    replies(*texts)
    ask("Weather?", "--tool", "cli_tools:weather", "--protocol", protocol)
    said = "I look.\n" if protocol == "chatty" else ""
    assert screen.getvalue() == f"{said}4\\u001b degrees\n"


def test_nobody_is_asked_who_sits_at_no_terminal(server, replies, ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\ny\n"))
    replies(act("pay", amount=3), finish("not paid"))
    shown = ask("Pay.", "--tool", "cli_tools:pay")
    assert shown.out == "not paid\n"
    assert (
        shown.err.splitlines()[0]
        == 'T1 pay {"amount": 3} (amount: from nowhere), awaiting approval'
    )
    assert "T1 denied: The call of 'pay' was denied: nobody sits at a terminal" in shown.err
    assert sys.stdin.read() == "y\ny\n"


def test_a_person_sees_the_whole_arguments_and_decides(replies, ask, monkeypatch):
    asked = []

    def person(ticket, problem=None):
        asked.append((ticket.call, problem))
        return [{"amount": "x"}, {"amount": 2}][len(asked) - 1]

    monkeypatch.setattr("callslip.approval.at_terminal", person)
    replies(act("pay", amount=3), finish("paid"))
    shown = ask("Pay.", "--tool", "cli_tools:pay")
    assert "T1 ok: paid 2" in shown.err
    assert [call for call, _ in asked] == ['pay {"amount": 3}'] * 2
    assert asked[0][1] is None
    assert "amount" in asked[1][1]


def test_nobody_answers_a_question_at_no_terminal(replies, ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('"M"\n'))
    replies(act("ask_user", question="Which size?"), finish("not known"))
    shown = ask("Order.", "--tool", "callslip:ask_user")
    assert shown.out == "not known\n"
    assert "T1 error: Error calling tool 'ask_user': nobody sits at a terminal" in shown.err
    assert sys.stdin.read() == '"M"\n'


def test_a_person_answers_a_question_until_the_answer_fits(replies, ask, monkeypatch):
    words = iter(["L\n", "M\n"])
    screen = io.StringIO()
    monkeypatch.setattr("callslip.approval._ask._screen", lambda: screen)
    monkeypatch.setattr("callslip.approval._ask._drop_typed_ahead", lambda: None)
    monkeypatch.setattr("callslip.approval._ask._wait_for_line", lambda: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(words)))
    replies(act("ask_user", question="Which?\x1b[2J", choices=["S", "M"]), finish("ordered"))
    shown = ask("Order.", "--tool", "callslip:ask_user")
    assert shown.out == "ordered\n"
    assert "T1 ok: M" in shown.err
    assert "A call needs an answer" in screen.getvalue()
    assert "must be one of" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()


def test_a_store_keeps_the_run(replies, ask, tmp_path, call):
    replies(finish("4"))
    path = tmp_path / "runs.sqlite"
    name = ask("Weather?", "--store", path).err.split()[-1]
    assert call("show", path, name).out.startswith(f"run {name}: finished")
    with TicketStore(path) as store:
        assert [one.task for one in store.runs()] == ["Weather?"]


@pytest.mark.parametrize("model", ["openai:m", "anthropic:m"])
def test_a_run_that_fails_is_the_exit_status_1(server, call, model):
    server.status = 400
    shown = call("ask", "x", "-m", model, "--base-url", f"{server.base}/v1", status=1)
    assert (shown.out, shown.err[:10]) == ("", "callslip: ")
    assert server.bodies[0]["model"] == "m"


def test_an_answer_that_is_no_text_is_printed_as_json(replies, ask):
    replies('<thoughts>\n</thoughts>\n<output>\n{"type": "RETURN", "value": {"a": 1}}\n</output>')
    assert json.loads(ask("x", "--protocol", "ticket").out) == {"a": 1}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["x", "-m", "gpt"], "expected openai:NAME, anthropic:NAME or local: got gpt"),
        (["x", "-m", "openai:"], "expected openai:NAME"),
        (["x", "-m", "local", "--base-url", "http://x"], "expected --base-url with a service"),
        (["x", "-m", "openai:m", "--tool", "weather"], "expected --tool as module:function"),
        (["x", "-m", "openai:m", "--tool", "cli_tools:nope"], "cannot be imported"),
        (["x", "-m", "openai:m", "--tool", "no_such_module:x"], "cannot be imported"),
    ],
)
def test_wrong_words_are_errors(server, call, words, problem):
    assert problem in call("ask", *words, status=2).err
    assert server.bodies == []


def test_a_question_and_a_key_are_needed(server, call, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert "expected a question" in call("ask", "-m", "openai:m", status=2).err
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in call("ask", "x", "-m", "openai:m", status=2).err


def test_the_calls_of_runs_below_are_shown_with_their_run(replies, ask):
    replies(act("agent", task="Ask."), finish("four"))
    lines = ask("x", "--tool", "cli_tools:agent").err.splitlines()
    assert [line.partition(" ")[2] for line in lines] == [
        'agent {"task": "Ask."}',
        'T1 weather {"city": "Oslo"}',
        "T1 ok: 4 degrees\\u001b[1m in Oslo",
        "ok: 4",
    ]
