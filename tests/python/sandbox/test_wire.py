"""External runners: what they may say, and what becomes of those that say something else."""

import asyncio
import base64
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from callslip import (
    CommandRunner,
    PythonRunner,
    RunnerLost,
    RunnerProtocolError,
    ScriptLimits,
    ScriptRefused,
    UsageError,
)
from callslip.sandbox import CodeRunner, _process
from left_open import Open, check_nothing_is_left

STARTED = {"type": "started", "profile": "theirs", "layers": ["a wall"]}
RESULT = {"status": "ok", "exit_code": 0, "stdout": "", "stderr": ""}
FINISHED = {"type": "finished", "result": RESULT}
DATA = b"content"
ARTIFACT = {
    "type": "artifact",
    "path": "a.txt",
    "size": len(DATA),
    "sha256": hashlib.sha256(DATA).hexdigest(),
    "mime": "text/plain",
    "data": base64.b64encode(DATA).decode(),
}
ASKS = {"type": "input_request", "id": 1, "prompt": "", "secret": False}


def program(code, **options):
    """A runner that is this Python code: `request` is its first line."""
    head = "import json, sys, time\nrequest = json.loads(sys.stdin.readline())\n"
    head += "def say(*events):\n for e in events: print(json.dumps(e), flush=True)\n"
    return CommandRunner([sys.executable, "-I", "-c", head + code], **options)


def saying(*events, **options):
    """A runner that says these events, whatever it is given, and stays."""
    return program(f"say(*json.loads({json.dumps(events)!r}))\nsys.stdin.read()", **options)


def run(backend, code="1", **options):
    limits = options.pop("limits", None)
    with PythonRunner(backend=backend, limits=limits) as runner:
        return runner.run(code, **options)


def test_a_runner_needs_to_say_little():
    result = run(saying(STARTED, {"type": "stdout", "text": "hi\n"}, FINISHED))
    assert (result.status, result.stdout, result.stdout_bytes) == ("ok", "", 0)
    assert result.isolation.profile == "unknown"
    assert (result.signal, result.hints, result.artifacts) == (None, (), ())


def test_a_runner_gets_the_whole_request():
    echo = program(
        "result = {'status': 'ok', 'exit_code': 0, 'stdout': json.dumps(request), 'stderr': ''}\n"
        f"say({STARTED!r}, {{'type': 'finished', 'result': result}})"
    )
    limits = ScriptLimits(wall_seconds=7)
    request = json.loads(run(echo, "print('ü')", limits=limits).stdout)
    assert request == {
        "type": "run",
        "version": 1,
        "code": "print('ü')",
        "interactive": False,
        "limits": limits.to_dict(),
        "dependencies": [],
    }


def test_what_a_runner_knows_is_in_the_result():
    more = {
        "signal": None,
        "stdout_truncated": True,
        "stdout_bytes": 9,
        "cpu_ms": 5,
        "artifacts": [{"path": "a.txt"}],
        "isolation": {"profile": "theirs", "layers": ["a wall"]},
        "hints": ["be brief", "be brief"],
    }
    result = run(saying(STARTED, ARTIFACT, {"type": "finished", "result": {**RESULT, **more}}))
    assert (result.stdout_truncated, result.stdout_bytes, result.cpu_ms) == (True, 9, 5)
    assert (result.isolation.profile, result.isolation.layers) == ("theirs", ("a wall",))
    assert result.hints == ("be brief",)
    assert result.artifacts[0].read_bytes() == DATA


