"""What comes of scripts, and what ends them."""

import asyncio
import hashlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from callslip import PythonRunner, ScriptEvent, ScriptLimits, ScriptRefused, UsageError
from callslip.sandbox import ScriptSession, _folders, _runner, _steps
from callslip.sandbox._folders import ArtifactFolder, WorkFolder

ARTIFACT = "import os; os.makedirs('out', exist_ok=True); open('out/{name}', 'w').write({text!r})"
LONG = "import time; print('begun', flush=True); time.sleep(60)"


def test_what_a_script_prints_is_there(make):
    result = make().run("import sys; print('one'); print('two', file=sys.stderr)")
    assert (result.status, result.exit_code, result.ok) == ("ok", 0, True)
    assert (result.stdout, result.stderr) == ("one\n", "two\n")
    assert (result.stdout_bytes, result.stderr_bytes) == (4, 4)
    assert not result.stdout_truncated
    assert result.isolation.profile in {"isolated", "restricted", "unconfined"}
    assert result.duration_ms > 0
    assert result.max_rss > 1 << 20


def test_what_utf_8_can_not_hold_is_printed_all_the_same(make):
    result = make().run("print('\\ud800')\nprint(__file__.endswith('script.py'))")
    assert (result.status, result.stdout) == ("ok", "\\ud800\nTrue\n")


def test_a_script_that_fails_is_a_result(make):
    result = make().run("print(1)\nraise ValueError('no')")
    assert (result.status, result.exit_code, result.ok) == ("error", 1, False)
    assert result.stderr == (
        'Traceback (most recent call last):\n  File "script.py", line 2, in <module>\n'
        "    raise ValueError('no')\nValueError: no\n"
    )


def test_hints_are_for_scripts_that_failed(make):
    code = "import sys; sys.stderr.write(\"ModuleNotFoundError: No module named 'rich'\\n\")"
    assert make().run(code).hints == ()
    (hint,) = make().run(f"{code}; sys.exit(1)").hints
    assert hint.startswith("rich is imported but not declared")


def test_an_exit_code_is_kept(make):
    result = make().run("import sys; sys.exit(7)")
    assert (result.status, result.exit_code) == ("error", 7)


def test_of_long_output_the_beginning_and_the_end_are_kept(make):
    runner = make(limits=ScriptLimits(kept_bytes=1000))
    result = runner.run("print('first'); print('x' * 50_000); print('last')")
    assert result.status == "ok"
    assert result.stdout_truncated
    assert result.stdout_bytes == 50_012
    assert result.stdout.startswith("first\n")
    assert result.stdout.endswith("last\n")
    assert len(result.stdout) < 1500


@pytest.mark.parametrize(
    ("limits", "code", "status"),
    [
        ({"wall_seconds": 0.5}, "import time; time.sleep(30)", "timeout"),
        ({"cpu_seconds": 1}, "while True: pass", "cpu_limit"),
        ({"output_bytes": 100_000}, "while True: print('x' * 1000)", "output_limit"),
    ],
)
def test_a_limit_ends_a_script_and_is_named(make, limits, code, status):
    begun = time.monotonic()
    result = make(limits=ScriptLimits(**limits)).run(code)
    assert (result.status, result.ok) == (status, False)
    assert time.monotonic() - begun < 25


def test_code_that_is_none_is_refused_before_anything_runs(make):
    with pytest.raises(ScriptRefused) as caught:
        make().run("  \n")
    assert caught.value.code == "bad_code"


def test_half_a_surrogate_pair_is_no_code(make):
    with pytest.raises(ScriptRefused) as caught:
        make().run("print('\ud800')")
    assert caught.value.code == "bad_code"


def test_files_stay_in_a_session_and_nowhere_else(make):
    runner = make()
    with runner.session() as session:
        session.run("open('kept', 'w').write('here')")
        assert session.run("print(open('kept').read())").stdout == "here\n"
    assert runner.run("import os; print(os.path.exists('kept'))").stdout == "False\n"
    with runner.session() as session:
        assert session.run("import os; print(os.path.exists('kept'))").stdout == "False\n"


