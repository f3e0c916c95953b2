"""The files of a run's scripts, in other processes than those that have written them."""

import asyncio
import io
import logging
import os
import signal
import sys
import threading
from types import SimpleNamespace

import pytest
from obstore.store import LocalStore, MemoryStore

from callslip import (
    Agent,
    CommandRunner,
    ModelError,
    PythonRunner,
    RunCancelled,
    ScriptedModel,
    ScriptLimits,
    StoreError,
    TicketStore,
    UsageError,
)
from callslip.errors import SandboxError
from callslip.sandbox._file_stores import FolderStore, open_file_store
from callslip.sandbox._native import has_sandbox
from callslip.sandbox._run_files import Checkpoint, RunFiles
from sandbox import leaving_files
from sandbox.offered import ALL, need
from scripted import act, block, finish, turn_of

NAME = "execute_python_code"
APPEND = "open('f', 'a').write('x'); print(len(open('f').read()))"
GONE = "this run was resumed: files that earlier calls left are gone"
LONG = 60

pytestmark = pytest.mark.skipif(
    not has_sandbox() and not os.environ.get("CI"), reason="this machine can't keep scripts apart"
)
both = pytest.mark.parametrize("how", ["run_sync", "run"])


@pytest.fixture(params=["folder", "memory", "local"])
def files(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "files", mkdir=True)
    return tmp_path / "files" if request.param == "folder" else MemoryStore()


@pytest.fixture
def store():
    with TicketStore() as store:
        yield store


def runner(files, **options):
    return PythonRunner(files=files, deps=[], **options)


class Work:
    """A run whose model client fails once before each of the given turns, as if a process ended.

    Each resumption has a runner of its own.
    """

    def __init__(self, how, store, *codes, fails=(1,)):
        self.how, self.store, self.fails = how, store, list(fails)
        self.replies = [*(act(NAME, code=code) for code in codes), finish()]
        self.run_id = None

    def model(self, messages):
        turn = turn_of(messages)
        if turn in self.fails:
            self.fails.remove(turn)
            raise OSError("gone")
        return self.replies[turn]

    def go_on(self, runner):
        """Drive the run to its end, or until its model fails. Returns what its scripts told."""
        agent = Agent(self.model, protocol="react", python=runner, store=self.store, delegate=False)
        try:
            if self.run_id is None:
                run = agent.run_sync("x") if self.how == "run_sync" else asyncio.run(agent.run("x"))
            elif self.how == "run_sync":
                run = agent.resume_sync(self.run_id)
            else:
                run = asyncio.run(agent.resume(self.run_id))
        except ModelError as error:
            run = error
        runner.close()
        self.run_id = run.run.id
        return [ticket.result or ticket.error for ticket in run.run.tickets]


def test_a_process_that_was_killed_leaves_its_files_to_the_next_one(tmp_path):
    path, files = str(tmp_path / "runs.sqlite"), tmp_path / "files"
    process = leaving_files.start(path, files, "--hang", "1")
    assert process.stdout.readline() == "hangs\n"
    process.send_signal(signal.SIGKILL)
    process.wait(LONG)
    process.stdout.close()
    with TicketStore(path) as store:
        (run,) = store.runs()
        agent = leaving_files.agent(runner(files), store=store)
        result = agent.resume_sync(run.run_id, approve=lambda ticket: True)
        script = result.tickets[2].result
        assert (script["stdout"], script.get("hints")) == (leaving_files.TOLD, None)
        # What was in out/ before is no news.
        assert "artifacts" not in script


@both
def test_the_files_of_a_run_are_there_when_it_is_resumed(files, store, how):
    work = Work(how, store, APPEND, APPEND, "print(open('f').read())", fails=(1, 2))
    work.go_on(runner(files))
    work.go_on(runner(files))
    results = work.go_on(runner(files))
    assert [one["stdout"] for one in results] == ["1\n", "2\n", "xx\n"]
    assert [one.get("hints") for one in results] == [None] * 3
    assert [one["checkpoint"][:2] for one in results] == ["1-", "2-", "2-"]


def test_a_conversation_goes_on_with_the_files(files, store):
    replies = [act(NAME, code=APPEND), finish(), act(NAME, code=APPEND), finish()]
    agent = Agent(ScriptedModel(replies), protocol="react", python=runner(files), store=store)
    run = agent.run_sync("x").run
    run.send("Once more.")
    result = agent.resume_sync(run.id)
    assert [ticket.result["stdout"] for ticket in result.tickets] == ["1\n", "2\n"]


