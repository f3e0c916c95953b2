"""What a person reads at a shell who names the wrong thing."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from callslip import Agent, ScriptedModel, TicketStore
from callslip.cli import main

EXPORT = "expected an export, as callslip export prints it: got"
STORE = "expected the file of a store, or a URL that begins with postgresql://: got"
DATABASE = "expected the URL of a database, as postgresql://user@host/database: got"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of each kind, in which the commands are called."""
    monkeypatch.chdir(tmp_path)
    with TicketStore("runs.sqlite") as store:
        run = Agent(ScriptedModel(["hello"]), protocol="chatty", store=store).run_sync("go").run
        Path("log.jsonl").write_text(run.export())
    TicketStore("none.sqlite").close()
    with closing(sqlite3.connect("other.sqlite")) as other:
        other.execute("CREATE TABLE t (x)")
    Path("torn.sqlite").write_bytes(Path("runs.sqlite").read_bytes()[:3000])
    Path("empty").touch()
    Path("binary").write_bytes(b"abc\xff\xfe")
    Path("prose").write_text("This is not it.\n")
    Path("later.jsonl").write_text('{"seq":0,"at":1,"event":{"unheard_of":{}}}\n')
    Path("folder").mkdir()
    return tmp_path


def files_in(folder):
    # What SQLite makes beside a file that is read is gone when it is closed.
    return {path: path.stat().st_size for path in folder.iterdir() if "sqlite-" not in path.name}


TEXTS = [
    ("missing", "missing cannot be read: No such file or directory; pass a file, or - for input"),
    ("prose/x", "prose/x cannot be read: Not a directory; pass a file, or - for input"),
    ("folder", "folder cannot be read: Is a directory; pass a file, or - for input"),
    ("", "a file without a name cannot be read: Is a directory; pass a file, or - for input"),
    ("binary", "expected binary to be text in UTF-8: got other bytes at 3"),
]


@pytest.mark.parametrize("words", [["lint"], ["read"], ["import", "new.sqlite"]])
@pytest.mark.parametrize(("name", "message"), TEXTS)
def test_a_text_that_cannot_be_read(words, name, message, folder, call):
    before = files_in(folder)
    assert call(*words, name, status=2) == ("", f"callslip: {message}\n")
    assert files_in(folder) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all files")
def test_a_text_of_another_user(folder, call):
    Path("prose").chmod(0)
    for words in (["lint", "prose"], ["runs", "prose"], ["show", "prose"]):
        assert "prose cannot be read: Permission denied" in call(*words, status=2).err


@pytest.mark.parametrize("encoding", ["utf-8", "surrogateescape"])
def test_input_that_is_no_text(encoding, call, monkeypatch):
    errors = "surrogateescape" if encoding == "surrogateescape" else "strict"
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abc\xff"), "utf-8", errors=errors)
    )
    message = "expected the input to be text in UTF-8: got other bytes at 3"
    assert call("read", "-", status=2) == ("", f"callslip: {message}\n")


STORES = [
    ("missing", "missing cannot be read: No such file or directory"),
    ("folder", "folder is a folder: pass the file of a store in it"),
    ("empty", "empty is not the file of a store: it is empty; pass another file"),
    ("binary", "binary is not the file of a store: pass another file"),
    ("prose", "prose is not the file of a store: pass another file"),
    ("other.sqlite", "other.sqlite is the SQLite database of another program: pass another path"),
    ("torn.sqlite", "torn.sqlite cannot be read: database disk image is malformed"),
    (
        "log.jsonl",
        "log.jsonl is not the file of a store: if it is an export, call callslip import STORE LOG "
        "first, or callslip show",
    ),
    ("redis://user:secret@x", f"{STORE} redis://…"),
    ("", f"{STORE} no name"),
]


