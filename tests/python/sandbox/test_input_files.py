"""Files that scripts find in `in/`: those of a call, and the images and files of a run."""

import asyncio
import os
import random
import sys
import unicodedata
from pathlib import Path

import pytest

from callslip import (
    Agent,
    CommandRunner,
    File,
    Image,
    PythonRunner,
    ScriptedModel,
    TicketStore,
    UsageError,
    tool,
)
from callslip._base.file_names import distinct_name, key_of, safe_name
from callslip.sandbox import serve
from callslip.sandbox._native import has_sandbox
from pictures import png
from random_cases import seeds
from sandbox.offered import ALL, need
from scripted import act, block, call, finish, give, output, spawn, wait_for

NAME = "execute_python_code"
SERVE = [sys.executable, "-I", "-u", serve.__file__]
SHOW = "import os\nfor n in sorted(os.listdir('in')): print(n, open('in/' + n, 'rb').read()[:9])"
LONG = 60

boxed = pytest.mark.skipif(
    not has_sandbox() and not os.environ.get("CI"), reason="this machine can't keep scripts apart"
)


@pytest.fixture(params=[*ALL, "external"])
def runner(request):
    """A runner of each kind."""
    if request.param == "external":
        made = PythonRunner(backend=CommandRunner(SERVE, takes_files=True), deps=[])
    else:
        need(request.param)
        made = PythonRunner(profile=request.param, deps=[])
    with made:
        yield made


# Files of a call.


def test_a_script_reads_its_files(runner, tmp_path):
    (tmp_path / "b").write_bytes(b"path")
    files = {"a.csv": b"bytes", "größe 2.txt": tmp_path / "b"}
    result = runner.run(SHOW, files=files)
    assert (result.stdout, result.stderr) == ("a.csv b'bytes'\ngröße 2.txt b'path'\n", "")
    assert asyncio.run(runner.arun(SHOW, files=files)).stdout == result.stdout
    assert runner.run("import os; print(os.path.exists('in'))").stdout == "False\n"


HARM = """
import os, shutil
def harm(action):
    try:
        action()
    except OSError:
        pass
for way in (
    lambda: open("in/a", "a").write("x"),
    lambda: open("in/new", "w").write("x"),
    lambda: os.chmod("in/a", 0o777),
    lambda: open("in/a", "w").write("x"),
    lambda: os.utime("in/a", (1, 1)),
    lambda: os.link("in/a", "hard"),
    lambda: open("hard", "a").write("x"),
    lambda: os.truncate("in/a", 0),
    lambda: os.remove("in/a"),
    lambda: shutil.rmtree("in"),
    lambda: os.rename("in", "gone"),
    lambda: os.unlink("in"),
    lambda: os.makedirs("in/a/b"),
    lambda: open("in/a/b/c", "w").write("x"),
    lambda: os.chmod(".", 0o500),
):
    harm(way)
"""
CLOSE = """
import os
try:
    os.rename("in", "gone")
    os.makedirs("in/a")
    os.chmod("in/a", 0)
    os.chmod("in", 0)
except OSError:
    pass
"""


LINK = """
import os
try:
    os.unlink("in")
    os.symlink("/etc", "in")
except OSError:
    pass
"""


def test_a_hostile_script_harms_neither_the_originals_nor_later_scripts(runner, tmp_path):
    original = tmp_path / "a"
    original.write_bytes(b"original")
    with runner.session() as session:
        assert session.run(HARM, files={"a": original}).status == "ok"
        # What is in a closed folder can't be counted: the script is stopped, if it is still there.
        assert session.run(CLOSE).status in {"ok", "disk_limit"}
        assert session.run(SHOW).stdout == "a b'original'\n"
        assert session.run(LINK).status == "ok"
        assert session.run(SHOW).stdout == "a b'original'\n"
    assert original.read_bytes() == b"original"
    assert original.stat().st_mtime > 1


@pytest.mark.parametrize("profile", ["isolated", "restricted"])
def test_a_sandbox_refuses_every_change(profile):
    need(profile)
    code = """
import os
def change(name):
    try:
        open("in/" + name, "a")
    except OSError as error:
        return error.errno in (1, 13, 30)
print(change("a"), change("new"))
"""
    with PythonRunner(profile=profile, deps=[]) as runner:
        assert runner.run(code, files={"a": b"1"}).stdout == "True True\n"