@pytest.mark.parametrize("profile", ALL)
def test_every_profile_finds_its_files_again(tmp_path, store, profile):
    need(profile)
    make = "import os\nos.makedirs('a/b'); os.symlink('a/b', 'l'); open('l/f', 'w').write('1')"
    use = "open('l/f', 'a').write('2'); print(open('a/b/f').read())"
    work = Work("run_sync", store, make, use)
    work.go_on(runner(tmp_path, profile=profile))
    second = work.go_on(runner(tmp_path, profile=profile))[1]
    assert (second["stdout"], second["stderr"]) == ("12\n", "")


def test_scripts_without_files_write_nothing(tmp_path, store):
    work = Work("run_sync", store, "print(1)", "print(2)", fails=())
    results = work.go_on(runner(tmp_path / "files"))
    assert ["checkpoint" in one for one in results] == [False, False]
    assert not (tmp_path / "files").exists()


def test_what_has_not_changed_is_not_written_again(store):
    class Counting(MemoryStore):
        puts = 0

        def put(self, *args, **options):
            Counting.puts += 1
            return super().put(*args, **options)

    work = Work("run_sync", store, APPEND, "print(1)", "open('f', 'w').write('x')", fails=())
    results = work.go_on(runner(Counting()))
    assert len({one["checkpoint"] for one in results}) == Counting.puts == 1


def test_files_that_were_deleted_stay_deleted(files, store):
    work = Work("run_sync", store, APPEND, "import os; os.remove('f')", APPEND, fails=(2,))
    work.go_on(runner(files))
    assert [one["stdout"] for one in work.go_on(runner(files))] == ["1\n", "", "1\n"]


def test_an_interactive_script_leaves_files_too(files, store):
    code = "open('f', 'w').write(input())"
    replies = [
        act(NAME, code=code, interactive=True),
        act(NAME, code="print(open('f').read())"),
        finish(),
    ]
    work = Work("run_sync", store)
    work.replies = replies
    assert set(work.go_on(runner(files, ask=lambda _: "Ada"))[0]) == {
        "status",
        "exit_code",
        "checkpoint",
    }
    assert work.go_on(runner(files))[1]["stdout"] == "Ada\n"


class Failing(MemoryStore):
    """An object store that fails: always in `put`, once in `get`."""

    def __init__(self):
        self.fails = set()

    def put(self, *args, **options):
        if "put" in self.fails:
            raise OSError("no route to the bucket\n\nDebug source: …")
        return super().put(*args, **options)

    def get(self, *args, **options):
        if "get" in self.fails:
            self.fails.discard("get")
            raise OSError("no route to the bucket")
        return super().get(*args, **options)


@both
def test_a_write_that_fails_loses_no_output_and_is_said(store, how, caplog):
    place = Failing()
    place.fails = {"put"}
    work = Work(how, store, APPEND, APPEND, APPEND, fails=(1,))
    caplog.set_level(logging.WARNING, "callslip.sandbox")
    (first,) = work.go_on(runner(place))
    assert (first["status"], first["stdout"]) == ("ok", "1\n")
    assert first["hints"] == [
        "the files of this call could not be kept in their shared place: if the run is resumed, "
        "later calls find those of an earlier call"
    ]
    assert "checkpoint" not in first
    (record,) = caplog.records
    assert record.getMessage() == (
        f"the files of the run {work.run_id} can't be kept: no route to the bucket"
    )
    place.fails = set()
    second, third = work.go_on(runner(place))[1:]
    assert (second["stdout"], second["hints"]) == ("1\n", [GONE])
    assert (third["stdout"], third["checkpoint"][:2]) == ("2\n", "2-")


@both
def test_a_read_that_fails_is_told_and_may_be_tried_again(store, how):
    place = Failing()
    work = Work(how, store, APPEND, APPEND, APPEND)
    work.go_on(runner(place))
    place.fails = {"get"}
    first, second, third = work.go_on(runner(place))
    assert second == (
        "files_unavailable: the files of earlier calls can't be fetched just now: call it again "
        "later"
    )
    assert (first["stdout"], third["stdout"]) == ("1\n", "2\n")


def test_files_that_are_gone_or_damaged_are_told(tmp_path, store):
    for harm in (lambda path: path.unlink(), lambda path: path.write_bytes(b"nothing")):
        work = Work("run_sync", store, APPEND, APPEND, APPEND, fails=(1, 2))
        work.go_on(runner(tmp_path))
        (path,) = tmp_path.rglob("1-*.tar.gz")
        harm(path)
        second = work.go_on(runner(tmp_path))[1]
        assert (second["stdout"], second["hints"]) == ("1\n", [GONE])
        # The same content again, but it has to be written.
        assert work.go_on(runner(tmp_path))[2]["stdout"] == "2\n"
        runner(tmp_path).delete_files(work.run_id)