def test_a_folder_that_can_not_keep_artifacts_is_said_before_anything_runs(make, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    for folder, why in (taken, "File exists"), (taken / "below", "Not a directory"):
        ran = []
        with pytest.raises(UsageError) as caught:
            make(artifacts=folder, on_event=ran.append).run("print(1)")
        assert str(caught.value) == f"artifacts can't be kept in '{folder}': {why}"
        assert ran == []


def test_scripts_of_one_session_run_one_after_the_other(make):
    code = "import time\nwith open('log', 'a') as f: f.write('x')\nprint(len(open('log').read()))"
    with make().session() as session:

        async def main():
            return await asyncio.gather(*(session.arun(code) for _ in range(3)))

        results = asyncio.run(main())
    assert sorted(result.stdout for result in results) == ["1\n", "2\n", "3\n"]


def test_a_closed_session_runs_nothing(make):
    with make().session() as session:
        session.run("1")
    with pytest.raises(UsageError, match="^this session is closed, .*: open another one with"):
        session.run("1")


def test_a_closed_runner_runs_nothing_and_closes_its_sessions(make):
    runner = make()
    with runner:
        session = runner.session()
        session.run("1")
    with pytest.raises(UsageError, match="^this PythonRunner is closed: make a new one$"):
        runner.run("1")
    with pytest.raises(UsageError, match="this session is closed"):
        session.run("1")


def test_artifacts_are_handed_over(make):
    result = make().run(ARTIFACT.format(name="a.csv", text="a,b\n1,2\n"))
    (artifact,) = result.artifacts
    assert (artifact.path, artifact.size, artifact.mime) == ("a.csv", 8, "text/csv")
    assert artifact.sha256 == hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    assert artifact.read_bytes() == b"a,b\n1,2\n"


def test_a_temporary_artifact_lasts_as_long_as_its_result(make):
    result = make().run(ARTIFACT.format(name="a.txt", text="a"))
    file = result.artifacts[0].file
    artifact = result.artifacts[0]
    del result
    assert file.exists()
    del artifact
    assert not file.exists()
    assert not file.parent.exists()


def test_artifacts_are_kept_where_it_is_said(make, tmp_path):
    runner = make(artifacts=tmp_path / "made")
    runner.run("print(1)")
    first = runner.run(ARTIFACT.format(name="a.txt", text="1")).artifacts[0].file
    second = runner.run(ARTIFACT.format(name="a.txt", text="2")).artifacts[0].file
    assert first.parent != second.parent
    assert first.parent.parent == second.parent.parent == tmp_path / "made"
    assert [first.read_text(), second.read_text()] == ["1", "2"]
    assert len(list((tmp_path / "made").iterdir())) == 2


def test_an_artifact_is_saved_and_replaces_nothing(make, tmp_path):
    (artifact,) = make().run(ARTIFACT.format(name="a.txt", text="new")).artifacts
    saved = artifact.save(tmp_path)
    assert (saved, saved.read_text()) == (tmp_path / "a.txt", "new")
    with pytest.raises(FileExistsError):
        artifact.save(tmp_path)


def test_events_come_in_order(make):
    events = []
    runner = make(on_event=events.append)
    runner.run(f"print('hello', flush=True); {ARTIFACT.format(name='a.txt', text='a')}")
    kinds = [event.kind for event in events]
    assert kinds == ["started", "stdout", "artifact", "finished"]
    assert events[1] == ScriptEvent("stdout", {"text": "hello\n"})
    assert events[2].data["path"] == "a.txt"
    assert isinstance(events[2].data["file"], Path)
    assert events[3].data == {"status": "ok", "exit_code": 0}


@pytest.mark.parametrize("how", ["run", "arun"])
def test_events_may_be_told_to_what_is_async(make, how):
    kinds = []

    async def hear(event):
        await asyncio.sleep(0)
        kinds.append(event.kind)

    runner = make(on_event=hear)
    if how == "run":
        runner.run("print(1)")
    else:
        asyncio.run(runner.arun("print(1)"))
    assert kinds == ["started", "stdout", "finished"]


@pytest.mark.parametrize("how", ["run", "arun"])
def test_an_exception_of_a_listener_ends_the_script(make, how):
    def hear(event):
        if event.kind == "stdout":
            raise KeyError("mine")

    runner = make(on_event=hear)
    begun = time.monotonic()
    with pytest.raises(KeyError, match="mine"):
        if how == "run":
            runner.run(LONG)
        else:
            asyncio.run(runner.arun(LONG))
    assert time.monotonic() - begun < 25


def test_a_cancelled_task_ends_the_script_first(make):
    events = []
    runner = make(on_event=events.append)

    async def main():
        task = asyncio.create_task(runner.arun(LONG))
        while not any(event.kind == "stdout" for event in events):
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - begun

    assert asyncio.run(main()) < 30


def test_a_time_limit_of_the_caller_ends_the_script(make):
    async def main():
        async with asyncio.timeout(0.5):
            await make().arun(LONG)

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def interrupt_when(is_time):
    def wait():
        until = time.monotonic() + 20
        while not is_time() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait).start()


@pytest.mark.parametrize("inside", ["no loop", "a loop"])
def test_ctrl_c_ends_the_script_and_is_raised(make, inside):
    events = []
    runner = make(on_event=events.append)
    interrupt_when(lambda: any(event.kind == "stdout" for event in events))
    begun = time.monotonic()

    async def main():
        runner.run(LONG)

    with pytest.raises(KeyboardInterrupt):
        if inside == "a loop":
            asyncio.run(main())
        else:
            runner.run(LONG)
    assert time.monotonic() - begun < 25


