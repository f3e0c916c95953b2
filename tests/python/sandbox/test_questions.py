"""Who answers interactive scripts: a list, a function, a terminal, a notebook."""

import asyncio
import os
import pty
import signal
import sys
import termios
import threading
import time
from types import ModuleType, SimpleNamespace

import pytest

from callslip import PythonRunner, ScriptLimits, ScriptRefused, UsageError
from callslip.sandbox import InputRequest

NAME = "print('before', end='')\nname = input('Name? ')\nprint('Hello', name)"
SECRET = "import getpass\nprint(len(getpass.getpass('Token: ')))"
ECHO = "import sys\nfor line in sys.stdin: print(repr(line))"


def run(runner, how, code, **options):
    if how == "run":
        return runner.run(code, interactive=True, **options)
    return asyncio.run(runner.arun(code, interactive=True, **options))


both = pytest.mark.parametrize("how", ["run", "arun"])


@both
def test_answers_from_a_list(make, how):
    result = run(make(), how, NAME, answers=["Ann"])
    assert (result.status, result.stdout) == ("ok", "beforeHello Ann\n")
    assert result.hints == ()


@both
def test_after_the_last_answer_comes_the_end_of_input(make, how):
    result = run(make(), how, "print(input())\nprint(input())", answers=["1"])
    assert (result.status, result.stdout) == ("error", "1\n")
    assert result.hints == ("the script asked more often than it was answered: 1 answer was given",)


def test_the_standard_input_is_answered_by_lines(make):
    result = make().run(ECHO, interactive=True, answers=["a", "", "ü"])
    assert result.stdout == "'a\\n'\n'\\n'\n'ü\\n'\n"


@pytest.mark.parametrize(
    "code", [ECHO, "import sys; sys.stdin.read()", ECHO + "\nraise ValueError"]
)
def test_who_reads_to_the_end_of_input_has_not_asked_too_often(make, code):
    assert make().run(code, interactive=True, answers=["a"]).hints == ()


@both
def test_a_function_may_end_the_input(make, how):
    def answer(_):
        raise EOFError

    code = "try:\n  input()\nexcept EOFError: print('end')"
    assert run(make(ask=answer), how, code).stdout == "end\n"


@both
def test_half_a_surrogate_pair_is_no_answer(make, how):
    with pytest.raises(UsageError, match=r"^expected ask\(request\) to return text: got half of"):
        run(make(ask=lambda _: "\ud800"), how, NAME)
    with pytest.raises(UsageError, match=r"^expected answers\[1\] to be text: got half of"):
        run(make(), how, NAME, answers=["a", "\ud800"])


def test_a_function_is_asked_without_escape_codes_and_not_at_length(make):
    events, requests = [], []

    def answer(request):
        requests.append(request.prompt)
        return ""

    runner = make(ask=answer, on_event=events.append)
    runner.run("input('\\x1b[2J\\x1b]0;t\\x07Name\\x9b1m? ')", interactive=True)
    runner.run("input('x' * 3500)", interactive=True)
    told = [event.data["prompt"] for event in events if event.kind == "input_request"]
    assert requests == told
    assert (told[0], len(told[1])) == ("Name? ", 2000)


def test_a_script_that_is_not_interactive_gets_the_end_of_input(make):
    result = make().run("try:\n  input()\nexcept EOFError: print('end')")
    assert result.stdout == "end\n"


@both
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_function_answers(make, how, kind):
    requests = []

    def answer(request):
        requests.append(request)
        return "Ann"

    async def answer_async(request):
        await asyncio.sleep(0)
        return answer(request)

    result = run(make(ask=answer if kind == "sync" else answer_async), how, NAME)
    assert result.stdout == "beforeHello Ann\n"
    assert requests == [InputRequest("Name? ", secret=False, number=1)]


@both
def test_a_function_that_returns_no_text_is_a_mistake(make, how):
    with pytest.raises(
        UsageError, match=r"^expected ask\(request\) to return a string, .* got int$"
    ):
        run(make(ask=lambda _: 7), how, NAME)