def test_files_beyond_the_limits_of_a_later_runner_are_gone(files, store):
    work = Work("run_sync", store, "open('f', 'wb').write(bytes(100_000))", APPEND)
    work.go_on(runner(files))
    small = ScriptLimits(disk_bytes=50_000)
    assert work.go_on(runner(files, limits=small))[1]["hints"] == [GONE]


def test_links_that_lead_out_are_told(files, store):
    code = "import os; os.symlink('/etc/passwd', 'l'); open('f', 'w').write('1')"
    work = Work("run_sync", store, code, "import os; print(os.listdir())")
    work.go_on(runner(files))
    first, second = work.go_on(runner(files))
    assert first["hints"] == [
        "1 things in the working directory are not there if the run is resumed: links that lead "
        "out of it, or paths that are too long"
    ]
    assert second["stdout"] == "['f']\n"


def log_of(*results, durable=True, claimed=lambda: True):
    """A run as `RunFiles` sees it: the results of its scripts so far."""
    rows = [
        SimpleNamespace(tool=NAME, outcome=outcome, result={"checkpoint": checkpoint})
        for outcome, checkpoint in results
    ]
    core = SimpleNamespace(is_durable=lambda: durable, check_claim=claimed)
    return SimpleNamespace(id="run", tickets=rows, _core=core), rows


def test_a_process_that_has_lost_the_run_writes_under_a_name_that_nobody_reads(files, tmp_path):
    place, limits = open_file_store(files), ScriptLimits()
    folder = tmp_path / "work"
    folder.mkdir()
    run, rows = log_of()
    lost, successor = (RunFiles(place, run, NAME, limits) for _ in range(2))
    for one in (lost, successor):
        assert one.restore().folder is None
    (folder / "f").write_text("of the successor")
    kept = successor.keep(folder).checkpoint
    rows.append(log_of(("ok", kept))[1][0])
    (folder / "f").write_text("of the lost one")
    late = lost.keep(folder).checkpoint
    assert (Checkpoint.read(kept).number, Checkpoint.read(late).number) == (1, 1)
    restored = RunFiles(place, run, NAME, limits).restore()
    assert (restored.folder.path / "f").read_text() == "of the successor"
    restored.folder.remove()


def test_only_results_count_and_the_newest_of_them(files, tmp_path):
    place, limits = open_file_store(files), ScriptLimits()
    folder = tmp_path / "work"
    folder.mkdir()
    writing = RunFiles(place, log_of()[0], NAME, limits)
    names = []
    for text in "abc":
        (folder / "f").write_text(text)
        names.append(writing.keep(folder).checkpoint)
    cases = [
        ([("ok", names[1]), ("ok", names[0])], "b"),
        ([("ok", names[0]), ("in_doubt", names[2]), (None, names[1])], "a"),
        ([("ok", names[2]), ("ok", "../../x"), ("ok", "9-nonsense")], "c"),
    ]
    for results, text in cases:
        restored = RunFiles(place, log_of(*results)[0], NAME, limits).restore()
        assert (restored.folder.path / "f").read_text() == text
        restored.folder.remove()


def lost():
    raise StoreError("taken over")


@pytest.mark.parametrize(
    ("durable", "claimed"),
    [(True, lambda: True), (False, lambda: True), (True, lambda: False), (True, lost)],
)
def test_old_files_are_deleted_once_the_log_needs_them_no_more(tmp_path, durable, claimed):
    place, folder = FolderStore(tmp_path / "files"), tmp_path / "work"
    folder.mkdir()
    run, rows = log_of(durable=durable, claimed=claimed)
    writing = RunFiles(place, run, NAME, ScriptLimits())
    for number in range(8):
        (folder / "f").write_text(str(number))
        kept = writing.keep(folder).checkpoint
        # The results of the last two are not in the log yet.
        if number < 6:
            rows.append(log_of(("ok", kept))[1][0])
    numbers = {int(path.name.partition("-")[0]) for path in place._folder.rglob("*.tar.gz")}
    assert {6, 7, 8} <= numbers
    is_safe = durable and claimed is not lost and claimed()
    assert len(numbers) <= 5 if is_safe else len(numbers) == 8


def test_a_run_keeps_few_of_its_files(tmp_path, store):
    work = Work("run_sync", store, *[APPEND] * 9, fails=(8,))
    work.go_on(runner(tmp_path))
    assert len(list(tmp_path.rglob("*.tar.gz"))) <= 4
    assert work.go_on(runner(tmp_path))[8]["stdout"] == "9\n"