def test_a_signal_that_another_thread_gets_is_heard_in_a_notebook(external, monkeypatch):
    """The interrupt of a kernel may come so: then nothing wakes its loop."""
    monkeypatch.setattr(_steps, "live_kernel", object)
    sent, heard = [], []

    def send():
        time.sleep(0.5)
        sent.append(time.monotonic())
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(time.monotonic()))
    thread = threading.Thread(target=send)
    try:
        thread.start()
        asyncio.run(external().arun("import time; time.sleep(3)"))
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert heard[0] - sent[0] < 1


def test_scripts_run_side_by_side(make):
    runner = make()

    async def main():
        return await asyncio.gather(*(runner.arun(f"print({n})") for n in range(4)))

    assert [result.stdout for result in asyncio.run(main())] == ["0\n", "1\n", "2\n", "3\n"]


def test_scripts_run_in_threads(make):
    runner, results = make(), {}
    threads = [
        threading.Thread(target=lambda n=n: results.update({n: runner.run(f"print({n})").stdout}))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: f"{n}\n" for n in range(4)}


def test_that_auto_came_to_less_is_said_once(monkeypatch):
    monkeypatch.setattr(_runner, "_warned", threading.Event())
    started = ScriptEvent("started", {"profile": "restricted", "layers": []})
    with pytest.warns(RuntimeWarning, match="^scripts are run in the profile 'restricted'"):
        _runner._warn_of_weaker_profile(started)
    _runner._warn_of_weaker_profile(started)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"profile": "open"},
            "^expected profile='auto' or 'isolated' or 'restricted' or 'unconfined'",
        ),
        ({"ask": "me"}, "^expected ask='auto', a function or None: got 'me'$"),
        ({"deps": "numpy"}, "^expected deps='ask', a list of packages or a function: got 'numpy'$"),
        ({"deps": [1]}, "^expected deps to be a list of strings: got 1 in it$"),
        ({"on_event": 1}, "on_event to be a function: got 1; pass one that takes the event$"),
        ({"backend": "docker"}, "^expected backend with `about` and `open"),
    ],
)
def test_a_wrong_option_says_what_there_is(options, words):
    with pytest.raises((UsageError, ValueError), match=words):
        PythonRunner(**options)


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        ((b"1",), {}, "^expected the script as a string: got bytes$"),
        (("1",), {"interactive": 1}, "^expected interactive=True or False: got 1$"),
        (
            ("1",),
            {"answers": []},
            "^answers need interactive=True: pass both$",
        ),
        (("1",), {"interactive": True, "answers": "ab"}, "^expected answers as a list of texts"),
    ],
)
def test_a_wrong_argument_says_what_is_expected(external, args, options, words):
    with pytest.raises(UsageError, match=words):
        external().run(*args, **options)


def test_what_a_killed_process_left_is_removed(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        folder = WorkFolder()
        os.write(writer, os.fsencode(folder.path))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = Path(os.fsdecode(os.read(reader, 4096)))
    os.close(reader)
    os.close(writer)
    assert left.is_dir()
    own = WorkFolder()
    assert own.path.is_dir()
    assert not left.exists()
    other = WorkFolder()
    assert own.path.is_dir()
    own.remove()
    other.remove()
    own.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_all_may_go_while_another_one_is_made(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))

    def some():
        for _ in range(300):
            WorkFolder().remove()

    with ThreadPoolExecutor(3) as pool:
        for one in [pool.submit(some) for _ in range(3)]:
            one.result()
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_of_all(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / f"callslip-{os.getuid()}").write_text("not ours")
    folder = WorkFolder()
    assert folder.path.is_dir()
    folder.remove()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["not ours"]


def test_without_a_folder_for_temporary_files_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "gone"))
    monkeypatch.setattr(_folders, "_shared", {})
    with pytest.raises(UsageError, match=r"got '.*gone' \(No such file or directory\). Set TMPDIR"):
        PythonRunner().run("1")


def test_artifacts_of_a_killed_process_are_removed_by_the_next_one(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    # A test before this one may have left its own to the garbage collector.
    monkeypatch.setattr(_folders, "_shared", {})
    child = os.fork()
    if not child:
        folder = ArtifactFolder(None)
        folder.put("a", b"1")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(tmp_path.rglob("a"))) == 1
    own = ArtifactFolder(None)
    file = own.put("b", b"2")
    assert list(tmp_path.rglob("a")) == []
    other = ArtifactFolder(None)
    other.put("c", b"3")
    del own
    assert not file.parent.exists()
    del other
    assert list(tmp_path.iterdir()) == []


def test_a_hostile_tree_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = WorkFolder()
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder.path)
        for _ in range(1500):
            Path("d").mkdir()
            Path("f").write_text("x")
            os.chdir("d")
        os.fchdir(here)
    finally:
        os.fchdir(here)
        os.close(here)
    (folder.path / "link").symlink_to(tmp_path)
    (folder.path / "shut").mkdir()
    (folder.path / "shut" / "f").write_text("x")
    (folder.path / "shut").chmod(0)
    folder.remove()
    assert not folder.path.exists()
    assert tmp_path.is_dir()


def test_sessions_are_known_by_their_name():
    import callslip.sandbox

    assert callslip.sandbox.ScriptSession is ScriptSession
