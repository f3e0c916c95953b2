"""Scripts that try to get out, to stay, to exhaust and to deceive: in a box all of them fail.

`PYTHONPATH=tests/support python -m sandbox isolated --only ID` runs one of them;
`tests/support/sandbox/` says what is looked at.
"""

import os
import shutil
import subprocess

import pytest

from sandbox.cases import BOXED, load, read
from sandbox.checks import Outcome, problems
from sandbox.hostile import NotHere, User, ordinary_user, run_cases
from shared import HOSTILE_SCRIPTS

# What must not be let through by a program that runs scripts in a plain process.
DISCRIMINATING = {
    "file-append",
    "file-chdir",
    "file-link-out",
    "file-truncate",
    "kernel-ptrace-seize",
    "proc-no-host",
    "reach-mptcp",
    "reach-tcp",
    "reach-thread",
    "reach-udp6",
    "reach-unix",
    "signal-kill",
    "signal-owner",
    "victim-limits",
    "victim-priority",
}


@pytest.fixture(scope="module")
def users():
    """Root and an ordinary user, as far as we can be both."""
    try:
        with ordinary_user() as ordinary:
            yield {"ourselves": User(), "ordinary": ordinary}
    except NotHere as why:
        yield {"ourselves": User(), "ordinary": why}


def user_of(users, name):
    user = users[name]
    if isinstance(user, NotHere):
        pytest.skip(str(user))
    if name == "ordinary" and os.geteuid() != 0:
        pytest.skip("we are an ordinary user ourselves: this has run")
    return user


def there(answers, profile):
    """Skip what a machine cannot offer an ordinary user; in CI it is expected to."""
    told = [problem for answer in answers.values() for problem in answer["wrong"]]
    missing = [problem for problem in told if problem.startswith("IsolationUnavailable")]
    if missing and not os.environ.get("CI"):
        pytest.skip(missing[0])
    assert not missing, f"CI must offer {profile}: {missing[0]}"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("who", ["ourselves", "ordinary"])
@pytest.mark.parametrize("profile", BOXED)
def test_no_script_gets_out(users, profile, who):
    none_gets_out(load(), profile, user_of(users, who))


@pytest.mark.shared
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("who", ["ourselves", "ordinary"])
@pytest.mark.parametrize("profile", BOXED)
def test_no_shared_script_gets_out(users, profile, who):
    none_gets_out(load(HOSTILE_SCRIPTS), profile, user_of(users, who))


def none_gets_out(cases, profile, user):
    there(run_cases([case for case in load() if case.id == "plain-main"], profile, user), profile)
    answers = run_cases(cases, profile, user)
    wrong = [f"{name}: {one}" for name, answer in answers.items() for one in answer["wrong"]]
    assert not wrong, "\n".join(sorted(wrong))
    assert len(answers) == sum(case.runs_in(profile) for case in cases)


@pytest.mark.parametrize("who", ["ourselves", "ordinary"])
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("isolated", {"mount", "pid", "net", "ipc", "landlock", "seccomp"}),
        ("restricted", {"landlock", "seccomp"}),
    ],
)
def test_the_layers_that_are_reported_stand(users, profile, expected, who):
    answers = run_cases(
        [case for case in load() if case.id == "plain-main"], profile, user_of(users, who)
    )
    there(answers, profile)
    layers = " ".join(answers["plain-main"]["layers"])
    assert [name for name in expected if name not in layers] == []


@pytest.mark.timeout(1200)
def test_without_a_box_many_get_through(users):
    """The set tells a box from none: else it would say nothing."""
    user = users["ordinary"] if isinstance(users["ordinary"], User) else User()
    # What ordinary scripts do isn't held against them, where no attack runs beside them.
    ordinary = [case for case in load() if case.id.startswith("plain-")]
    answers = run_cases(ordinary, "unconfined", user)
    assert {name: answer["wrong"] for name, answer in answers.items() if answer["wrong"]} == {}
    answers = run_cases([case for case in load() if case not in ordinary], "unconfined", user)
    failed = {name for name, answer in answers.items() if answer["wrong"]}
    assert failed >= DISCRIMINATING & answers.keys()
    assert len(failed) > len(answers) / 4


def test_the_cases_say_something():
    for case in load():
        assert case.expect
        assert {"status", "kind"} & case.check.keys(), case.id
    assert len(load()) > 200