def test_scripts_side_by_side_keep_the_files_of_all(files, store):
    codes = [f"open('f{n}', 'w').write('1')" for n in range(3)]
    calls = block(*((f"c{n}", NAME, {"code": code}) for n, code in enumerate(codes)))
    agent = Agent(
        ScriptedModel([calls, "done"]), protocol="chatty", python=runner(files), store=store
    )
    run = agent.run_sync("x").run
    with PythonRunner(files=files) as other:
        assert len({ticket.result["checkpoint"] for ticket in run.tickets}) == 3
        restored = RunFiles(other._files, run, NAME, other.limits).restore().folder
        assert sorted(path.name for path in restored.path.iterdir()) == ["f0", "f1", "f2"]
        restored.remove()


def test_files_of_a_run_are_copied_for_people_and_deleted(files, store, tmp_path):
    code = "import os; os.mkdir('out'); open('out/plot', 'w').write('1'); os.symlink('out', 'l')"
    runs = []
    for _ in range(2):
        work = Work("run_sync", store, code, fails=())
        work.go_on(runner(files))
        runs.append(store.run(work.run_id))
    web = runner(files)
    assert web.save_files(runs[0], tmp_path / "a") == [tmp_path / "a" / "out" / "plot"]
    web.delete_files(runs[0].id, "unknown")
    with pytest.raises(SandboxError, match=f"^the files of the run {runs[0].id} can't be read: "):
        web.save_files(runs[0], tmp_path / "b")
    assert len(web.save_files(runs[1], tmp_path / "c")) == 1
    assert web.save_files(runs[1], tmp_path / "d", tool="other") == []
    with pytest.raises(UsageError, match="^expected the ids of runs: got an empty one$"):
        web.delete_files("")
    assert len(web.save_files(runs[1], tmp_path / "e")) == 1


class Slow(MemoryStore):
    """An object store that is written to when the test says so."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def put(self, *args, **options):
        self.begun.set()
        self.go_on.wait(LONG)
        return super().put(*args, **options)


def test_files_of_a_session_that_is_closed_meanwhile_do_not_count():
    place, results = Slow(), []
    session = runner(place)._session_of_run(log_of()[0], NAME)
    running = threading.Thread(target=lambda: results.append(session.run(APPEND)))
    running.start()
    assert place.begun.wait(LONG)
    session.close()
    place.go_on.set()
    running.join(LONG)
    assert [(one.stdout, one.checkpoint) for one in results] == [("1\n", None)]


@both
def test_a_run_that_is_cancelled_does_not_wait_for_a_slow_place(store, how):
    place = Slow()
    begun, go_on = place.begun, place.go_on
    work = Work(how, store, APPEND, fails=())
    agent = Agent(work.model, protocol="react", python=runner(place), store=store)

    async def main():
        task = asyncio.create_task(agent.run("x"))
        await asyncio.to_thread(begun.wait, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, LONG / 2)

    def cancel():
        begun.wait(LONG)
        store.run(store.runs()[0].run_id).cancel()

    if how == "run":
        asyncio.run(main())
    else:
        cancelling = threading.Thread(target=cancel)
        cancelling.start()
        with pytest.raises(RunCancelled):
            agent.run_sync("x")
        cancelling.join()
    assert begun.is_set()
    assert not go_on.is_set()
    go_on.set()


def test_a_folder_is_written_as_a_whole_or_not_at_all(tmp_path):
    place = FolderStore(tmp_path)
    place.put("run/tool/a", io.BytesIO(b"old"))

    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        place.put("run/tool/a", Broken())
    assert [path.name for path in (tmp_path / "run" / "tool").iterdir()] == ["a"]
    with place.get("run/tool/a") as file:
        assert file.read() == b"old"


def test_wrong_places_are_refused(monkeypatch):
    with pytest.raises(UsageError) as caught:
        PythonRunner(files=7)
    assert str(caught.value) == (
        "expected files as a folder, a URL such as 's3://bucket/agents' or a store of obstore: "
        "got 7"
    )
    with pytest.raises(UsageError, match="^files='ftp://…' can't be used: ") as caught:
        PythonRunner(files="ftp://user:secret@host/x")
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match="^expected files or backend: got both; "):
        PythonRunner(files="folder", backend=CommandRunner(["x"]))
    with pytest.raises(UsageError, match="^this PythonRunner keeps no files of runs: pass files=…"):
        PythonRunner().delete_files("x")
    monkeypatch.delitem(
        sys.modules["callslip._base._lazy"].__dict__, "obstore_store", raising=False
    )
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(UsageError) as caught:
        PythonRunner(files="s3://bucket/agents")
    assert str(caught.value) == (
        "files='s3://…' needs the package obstore: pip install 'callslip[shared]', or pass a folder"
    )
    PythonRunner(files="folder").close()