@boxed
def test_files_of_a_session_stay_and_are_replaced_by_name():
    with PythonRunner(deps=[]) as runner, runner.session() as session:
        session.run("open('mine', 'w').write('1')", files={"a": b"1", "b": b"2"})
        assert session.run(SHOW, files={"a": b"new"}).stdout == "a b'new'\nb b'2'\n"
        with pytest.raises(
            UsageError, match="^expected names that differ on every system: got 'a'"
        ):
            session.run("pass", files={"b": b"3", "A": b"3"})
        assert session.run(SHOW).stdout == "a b'new'\nb b'2'\n"
        # They are no files of the script.
        assert session.run("import os; print(sorted(os.listdir()))").stdout == "['in', 'mine']\n"
    with PythonRunner(deps=[]) as runner:
        # Large ones take none of the room for what a script writes.
        done = runner.run("print(len(open('in/a', 'rb').read()))", files={"a": bytes(68_000_000)})
        assert done.stdout == "68000000\n"


def wrong_files(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    large = folder / "large"
    with large.open("wb") as file:
        file.truncate(100_000_001)
    name = "expected a file name without folders and special characters: got "
    return [
        ({"../a": b""}, f"{name}'../a'; pass 'a', which a script opens as 'in/a'"),
        ({"a/b.csv": b""}, f"{name}'a/b.csv'; pass 'b.csv', which a script opens as 'in/b.csv'"),
        ({"": b""}, f"{name}''; pass 'file', which a script opens as 'in/file'"),
        ({"..": b""}, f"{name}'..'; pass 'file', which a script opens as 'in/file'"),
        ({"a\n": b""}, f"{name}'a\\n'; pass 'a_', which a script opens as 'in/a_'"),
        ({"x" * 300: b""}, f"{name}"),
        ({1: b""}, "expected the names of files as text: got 1; pass text"),
        ({"e\u0301": b""}, "form NFC: got 'e\\u0301'; pass unicodedata.normalize("),
        ({"a": b"", "A": b""}, "expected names that differ on every system: got 'a' and 'A'"),
        ({"a": "text"}, "expected the file 'a' as bytes or as a Path: got str; pass Path(…)"),
        ({"a": 7}, "expected the file 'a' as bytes or as a Path: got int; pass bytes"),
        ({"a": folder / "no"}, "which cannot be read (No such file or directory); pass another"),
        ({"a": folder}, "expected the path of a file for 'a': got a folder at "),
        ({"a": pipe}, "expected the path of a file for 'a': got something else at "),
        ({"a": large}, "expected at most 100 MB of files for scripts together: got more; pass"),
        ({f"{n}": b"" for n in range(1001)}, "expected at most 1000 files for scripts: got more"),
        ([b""], "expected files as a dict from names to bytes or paths: got "),
    ]


def test_wrong_files_are_refused_before_anything_runs(tmp_path):
    events = []
    with PythonRunner(profile="unconfined", deps=[], on_event=events.append) as runner:
        for files, words in wrong_files(tmp_path):
            with pytest.raises(UsageError) as caught:
                runner.run("print(1)", files=files)
            assert words in str(caught.value), files
            assert str(caught.value).count("expected") == 1
        with runner.session() as session, pytest.raises(UsageError):
            asyncio.run(session.arun("print(1)", files={"a": tmp_path}))
    assert events == []


@boxed
def test_a_session_goes_on_after_files_that_are_too_large(monkeypatch):
    monkeypatch.setattr("callslip.sandbox._input_files.MOST_BYTES", 1000)
    with PythonRunner(deps=[]) as runner, runner.session() as session:
        session.run("pass", files={"a": bytes(600)})
        with pytest.raises(UsageError, match="^expected at most 0 MB of files for scripts"):
            session.run("pass", files={"b": bytes(600)})
        session.run("pass", files={"a": b"1", "b": b"2"})
        assert session.run(SHOW).stdout == "a b'1'\nb b'2'\n"


def test_a_runner_that_takes_no_files_says_so():
    with PythonRunner(backend=CommandRunner(SERVE), deps=[]) as runner:
        with pytest.raises(UsageError) as caught:
            runner.run("print(1)", files={"a": b"1"})
        assert str(caught.value) == (
            "expected a runner that takes files: got PythonRunner(backend=<CommandRunner "
            f"{sys.executable!r}>); pass CommandRunner(…, takes_files=True) if its command reads "
            "them, or set takes_files on your own CodeRunner"
        )
        # Files of a run are not there, and the model is not told of any.
        model = ScriptedModel([act(NAME, code="import os; print(os.listdir())"), finish()])
        agent = Agent(model, protocol="react", python=runner)
        run = agent.run_sync(["Look.", File(b"1,2", name="a.csv")]).run
        assert run.tickets[0].result["stdout"] == "[]\n"
        assert "in/a.csv" not in model.requests[0].messages[-1]["content"]


# Files of a run.

REPLIES = {
    "react": [act(NAME, code=SHOW), finish()],
    "chatty": [block(("c", NAME, {"code": SHOW})), "done"],
    "ticket": [
        call(NAME, {"code": SHOW}),
        output(type="AWAIT", ticket_id="T1"),
        give("done"),
    ],
}


def texts(model):
    return [message["content"] for message in model.requests[-1].messages]


@boxed
@pytest.mark.parametrize("protocol", REPLIES)
@pytest.mark.parametrize("how", ["run_sync", "run"])
def test_scripts_find_the_files_of_the_task(protocol, how):
    model = ScriptedModel(REPLIES[protocol])
    agent = Agent(model, protocol=protocol, python=PythonRunner(deps=[]), delegate=False)
    task = [
        "Clean it.",
        File(b"1,2", name="dirty.csv"),
        File(b"3", name="Dirty.csv"),
        Image(png(2, 2)),
    ]
    run = agent.run_sync(task).run if how == "run_sync" else asyncio.run(agent.run(task)).run
    assert run.tickets[0].result["stdout"] == (
        "Dirty-2.csv b'3'\nU3.png b'\\x89PNG\\r\\n\\x1a\\n\\x00'\ndirty.csv b'1,2'\n"
    )
    note = (
        "Files for execute_python_code, read-only: in/dirty.csv (U1), in/Dirty-2.csv (U2), "
        "in/U3.png (U3)."
    )
    assert sum(note in text for text in texts(model)) == 1
    assert note in "".join(model.requests[0].messages[-1]["content"])
    # What the user has said is as it was.
    assert note not in run.task
    assert all(note not in message["content"] for message in run.messages)


@boxed
def test_a_prompt_without_files_is_what_it_was():
    def prompts(python):
        model = ScriptedModel([act(NAME, code="print(1)"), finish()])
        tools = () if python else [PythonRunner(deps=[]).as_tool()]
        options = {"python": PythonRunner(deps=[])} if python else {"tools": tools}
        Agent(model, protocol="react", **options).run_sync("x")
        return texts(model)[0], texts(model)[1]

    system, task = prompts(python=True)
    assert prompts(python=False)[1] == task == "x"
    assert "in/" not in system


@tool
def fetch() -> File:
    """Fetch a file."""
    return File(b"fetched", name="data.csv")


@boxed
def test_later_files_of_the_user_and_of_results_are_there_and_plots_are_not(tmp_path):
    plot = f"import os; os.mkdir('out'); open('out/p.png', 'wb').write({png(2, 2)!r})\n"
    model = ScriptedModel(
        [
            act(NAME, code=f"{plot}{SHOW}"),
            act("fetch"),
            act(NAME, code=SHOW),
            finish(),
            act(NAME, code=SHOW),
            finish(),
        ]
    )
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = Agent(
            model, protocol="react", tools=[fetch], python=PythonRunner(deps=[]), store=store
        )
        run = agent.run_sync(["Look.", File(b"own", name="data.csv")]).run
        run.send(["And this.", File(b"later", name="data.csv")])
        run = agent.resume_sync(run.id).run
        outputs = [one.result["stdout"] for one in run.tickets if one.tool == NAME]
    first = "data.csv b'own'\n"
    second = f"data-2.csv b'fetched'\n{first}"
    assert outputs == [first, second, f"data-2.csv b'fetched'\ndata-3.csv b'later'\n{first}"]
    sent = "\n".join(texts(model))
    for note in ("in/data.csv (U1)", "in/data-2.csv (T2)", "in/data-3.csv (U2)"):
        assert sent.count(f"Files for execute_python_code, read-only: {note}.") == 1
    assert "in/p.png" not in sent


@boxed
def test_no_run_sees_the_files_of_another_one():
    code = "import os; print(os.path.exists('in'))"
    with PythonRunner(deps=[]) as runner:
        other = Agent(ScriptedModel(REPLIES["react"]), protocol="react", python=runner)
        other.run_sync(["x", File(b"1", name="a.csv")])
        model = ScriptedModel([act(NAME, code=code), finish()])
        run = Agent(model, protocol="react", python=runner).run_sync("x").run
    assert run.tickets[0].result["stdout"] == "False\n"


@boxed
def test_a_child_run_has_the_files_of_its_own_task():
    line = "[file text/csv, 3 bytes, U2, b.csv]"
    main = [block(spawn("s", f"Look at {line}.")), block(wait_for("s")), "done"]
    below = [block(("c", NAME, {"code": SHOW})), "seen"]

    def model(messages):
        is_main = messages[1]["content"].startswith("Both.")
        return (main if is_main else below).pop(0)

    agent = Agent(model, protocol="chatty", python=PythonRunner(deps=[]), delegate=True)
    task = ["Both.", File(b"1,1", name="a.csv"), File(b"2,2", name="b.csv")]
    (child,) = agent.run_sync(task).run.children
    assert child.tickets[0].result["stdout"] == "b.csv b'2,2'\n"


@boxed
def test_what_a_script_leaves_is_a_part_of_the_run_and_of_the_next_message(tmp_path):
    code = "import os; os.mkdir('out'); open('out/clean.csv', 'w').write('a,b')"

    @tool
    def count(table: File) -> int:
        """Count the bytes of a table."""
        return table.size

    with TicketStore(tmp_path / "runs.sqlite") as store:
        replies = [act(NAME, code=code), act("count", table="T1"), finish()]
        model, python = ScriptedModel(replies), PythonRunner(deps=[])
        agent = Agent(model, protocol="react", tools=[count], python=python, store=store)
        result = agent.run_sync("Clean.", owner="ada")
        part = result.run.parts["T1"]
        assert (part.name, part.data, part.media_type) == ("clean.csv", b"a,b", "text/csv")
        assert result.run.tickets[1].result == 3
        line = '"file":"[file text/csv, 3 bytes, T1, clean.csv]"'
        assert line in model.requests[1].messages[-1]["content"]
        again = Agent(ScriptedModel(REPLIES["react"]), protocol="react", python=python)
        seen = again.run_sync(["On.", part]).run.tickets[0].result
        assert seen["stdout"] == "clean.csv b'a,b'\n"
        with TicketStore() as other:
            run_id = other.import_run(result.run.export())
            assert other.run(run_id).parts["T1"].data == b"a,b"
        store.erase(owner="ada")
    assert b"a,b" not in b"".join(one.read_bytes() for one in tmp_path.iterdir())


@boxed
def test_a_log_without_the_bytes_of_its_files_goes_on(caplog):
    options = {"protocol": "react", "python": PythonRunner(deps=[])}
    with TicketStore() as store:
        agent = Agent(ScriptedModel([finish()]), store=store, **options)
        run = agent.run_sync(["x", File(b"1", name="a.csv")]).run
        lines = [one for one in run.export().splitlines(keepends=True) if '"base64"' not in one]
        with TicketStore() as other:
            code = "import os; print(os.listdir('in'))"
            model = ScriptedModel([act(NAME, code=code), finish()])
            agent = Agent(model, store=other, **options)
            run = other.run(other.import_run("".join(lines)))
            run.send("Go on.")
            script = agent.resume_sync(run.id).run.tickets[0].result
    assert script["hints"] == ["in/a.csv is not there: its bytes can't be read"]
    assert "no file for scripts: " in caplog.text
    assert script["stdout"] == "[]\n"


# Names.

ALPHABET = "abAB.. -_/\\:\0\n\t\x1b\u202e\u200b\ud800éée\u0301ß\u017f\ufb01漢😀CON"


def names_of(seed):
    chance = random.Random(seed)
    return [
        "".join(chance.choices(ALPHABET, k=chance.choice([0, 1, 2, 3, 5, 300])))
        for _ in range(chance.randrange(1, 12))
    ]


def given(names):
    taken, found = set(), []
    for number, name in enumerate(names, 1):
        found.append(distinct_name(safe_name(name, f"U{number}", "image/png"), taken))
        taken.add(key_of(found[-1]))
    return found


@pytest.mark.parametrize("block", range(4))
def test_names_are_safe_distinct_and_stable(block, tmp_path):
    for seed in seeds(200)[block::4]:
        names = names_of(seed)
        found = given(names)
        # Later files change no name.
        assert given(names[: len(names) // 2]) == found[: len(names) // 2]
        assert len({unicodedata.normalize("NFC", one).casefold() for one in found}) == len(found)
        for one in found:
            assert Path(one).name == one
            assert one.isprintable()
            assert len(one.encode()) <= 255
            assert not set(one) & set('/\\:*?"<>|')
            assert one.strip(". ")
            assert one[0] not in "-."
            assert safe_name(one, "U1", "") == one
        folder = tmp_path / str(seed)
        folder.mkdir()
        for one in found:
            (folder / one).touch(exist_ok=False)


@pytest.mark.parametrize(
    ("name", "media_type", "expected"),
    [
        (None, "image/png", "U1.png"),
        (None, "application/x-unknown", "U1"),
        ("../../etc/passwd", "text/plain", "passwd"),
        ("C:\\data\\a.csv", "text/csv", "a.csv"),
        ("..", "text/csv", "U1.csv"),
        (".env", "text/plain", "_env"),
        ("-rf", "text/plain", "_rf"),
        ("con.txt", "text/plain", "_con.txt"),
        ("\u202efdp.exe", "text/plain", "_fdp.exe"),
        ("x" * 300 + ".csv", "text/csv", "x" * 196 + ".csv"),
        ("größe 2.csv", "text/csv", "größe 2.csv"),
    ],
)
def test_a_name_stays_recognisable(name, media_type, expected):
    assert safe_name(name, "U1", media_type) == expected