def test_a_refusal_is_told_with_its_code():
    refused = {"type": "refused", "code": "dependency_install_failed", "message": "no such thing"}
    with pytest.raises(ScriptRefused, match="^no such thing$") as caught:
        run(saying(refused))
    assert caught.value.code == "dependency_install_failed"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("print('hello', flush=True)", r"^expected a line of JSON from the runner: got 'hello' \("),
        ("print('[' * 100_000, flush=True)", "^expected a line of JSON from the runner: got '\\["),
        ("say([1])", r'^expected an event {"type": …} from the runner: got \'\[1\]\'$'),
        ("say({'type': 'begun'})", "to be one of started, .*: got 'begun'$"),
        (
            "say({'type': 'started'})",
            "^expected the event 'started' of the runner to have 'profile'$",
        ),
        (
            "say({'type': 'deps', 'stage': 1, 'message': ''})",
            "^expected 'stage' in the event 'deps' of the runner to be a string: "
            "got a whole number$",
        ),
        (f"say({STARTED!r}, {STARTED!r})", "^the runner said 'started' twice$"),
        (f"say({FINISHED!r})", "^the runner said 'finished' before 'started'$"),
        ("say({'type': 'stdout', 'text': ''})", "^the runner said 'stdout' before 'started'$"),
        (
            f"say({STARTED!r}, {ASKS!r})",
            "^the runner asked for input of a script that may not ask$",
        ),
        (
            f"say({STARTED!r}, {{'type': 'finished', 'result': {{}}}})",
            "^expected the result of the runner to have 'status'$",
        ),
        (
            f"say({STARTED!r}, {{'type': 'finished', 'result': {dict(RESULT, status='fine')!r}}})",
            "^expected the status of a result to be one of ok, .*: got 'fine'$",
        ),
        (
            f"say({STARTED!r}, {{'type': 'finished', 'result': {dict(RESULT, exit_code=True)!r}}})",
            "^expected 'exit_code' in the result of the runner to be a whole number or null: "
            "got true or false$",
        ),
        (
            f"say({STARTED!r}, {{'type': 'finished', "
            f"'result': {dict(RESULT, artifacts=[{'path': 'x'}])!r}}})",
            "^the result names the artifact 'x', of which there was no event$",
        ),
        (f"say({STARTED!r})\nprint('x' * 30_000_000)", "^expected a line of at most .* bytes"),
    ],
)
def test_what_is_no_event_ends_the_runner(said, words):
    limits = ScriptLimits(artifact_bytes=1000)
    with pytest.raises(RunnerProtocolError, match=words):
        run(program(f"{said}\ntime.sleep(60)"), limits=limits)


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../a.txt"},
        {"path": "/etc/passwd"},
        {"path": "a/../../b"},
        {"path": ""},
        {"path": "a\nb"},
        {"path": "\u202eab"},
        {"path": "x" * 300},
        {"size": 3},
        {"sha256": "0" * 64},
        {"data": "no base64"},
        {"size": -1},
        {"file": "/etc/passwd", "data": None},
    ],
)
def test_an_artifact_that_can_not_be_is_refused(change, tmp_path):
    runner = PythonRunner(
        backend=saying(STARTED, {**ARTIFACT, **change}, FINISHED), artifacts=tmp_path / "kept"
    )
    with pytest.raises(RunnerProtocolError):
        runner.run("1")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_more_artifacts_than_allowed_are_refused():
    second = {**ARTIFACT, "path": "b.txt"}
    words = "^the runner handed over more artifacts than it was allowed$"
    for limits in (ScriptLimits(artifacts=1), ScriptLimits(artifact_bytes=len(DATA) + 1)):
        with pytest.raises(RunnerProtocolError, match=words):
            run(saying(STARTED, ARTIFACT, second, FINISHED), limits=limits)


def test_a_runner_that_ends_early_is_lost_with_its_last_words():
    with pytest.raises(RunnerLost) as caught:
        run(program(f"say({STARTED!r})\nprint('no disk', file=sys.stderr)\nsys.exit(3)"))
    assert str(caught.value) == (
        f"the runner '{sys.executable}' ended with exit code 3 before the script did: it wrote "
        "'no disk'"
    )


def test_a_runner_that_closes_its_output_is_lost(monkeypatch):
    monkeypatch.setattr(_process, "_TO_LEAVE", 0.2)
    code = "import os\nos.close(1)\ntime.sleep(60)"
    with pytest.raises(RunnerLost, match="closed its output before the script did$"):
        run(program(code))


def test_a_command_that_is_not_there_is_lost():
    with pytest.raises(RunnerLost, match="^the runner '/no/such' can't be started: No such file"):
        run(CommandRunner(["/no/such"]))


def test_a_runner_that_does_not_begin_is_lost():
    with pytest.raises(RunnerLost, match="did not begin within 0.3 seconds$"):
        run(program("time.sleep(60)", start_seconds=0.3))


def test_installing_packages_puts_the_beginning_off():
    deps = {"type": "deps", "stage": "install", "message": "numpy"}
    code = f"for _ in range(4):\n say({deps!r})\n time.sleep(1)\nsay({STARTED!r}, {FINISHED!r})"
    assert run(program(code, start_seconds=3)).ok


def test_a_runner_that_does_not_end_is_lost(monkeypatch):
    monkeypatch.setattr(_process, "_GRACE", 0.2)
    with pytest.raises(RunnerLost, match="did not end a script whose time was over$"):
        run(saying(STARTED), limits=ScriptLimits(wall_seconds=0.1))


def test_a_runner_that_heeds_no_cancel_is_killed(monkeypatch):
    monkeypatch.setattr(_process, "_TO_END", 0.2)
    runner = PythonRunner(backend=saying(STARTED))

    async def main():
        task = asyncio.create_task(runner.arun("1"))
        await asyncio.sleep(0.3)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 30

    asyncio.run(main())


