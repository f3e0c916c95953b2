"""The commands, called as a program calls them."""

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from callslip import Agent, Image, ScriptedModel, TicketStore, tool
from scripted import act, finish

HOSTILE = "\x1b[2J\u202eWeather?\u2028"


@tool
def weather(city: str) -> str:
    """Get the weather."""
    return f"4 degrees in {city}"


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture
def file(tmp_path):
    """A store with a finished run and one that awaits approval, which no process owns."""
    path = tmp_path / "runs.sqlite"
    script = [act("weather", city="Oslo"), finish("4 degrees")]
    # Closed before it is read beside: both in one process would release the locks of the file.
    with TicketStore(path) as store:
        met = Agent(ScriptedModel(script), tools=[weather], store=store, name="met")
        payer = Agent(ScriptedModel([act("pay", amount=3)]), tools=[pay], store=store, name="bank")

        async def leave_waiting():
            run = payer.start("Pay.")
            async for event in run.watch():
                if getattr(event, "needs_approval", False):
                    break
            return run.id

        run_id = met.run_sync(HOSTILE).run.id
        waiting = asyncio.run(leave_waiting())
    return path, run_id, waiting


def test_runs_are_listed_the_latest_first_and_nothing_of_a_task_acts_on_the_terminal(file, call):
    path, done, waiting = file
    heading, first, second = call("runs", path).out.splitlines()
    assert heading.split()[:3] == ["RUN", "STATE", "AGENT"]
    assert first.startswith(f"{waiting}  T1 awaiting approval  bank ")
    assert second.startswith(f"{done}  finished  ")
    assert second.endswith("\\u001b[2J\\u202eWeather?")


@pytest.mark.parametrize(
    ("words", "agents"),
    [
        ([], ["bank", "met"]),
        (["--waiting"], ["bank"]),
        (["--status", "finished"], ["met"]),
        (["--agent", "met"], ["met"]),
        (["--failed"], []),
        (["--owner", "ann"], []),
        (["--limit", "1"], ["bank"]),
    ],
)
def test_runs_are_filtered_and_printed_as_json(file, call, words, agents):
    path, done, waiting = file
    runs = json.loads(call("runs", path, "--json", *words).out)
    assert [one["agent"] for one in runs] == agents
    assert all(one["waiting"] == (["T1"] if one["run_id"] == waiting else []) for one in runs)
    assert all(one["task"] == HOSTILE for one in runs if one["run_id"] == done)


def test_an_export_is_imported_and_replayed(file, call, tmp_path):
    path, done, waiting = file
    log, copy = tmp_path / "log.jsonl", tmp_path / "copy.sqlite"
    log.write_text(call("export", path).out, "utf-8")
    assert call("import", copy, log).out.split() == [done, waiting]
    with TicketStore(path) as store, TicketStore(copy) as other:
        assert store.run(done).export() == other.run(done).export()
    for source in (path, log):
        lines = call("replay", source).out.splitlines()
        assert [line.split(": ")[0] for line in lines] == [f"run {done}", f"run {waiting}"]


def test_images_are_exported(call, tmp_path):
    path = tmp_path / "runs.sqlite"
    agent = Agent(ScriptedModel(["a cat"]), protocol="chatty", store=path)
    image = Image(b"\x89PNG\r\n\x1a\n" + b"0" * 100)
    expected = agent.run_sync(["What is this?", image]).run.export()
    agent.store.close()
    assert call("export", path).out == expected


def test_a_replay_names_the_first_event_that_differs(file, call, tmp_path):
    path, done, _ = file
    log = tmp_path / "log.jsonl"
    log.write_text(call("export", path, done).out.replace('"Oslo"', '"Rome"', 1), "utf-8")
    assert "event" in call("replay", log, status=1).out


def test_a_call_is_approved_with_other_arguments_once(file, call):
    path, _, waiting = file
    words = ("approve", path, waiting[:10], "T1")
    shown = call(*words, "--by", "ann", status=2)
    assert shown.out.endswith("pay \u2192 3\n")
    (seal,) = re.findall(r"--seal (\w{16})", shown.err)
    assert f"  Seal: {seal}\n" in shown.out
    assert call("approve", path, waiting, "T1", "--seal", seal[::-1], status=2).err
    words = (*words, "--seal", seal)
    out = call(*words, "--arguments", '{"amount": 4}', "--by", "ann").out
    assert out.startswith(shown.out)
    assert f'approved T1 of run {waiting}: pay {{"amount": 4}}\n' in out
    assert call("runs", path, "--waiting", "--json").out == "[]\n"
    assert "already" in call(*words, status=2).err

    agent = Agent(ScriptedModel([finish("paid")]), tools=[pay], store=path, name="bank")
    result = agent.resume_sync(waiting)
    assert (result.tickets[0].result, result.run.trace().tickets[0].approval.by) == (
        "paid 4",
        "ann",
    )
    agent.store.close()


def test_a_call_is_denied_with_a_reason(file, call):
    path, _, waiting = file
    call("deny", path, waiting, "T1", "--why", "too much", "--by", "\x1bann")
    assert "denied by \\u001bann after " in call("show", path, waiting).out
    with TicketStore(path) as store:
        (ticket,) = store.run(waiting).tickets
    assert (ticket.outcome, "too much" in ticket.error) == ("denied", True)