@pytest.mark.parametrize(
    "words",
    [
        ["runs"],
        ["status"],
        ["export"],
        ["watch", "...", "x"],
        ["approve", "...", "x", "T1"],
        ["deny", "...", "x", "T1"],
        ["prune", "--older-than", "1d"],
        ["console", "--no-open"],
        ["chat", "-m", "local", "--resume", "x", "--store"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize(("name", "message"), STORES, ids=[name or "no" for name, _ in STORES])
def test_what_is_no_store(words, name, message, folder, call):
    before = files_in(folder)
    words = [name if word == "..." else word for word in words]
    words += [] if name in words else [name]
    assert call(*words, status=2) == ("", f"callslip: {message}\n")
    assert files_in(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        ["import", "...", "log.jsonl"],
        ["ask", "hi", "-m", "local", "--store"],
        ["chat", "-m", "local", "--store"],
    ],
    ids=lambda words: words[0],
)
def test_where_no_store_can_be_made(words, folder, call):
    for name, message in STORES[-2:]:
        named = [name if word == "..." else word for word in words]
        named += [] if "..." in words else [name]
        assert call(*named, status=2) == ("", f"callslip: {message}\n")


def test_what_is_no_database(folder, call):
    before = files_in(folder)
    for name in ("missing", "runs.sqlite", "empty", "folder", ""):
        message = f"{DATABASE} {name!r}"
        assert call("migrate", name, status=2) == ("", f"callslip: {message}\n")
    message = f"{DATABASE} redis://…"
    assert call("migrate", "redis://user:secret@x", status=2) == ("", f"callslip: {message}\n")
    assert files_in(folder) == before


LOGS = [
    ("empty", 2, f"{EXPORT} no line in empty"),
    ("prose", 2, f"{EXPORT} other text in prose"),
    ("later.jsonl", 1, "later.jsonl: line 1 is no event of a run: unknown variant `unheard_of`"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", [["show"], ["import", "new.sqlite"]])
@pytest.mark.parametrize(("name", "status", "message"), LOGS)
def test_what_is_no_export(words, name, status, message, call):
    before = files_in(Path.cwd())
    shown = call(*words, name, status=status)
    assert shown.out == ""
    assert shown.err.startswith(f"callslip: {message}")
    assert files_in(Path.cwd()) == before


def test_a_store_is_exported_before_it_is_imported(folder, call):
    assert call("import", "new.sqlite", "runs.sqlite", status=2).err == (
        "callslip: expected an export: got runs.sqlite, the file of a store; call callslip export "
        "runs.sqlite > runs.jsonl, and pass that\n"
    )
    assert not Path("new.sqlite").exists()


def test_a_run_that_is_there_stays_as_it_is_and_the_others_are_imported(folder, call):
    with TicketStore() as store:
        other = Agent(ScriptedModel(["x"]), protocol="chatty", store=store).run_sync("go").run
        other_log, other_id = other.export(), other.id
    log = Path("log.jsonl")
    log.write_text(log.read_text().rstrip("\n") + "\n" + other_log)
    first = call("runs", "runs.sqlite", "--json").out
    shown = call("import", "runs.sqlite", "log.jsonl", status=1)
    assert shown.out.split() == [other_id]
    assert "is in runs.sqlite already, and stays as it is there: call import with an" in shown.err
    shown = call("import", "runs.sqlite", "log.jsonl", status=1)
    assert (shown.out, shown.err.count("already")) == ("", 2)
    assert other_id in call("runs", "runs.sqlite").out
    assert first != call("runs", "runs.sqlite", "--json").out


def test_a_store_without_runs(folder, call):
    nothing = "there is no run in none.sqlite"
    assert call("show", "none.sqlite", status=2).err == f"callslip: {nothing}: pass another store\n"
    assert call("replay", "none.sqlite") == ("", f"callslip: {nothing}\n")


def test_a_run_that_is_not_there(folder, call):
    for name in ("runs.sqlite", "log.jsonl"):
        hint = f"there is no run nope in {name}: call callslip runs for a list"
        assert call("show", name, "nope", status=2).err == f"callslip: {hint}\n"


@pytest.mark.parametrize(
    "words",
    [["show"], ["watch"], ["export"], ["replay"], ["approve", "T1"], ["deny", "T1"]],
    ids=lambda words: words[0],
)
def test_an_id_that_is_empty_chooses_no_run(words, folder, call):
    command, *rest = words
    shown = call(command, "runs.sqlite", "", *rest, status=2)
    assert shown == (
        "",
        "callslip: expected the id of a run, or its beginning: got nothing; call callslip runs "
        "for a list\n",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="it has no named pipes in folders")
def test_an_export_comes_from_a_pipe(folder):
    os.mkfifo("pipe")
    code = "import sys; from callslip.cli import main; sys.exit(main(sys.argv[1:]))"
    program = f"import sys; sys.path[:0] = {sys.path!r}\n{code}"
    for words, end in ((["show", "pipe"], "hello"), (["import", "new.sqlite", "pipe"], "")):
        command = [sys.executable, "-c", program, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as shown:
            with open("pipe", "w", encoding="utf-8") as pipe:  # noqa: PTH123  # once it is read
                pipe.write(Path("log.jsonl").read_text())
            out, _ = shown.communicate(timeout=60)
        assert (shown.returncode, out.rstrip().endswith(end)) == (0, True)


MODULES = {
    "raises.py": "def find(name):\n    return {}[name]\n\nFLEET = find('DB_URL')\n",
    "syntax.py": "def find(:\n",
    "needs.py": "import module_that_is_not_there\n",
    "wrong.py": "from callslip import Agent\nAGENT = Agent(3)\n",
    "lazy.py": "def __getattr__(name):\n    return {}[name]\n",
    "right.py": "NUMBER = 3\ndef find(): 'Find.'\n",
}


@pytest.fixture
def modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in MODULES.items():
        Path(name).write_text(text)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)


FAILED = [
    ("raises:FLEET", 'raises.py", line 2, in find', "KeyError: 'DB_URL'"),
    ("syntax:FLEET", 'syntax.py", line 1', "SyntaxError: invalid syntax"),
    ("needs:FLEET", 'needs.py", line 1', "ModuleNotFoundError: No module named 'module_that_is"),
    ("lazy:FLEET", 'lazy.py", line 2, in __getattr__', "KeyError: 'FLEET'"),
    ("wrong:AGENT", 'wrong.py", line 2', "callslip.errors.UsageError: expected a callable from"),
]


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(("name", "place", "said"), FAILED)
@pytest.mark.parametrize(
    "words", [["work"], ["ask", "hi", "-m", "local", "--tool"]], ids=["work", "ask"]
)
def test_an_exception_of_the_program_is_shown_with_its_place(words, name, place, said, call):
    what = "fleet" if words == ["work"] else "tool"
    shown = call(*words, name, status=1)
    *trace, last = shown.err.splitlines()
    assert shown.out == ""
    assert last.startswith(f"callslip: the {what} {name} cannot be imported: {said}")
    assert place in shown.err
    # The program's own line is the first one.
    first = next(line for line in trace if line.startswith("  File "))
    assert name.partition(":")[0] + ".py" in first


NAMES = [
    ("nowhere:FLEET", "there is no module nowhere in this folder, and none is installed"),
    ("right:OTHER", "expected a name of right: got OTHER; it has NUMBER, find"),
    ("right:NUMBR", "expected a name of right: got NUMBR; use right:NUMBER"),
    ("right.py:NUMBER", "expected a module: got a path; pass right:NUMBER, from the folder that"),
    ("a/b.py:NUMBER", "expected a module: got a path; pass a.b:NUMBER, from the folder that has"),
    ("/a/b.py:NUMBER", "expected a module: got a path; pass b:NUMBER, from the folder that has"),
]


@pytest.mark.parametrize(("name", "hint"), NAMES)
def test_a_name_that_is_none(name, hint, modules, call):
    for words, what in ((["work"], "fleet"), (["ask", "hi", "-m", "local", "--tool"], "tool")):
        message = f"callslip: the {what} {name} cannot be imported: {hint}"
        assert call(*words, name, status=2).err.startswith(message)


@pytest.mark.parametrize("name", ["right", ":NUMBER", "right:", ".right:NUMBER", ""])
def test_a_name_of_another_form(name, modules, call):
    got = f"{name or 'nothing'}; pass the module and the name, with a colon between: app:name"
    assert call("work", name, status=2).err == (
        f"callslip: expected the fleet as module:name: got {got}\n"
    )
    assert call("ask", "hi", "-m", "local", "--tool", name, status=2).err == (
        f"callslip: expected --tool as module:function: got {got}\n"
    )


def test_what_is_no_tool_and_no_fleet(modules, call):
    assert call("work", "right:NUMBER", status=2).err == (
        "callslip: expected right:NUMBER to be a Fleet: got int\n"
    )
    assert call("ask", "hi", "-m", "local", "--tool", "right:NUMBER", status=2).err == (
        "callslip: expected --tool right:NUMBER to be a function or a tool: got int\n"
    )


def test_a_question_that_is_empty(call):
    message = "callslip: expected the task: got blank text; pass it, or - to read it from input"
    assert call("ask", " ", "-m", "local", status=2).err == f"{message}\n"


@pytest.mark.parametrize("seconds", ["x", "nan", "inf", "-1"])
def test_a_number_of_seconds_that_is_none(seconds, capsys):
    with pytest.raises(SystemExit):
        main(["work", "right:NUMBER", f"--grace={seconds}"])
    message = f"argument --grace: expected a number of seconds from 0: got {seconds!r}"
    assert message in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it is a device of Linux")
def test_a_disk_that_is_full(folder):
    program = f"import sys; sys.path[:0] = {sys.path!r}\nfrom callslip.cli import main"
    command = [sys.executable, "-c", f"{program}\nsys.exit(main(['export', 'runs.sqlite']))"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert (done.returncode, "callslip: No space left on device" in done.stderr) == (2, True)