@both
def test_an_exception_of_the_function_ends_the_script(make, how):
    def answer(request):
        raise KeyError(request.prompt)

    with pytest.raises(KeyError, match="Name"):
        run(make(ask=answer), how, NAME)


def test_output_is_told_before_the_question(make):
    events = []
    make(on_event=events.append).run(NAME, interactive=True, answers=["Ann"])
    kinds = [event.kind for event in events]
    assert kinds.index("stdout") < kinds.index("input_request")
    (asked,) = [event for event in events if event.kind == "input_request"]
    assert (asked.data["prompt"], asked.data["secret"]) == ("Name? ", False)


def test_a_secret_answer_is_told_to_the_script_alone(make):
    events, requests = [], []

    def answer(request):
        requests.append(request)
        return "opensesame"

    runner = make(on_event=events.append, ask=answer)
    result = runner.run(SECRET, interactive=True)
    assert result.stdout == "10\n"
    assert requests == [InputRequest("Token: ", secret=True, number=1)]
    assert "opensesame" not in repr(events) + repr(result)


def test_too_many_questions_end_a_script(make):
    runner = make(ask=lambda _: "", limits=ScriptLimits(prompts=3))
    assert runner.run("while True: input()", interactive=True).status == "prompt_limit"


@both
def test_a_question_that_nobody_answers_ends_a_script(make, how):
    async def never(request):
        await asyncio.sleep(60)

    begun = time.monotonic()
    runner = make(ask=never, limits=ScriptLimits(idle_seconds=0.3))
    assert run(runner, how, NAME).status == "idle_timeout"
    assert time.monotonic() - begun < 40


def test_waiting_for_a_person_is_no_time_of_the_script(make):
    def answer(_):
        time.sleep(4)
        return "Ann"

    runner = make(ask=answer, limits=ScriptLimits(wall_seconds=3))
    assert runner.run(NAME, interactive=True).status == "ok"