def test_a_file_of_another_process_is_read_and_its_owner_is_named(file, call):
    path, done, waiting = file
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; from callslip import TicketStore\n"
        "store = TicketStore(sys.argv[1]); print('open', flush=True); input()"
    )
    command = [sys.executable, "-c", program, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == b"open\n"
        assert done in call("runs", path).out
        error = call("approve", path, waiting, "T1", status=2).err
        assert f"belongs to process {owner.pid} " in error
        owner.communicate(b"\n", timeout=60)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["runs", "missing.sqlite"], "cannot be read: No such file or directory"),
        (["export", "FILE", "x"], "there is no run x in "),
        (["approve", "FILE", "RUN", "T1", "--arguments", "[]"], "a JSON object: got list"),
        (["approve", "FILE", "RUN", "T7"], "T7"),
        (["import", "FILE", "missing.jsonl"], "No such file or directory"),
    ],
)
def test_wrong_words_are_errors_and_make_no_file(file, call, monkeypatch, words, problem):
    monkeypatch.chdir(file[0].parent)
    named = {"FILE": file[0], "RUN": file[2]}
    shown = call(*(named.get(word, word) for word in words), status=2)
    assert (shown.out, shown.err[:10]) == ("", "callslip: ")
    assert problem in shown.err
    assert not list(Path.cwd().glob("missing*"))


def test_a_reply_is_read_with_its_repairs_marked(call, tmp_path):
    reply = tmp_path / "reply.txt"
    reply.write_text('{"thought": "é", "action": "weather", "args": "{}",}', "utf-8")
    assert call("read", reply).out.splitlines() == [
        "repair trailing_comma",
        '  line 1: {"thought": "é", "action": "weather", "args": "{}"»,«}',
        "call weather",
    ]
    assert call("read", reply, "--strict", status=1).out.startswith("violation repair_refused: ")


def test_a_template_without_a_placeholder_is_at_fault(call, tmp_path):
    template = tmp_path / "prompt.txt"
    template.write_text("No tools.")
    assert "the template has no {tools}" in call("lint", template, status=1).err
    template.write_text("Tools: {tools}")
    assert call("lint", template).out.startswith("no faults")


def test_doctor_names_no_path(call):
    out = call("doctor").out
    assert out.startswith("callslip ")
    assert "sandbox isolated" in out
    assert str(Path.cwd()) not in out


@pytest.mark.skipif(sys.platform == "win32", reason="its processes have no streams to close")
@pytest.mark.parametrize(
    ("closed", "words", "status", "said"),
    [
        (">&-", ["runs", "nope"], 2, "nope cannot be read"),
        (">&-", ["doctor"], 0, ""),
        ("2>&-", ["runs", "nope"], 2, ""),
        ("<&-", ["read", "-"], 1, ""),
        ("<&-", ["ask", "-m", "local"], 2, "expected the task: got blank text"),
    ],
)
def test_streams_may_be_closed(tmp_path, closed, words, status, said):
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "callslip", *words]
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    ended = subprocess.run(shell, check=False, **options)
    assert ended.returncode == status
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from callslip.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'sqlite3', 'asyncio', 'pydantic', 'callslip.agent', 'callslip.store'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    program = f"import sys; sys.path[:0] = {sys.path!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_is_a_program():
    program = (
        f"import sys, runpy; sys.path[:0] = {sys.path!r}; sys.argv = ['callslip', '--version']"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; runpy.run_module('callslip', run_name='__main__')"],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout.startswith("callslip ")


def test_a_damaged_file_and_that_of_another_program_are_refused(call, tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (x)")
        other.commit()
    assert "of another program" in call("runs", path, status=2).err
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 2000)
    assert "cannot be read" in call("runs", path, status=2).err


LISTED = [
    ("A\0B", "A\\u0000B"),
    ("\0", "\\u0000"),
    ("one\ntwo\x1b[31m \u202ethree\u2028four", "one two\\u001b[31m \\u202ethree four"),
    ("x" * 60, "x" * 60),
    ("x" * 61, "x" * 59 + "…"),
    ("\x1b" * 80, "\\u001b" * 9 + "…"),
    ("宽" * 80, "宽" * 29 + "…"),
]


@pytest.mark.parametrize(("task", "shown"), LISTED, ids=[repr(task[:9]) for task, _ in LISTED])
def test_a_task_is_listed_as_it_begins(task, shown, tmp_path, call):
    path = str(tmp_path / "runs.sqlite")
    with TicketStore(path) as store:
        for name in ("宽宽", "b"):
            Agent(ScriptedModel(["4"]), protocol="chatty", store=store, name=name).run_sync(task)
    lines = call("runs", path).out.splitlines()
    assert [line.endswith(f"          {shown}") for line in lines] == [False, True, True]
    assert [line.split()[2] for line in lines[1:]] == ["b", "宽宽"]
    # Wide characters are two columns. Ids are random, and may hold any digits.
    begun = [re.search(r" \d{4}-\d\d-\d\d ", line).start() for line in lines[1:]]
    assert begun[0] == begun[1] + 2
    assert [run["task"] for run in json.loads(call("runs", path, "--json").out)] == [task, task]


def test_nothing_that_a_run_holds_moves_the_cursor(tmp_path, call):
    def look(place: str) -> str:
        return HOSTILE

    path = str(tmp_path / "runs.sqlite")
    with TicketStore(path) as store:
        model = ScriptedModel([act("look", place=HOSTILE), finish(HOSTILE)])
        agent = Agent(model, tools=[look], store=store, name=HOSTILE)
        run_id = agent.run_sync(HOSTILE).run.id
    for words in (["runs"], ["show", run_id], ["watch", run_id], ["export", run_id]):
        told = call(words[0], path, *words[1:])
        assert not [one for one in told.out + told.err if one != "\n" and not one.isprintable()]
        assert "Weather?" in told.out