def test_a_runner_that_reads_nothing_holds_nobody_up():
    backend = CommandRunner(
        [sys.executable, "-I", "-c", "import time; time.sleep(60)"], start_seconds=0.5
    )
    with pytest.raises(RunnerLost, match="did not begin"):
        run(backend, f"x = '{'x' * 900_000}'")


def test_a_slow_listener_holds_up_no_runner(tmp_path):
    done = tmp_path / "done"
    flood = (
        f"say({STARTED!r})\nfor _ in range(3000):\n"
        " say({'type': 'stdout', 'text': 'x' * 1000})\n"
        f"say({FINISHED!r})\nopen({str(done)!r}, 'w').close()\nsys.stdin.read()"
    )
    seen = []

    def hear(event):
        if event.kind == "stdout" and seen[-1].kind == "started":
            until = time.monotonic() + 20
            while not done.exists() and time.monotonic() < until:
                time.sleep(0.01)
        seen.append(event)

    with PythonRunner(backend=program(flood), on_event=hear) as runner:
        assert runner.run("1").ok
    assert done.exists()
    assert sum(len(event.data.get("text", "")) for event in seen) < 2_000_000
    assert seen[-1].kind == "finished"


# Between the two stands a process that a script may kill.
RUNNER_PID = (
    "import os; print(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
)


def test_a_session_is_one_process_and_ends_with_it(external):
    runner = external()
    with runner.session() as session:
        pids = {session.run(RUNNER_PID).stdout for _ in range(2)}
        (pid,) = map(int, pids)
        os.kill(pid, 0)
    wait_until_gone(pid)


def wait_until_gone(pid):
    until = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()


def test_a_session_whose_runner_is_gone_says_so(external):
    with external().session() as session:
        pid = int(session.run(RUNNER_PID).stdout)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RunnerLost, match="ended with exit code -9 before the script did"):
            session.run("1")
        with pytest.raises(RunnerLost, match="ended with exit code -9"):
            session.run("1")


def test_a_script_that_kills_its_parent_kills_itself_alone(external):
    with external().session() as session:
        open_file = "open('f', 'w').write('x'); "
        result = session.run(open_file + "import os, time; os.kill(os.getppid(), 9); time.sleep(9)")
        assert (result.status, result.signal) == ("killed", 9)
        assert result.duration_ms < 5000
        assert session.run("print(open('f').read())").stdout == "x\n"


def test_a_session_goes_on_after_a_script_was_ended(external):
    with external(limits=ScriptLimits(wall_seconds=5)).session() as session:
        assert session.run("import time; time.sleep(60)").status == "timeout"
        assert session.run("print(1)").stdout == "1\n"


def test_a_runner_that_nobody_has_any_more_ends(external):
    session = external().session()
    pid = int(session.run(RUNNER_PID).stdout)
    session._place = None
    wait_until_gone(pid)


def test_what_a_script_leaves_running_is_ended(external):
    code = (
        "import os, time\nif not os.fork():\n os.setsid()\n if not os.fork():\n"
        "  print(os.getpid(), flush=True)\n  os.close(1); os.close(2)\n  time.sleep(60)\n"
        " os._exit(0)\ntime.sleep(0.3)"
    )
    with external().session() as session:
        wait_until_gone(int(session.run(code).stdout))


def test_threads_and_descriptors_come_back(external):
    external().run("1")
    time.sleep(0.3)
    before = Open()
    for _ in range(10):
        external().run("1")
    check_nothing_is_left(before, 10)


def test_packages_that_an_external_runner_lacks_are_refused(external):
    code = "# dependencies = ['no-such-package']\nprint(1)"
    with pytest.raises(ScriptRefused, match="has no no-such-package$") as caught:
        external(deps=["no-such-package"]).run(code)
    assert caught.value.code == "dependency_install_failed"


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (
            "docker run",
            {},
            r"^expected the command as a list, \['docker', 'run', …\]: got 'docker run'$",
        ),
        ([], {}, r"got \[\]$"),
        (
            ["true"],
            {"start_seconds": 0},
            "^expected start_seconds to be a number of seconds above 0: ",
        ),
    ],
)
def test_a_wrong_command_says_what_is_expected(command, options, words):
    with pytest.raises(UsageError, match=words):
        CommandRunner(command, **options)


def test_runners_of_ones_own_are_known_by_what_they_have():
    assert isinstance(CommandRunner(["true"]), CodeRunner)
    assert not isinstance("docker", CodeRunner)