@both
@pytest.mark.parametrize("ask", [None, "auto"])
def test_where_nobody_can_be_asked_nothing_is_started(how, ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    started = []
    backend = SimpleNamespace(about="", open=lambda: started.append(1))
    with pytest.raises(ScriptRefused, match="^an interactive script needs somebody") as caught:
        run(PythonRunner(backend=backend, ask=ask), how, NAME)
    assert caught.value.code == "interactive_unavailable"
    assert started == []


@pytest.fixture
def terminal(monkeypatch):
    """A terminal as this program's standard input; what is typed goes into the other end."""
    keyboard, line = pty.openpty()
    with os.fdopen(line, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


def typing(keyboard, text, when=None):
    """Type once there is a reason to."""

    def type_it():
        until = time.monotonic() + 10
        while when is not None and not when() and time.monotonic() < until:
            time.sleep(0.01)
        os.write(keyboard, text)

    thread = threading.Thread(target=type_it)
    thread.start()
    return thread


@both
def test_a_person_at_a_terminal_answers(make, how, terminal, capsys):
    os.write(terminal, b"Ann\n")
    result = run(make(), how, NAME)
    assert result.stdout == "beforeHello Ann\n"
    assert capsys.readouterr().out == "[script] before\n[script] Name? [script] Hello Ann\n"


def test_a_person_sees_no_escape_codes(make, terminal, capsys):
    os.write(terminal, b"x\n")
    code = "print('\\x1b[2Jclean')\ninput('\\x1b]0;t\\x07$ sudo\\nPassword: ')"
    make().run(code, interactive=True)
    first, *asked = capsys.readouterr().out.split("\n")
    assert first == "[script] clean"
    assert asked[1] == "[script] Password: "
    assert asked[0].startswith("[script] ")
    assert asked[0].endswith("$ sudo")
    assert "\x1b" not in asked[0]


@both
def test_a_secret_is_not_shown_while_it_is_typed(make, how, terminal, capsys):
    before = termios.tcgetattr(sys.stdin)
    states = []

    def is_silent():
        states.append(termios.tcgetattr(sys.stdin)[3] & termios.ECHO)
        return not states[-1]

    thread = typing(terminal, b"opensesame\n", is_silent)
    assert run(make(), how, SECRET).stdout == "10\n"
    thread.join()
    assert states[-1] == 0
    assert termios.tcgetattr(sys.stdin) == before
    assert capsys.readouterr().out == "[script] Token: \n[script] 10\n"


@both
def test_the_end_of_input_at_a_terminal(make, how, terminal):
    os.write(terminal, b"\x04")
    result = run(make(), how, "try: input()\nexcept EOFError: print('end')")
    assert result.stdout == "end\n"


@both
def test_a_script_that_ends_meanwhile_leaves_the_terminal_alone(make, how, terminal, capsys):
    before = termios.tcgetattr(sys.stdin)
    result = run(make(limits=ScriptLimits(idle_seconds=0.3)), how, SECRET)
    assert result.status == "idle_timeout"
    assert termios.tcgetattr(sys.stdin) == before
    os.write(terminal, b"later\n")
    assert run(make(), how, NAME).stdout == "beforeHello later\n"


def test_ctrl_c_at_a_question_ends_the_script(make, terminal, capsys):
    before = termios.tcgetattr(sys.stdin)
    asked = threading.Event()
    runner = make(on_event=lambda event: event.kind == "input_request" and asked.set())

    def interrupt():
        asked.wait(60)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        runner.run(SECRET, interactive=True)
    assert time.monotonic() - begun < 40
    assert termios.tcgetattr(sys.stdin) == before
    thread.join()


def test_scripts_that_ask_at_once_are_answered_one_after_the_other(make, terminal):
    runner = make()
    threads = [
        threading.Thread(target=lambda: results.append(runner.run(NAME, interactive=True).stdout))
        for _ in range(2)
    ]
    results = []
    for thread in threads:
        thread.start()
    os.write(terminal, b"Ann\nBob\n")
    for thread in threads:
        thread.join(60)
    assert sorted(results) == ["beforeHello Ann\n", "beforeHello Bob\n"]


class Kernel:
    """As a kernel of Jupyter reads input."""

    def __init__(self, answers, *, allowed=True):
        self._allow_stdin = allowed
        self.answers = list(answers)
        self.asked = []

    def raw_input(self, prompt):
        self.asked.append(("raw_input", prompt))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def getpass(self, prompt):
        self.asked.append(("getpass", prompt))
        return self.answers.pop(0)


@pytest.fixture
def notebook(monkeypatch):
    """Makes this process a kernel of Jupyter, as far as it can be told."""

    def make(*answers, **options):
        kernel = Kernel(answers, **options)
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda: SimpleNamespace(kernel=kernel)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
        return kernel

    return make


@both
def test_a_person_at_a_notebook_answers(make, how, notebook, capsys):
    kernel = notebook("Ann")
    assert run(make(), how, NAME).stdout == "beforeHello Ann\n"
    assert kernel.asked == [("raw_input", "[script] Name? ")]
    assert capsys.readouterr().out == "[script] before\n[script] Hello Ann\n"


def test_a_notebook_hides_secrets(make, notebook):
    kernel = notebook("12345")
    assert make().run(SECRET, interactive=True).stdout == "5\n"
    assert kernel.asked == [("getpass", "[script] Token: ")]


@both
def test_a_notebook_that_takes_no_input(make, how, notebook):
    kernel = notebook(allowed=False)
    with pytest.raises(ScriptRefused) as caught:
        run(make(), how, NAME)
    assert caught.value.code == "interactive_unavailable"
    assert kernel.asked == []


class StdinNotImplementedError(RuntimeError):
    """As the one of ipykernel."""


@both
def test_a_notebook_whose_front_end_takes_no_input_after_all(make, how, notebook):
    notebook(StdinNotImplementedError("no"))
    with pytest.raises(ScriptRefused) as caught:
        run(make(), how, NAME)
    assert caught.value.code == "interactive_unavailable"


def test_the_interrupt_of_a_notebook_ends_the_script(make, notebook):
    notebook(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        make().run(NAME, interactive=True)


def test_a_thread_of_a_notebook_that_is_no_runs_is_refused(make, notebook):
    notebook("Ann")
    caught = []

    def ask():
        try:
            make().run(NAME, interactive=True)
        except ScriptRefused as error:
            caught.append(error.code)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert caught == ["interactive_unavailable"]