# The judge itself
RESULT = {
    "status": "ok", "exit_code": 0, "signal": None, "stdout": "", "stderr": "",
    "stdout_truncated": False, "stderr_truncated": False, "artifacts": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("check", "result", "around", "told"),
    [
        ({"status": ["ok"]}, {}, {}, []),
        ({"status": ["error"]}, {}, {}, ["expected a status of ['error'], came"]),
        ({"no": "ESCAPED"}, {"stdout": "ESCAPED"}, {}, ["'ESCAPED' is in the output"]),
        ({"has": "DONE"}, {}, {}, ["'DONE' is not in the output"]),
        ({"exit": 3}, {}, {}, ["expected exit 3, came 0"]),
        ({"signal": 6}, {}, {}, ["expected signal 6, came None"]),
        ({"truncated": True}, {}, {}, ["expected truncated True, came False"]),
        ({"max_out": 3}, {"stderr": "éé"}, {}, ["4 bytes of stderr are kept"]),
        ({"max_ms": 10}, {}, {}, ["it took 50.0 s"]),
        ({}, {"stdout": "canary-secret-1"}, {}, ["the secret is in stdout"]),
        ({}, {"stderr": "\udcff"}, {}, ["stderr is no text"]),
        ({}, {"status": "fine"}, {}, ["no status is called 'fine'"]),
        ({}, {}, {"contacts": ["tcp"]}, ["the listeners were reached: ['tcp']"]),
        ({}, {}, {"processes": ["1 x (S)"]}, ["processes are left: ['1 x (S)']"]),
        ({}, {}, {"files": ["x"]}, ["temporary files are left: ['x']"]),
        ({}, {}, {"disturbed": ["a victim"]}, ["a victim"]),
        ({"min_artifacts": 1}, {}, {}, ["0 artifacts: []"]),
    ],
)
def test_the_judge_sees(tmp_path, check, result, around, told):
    case = read({"id": "x", "code": "", "expect": "x", "check": check})
    outcome = Outcome({**RESULT, **result}, 50.0, tmp_path, **around)
    found = problems(case, outcome)
    assert len(found) == len(told)
    for one, beginning in zip(found, told, strict=True):
        assert one.startswith(beginning)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, []),
        ({"path": "../a"}, ["an artifact is called '../a'"]),
        ({"path": "a\nb"}, ["an artifact is called 'a\\nb'"]),
        ({"size": 2}, ["artifact 'a' has 1 bytes, told 2"]),
        ({"sha256": "0"}, ["artifact 'a' has another sha256 than told"]),
        ({"file": "/etc/passwd"}, ["an artifact lies at /etc/passwd", "files that no artifact"]),
    ],
)
def test_the_judge_looks_at_artifacts(tmp_path, change, told):
    import hashlib

    (tmp_path / "a").write_bytes(b"1")
    artifact = {"path": "a", "size": 1, "sha256": hashlib.sha256(b"1").hexdigest()}
    artifact |= {"file": str(tmp_path / "a")} | change
    case = read({"id": "x", "code": "", "expect": "x", "check": {}})
    found = problems(case, Outcome({**RESULT, "artifacts": [artifact]}, 0.1, tmp_path))
    assert [one[: len(text)] for one, text in zip(found, told, strict=True)] == told


@pytest.mark.skipif(shutil.which("cat") is None, reason="no programs here")
def test_a_scene_sees_what_is_done_to_it():
    import signal
    import socket

    from sandbox.scene import Scene

    with Scene() as scene:
        assert (scene.disturbed(), scene.contacts()) == ([], [])
        os.kill(scene.victim.pid, signal.SIGURG)
        (scene.host / "x").write_text("x")
        scene.canary.chmod(0o600)
        said = subprocess.run(
            ["cat", scene.fill("@CANARY@")], capture_output=True, text=True, check=True
        )
        assert said.stdout == scene.secret
        with socket.create_connection(("127.0.0.1", scene.listener.port)) as one:
            assert one.recv(15) == b"HTTP/1.0 200 OK"
        mode, victim, host = scene.disturbed()
        assert mode.startswith("the canary's st_mode")
        assert victim == f"the victim got signals [{int(signal.SIGURG)}]"
        assert host == "in the host's directory: ['x']"
        assert scene.contacts() == ["tcp"]
        assert (scene.disturbed(), scene.contacts()) == ([], [])
