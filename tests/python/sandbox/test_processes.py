"""What running scripts costs and leaves: processes, memory, descriptors, files, mounts."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from callslip import PythonRunner
from left_open import Open, check_nothing_is_left
from random_cases import cases
from sandbox.cases import SUPPORT
from sandbox.hostile import NotHere, ordinary_user
from sandbox.killed import PR_SET_CHILD_SUBREAPER, TREE
from sandbox.offered import ALL, BOXED, need
from sandbox.scene import gone, processes_below


@pytest.fixture(params=ALL)
def profile(request):
    need(request.param)
    return request.param


@pytest.fixture(params=BOXED)
def box(request):
    need(request.param)
    return request.param


@pytest.fixture
def left():
    """A function: the processes that are there beside those that were, after a moment.

    What loses its parent comes to this process, so that nothing is overlooked.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = set(processes_below(os.getpid()))
    yield lambda seconds=1.0: gone(os.getpid(), before, seconds)
    prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files are made, and nothing else is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class Signalled:
    """Waits for a word of the script's output."""

    def __init__(self, word):
        self.word = word
        self.text = ""
        self.seen = asyncio.Event()

    def __call__(self, event):
        if event.kind == "stdout":
            self.text += event.data["text"]
            if self.word in self.text:
                self.seen.set()


def test_a_cancelled_tree_of_40_is_dead_within_100_ms(profile, left, folder):
    async def once():
        grown = Signalled("grown")
        runner = PythonRunner(profile=profile, on_event=grown)
        task = asyncio.create_task(runner.arun(TREE))
        waiting = asyncio.create_task(grown.seen.wait())
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert grown.seen.is_set(), task.result()
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        seconds = time.perf_counter() - began
        # The result says that all of them are dead: nothing has to be waited for.
        assert left(0) == []
        runner.close()
        return seconds

    # The other processes of a machine may hold one up: each waits for its turn among them.
    for _ in range(12):
        waiting_for_each = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        if (seconds := asyncio.run(once())) < 0.1 * waiting_for_each:
            break
    else:
        pytest.fail(f"it took {seconds:.2f} s, with {waiting_for_each:.1f} processes a core")
    assert files(folder) == []


FLOOD = """
import json, sys
from pathlib import Path
from callslip import PythonRunner

def highest():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) << 10

flood = "import os\\nb = b'x' * (1 << 20)\\nfor _ in range(1024): os.write(1, b)"
heard = []
with PythonRunner(profile=sys.argv[1], on_event=lambda event: heard.append(event.kind)) as runner:
    runner.run("pass")
    Path("/proc/self/clear_refs").write_text("5")
    before = highest()
    result = runner.run(flood)
    print(json.dumps({"status": result.status, "kept": len(result.stdout),
                      "written": result.stdout_bytes, "grown": highest() - before}))
"""


def python(program, *arguments, **options):
    """A program in a process of its own, with what this one imports from."""
    paths = [str(SUPPORT), *(path for path in sys.path if path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        **options,
    )


def said(process):
    text, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    return json.loads(text.splitlines()[-1])


def test_a_gigabyte_of_output_is_stopped_and_not_kept(profile):
    told = said(python(FLOOD, profile))
    assert told["status"] == "output_limit"
    assert told["kept"] < 70_000
    assert 64 << 20 <= told["written"] < 256 << 20
    assert told["grown"] < 32 << 20


@pytest.mark.random_cases
def test_many_runs_leave_nothing(profile, left, folder):
    times = cases(15)

    def state():
        gc.collect()
        return Path("/proc/self/mountinfo").read_text(), files(folder)

    runner = PythonRunner(profile=profile)

    def some(count):
        for number in range(count):
            result = runner.run(f"print({number})\nopen('f', 'w').write('x')")
            assert (result.status, result.stdout) == ("ok", f"{number}\n")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, [1] * 4))  # whatever is made once is made now
        before, opened = state(), Open()
        list(pool.map(some, [times] * 4))
        assert state() == before
        check_nothing_is_left(opened, times * 4)
    assert left() == []
    runner.close()
    assert files(folder) == []


def orphans_end(left):
    """What is left of a program's processes once its orphans had time to end.

    They are ours now, as they would be init's, and we wait for those that have ended.
    """
    ends = time.monotonic() + 60
    while left(0) and time.monotonic() < ends:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.01)
    return left(0)


HOST = """
import sys
from callslip import PythonRunner
with PythonRunner(profile=sys.argv[1], on_event=lambda event: print(event.data, flush=True)) as it:
    it.run(sys.argv[2])
"""


def test_a_killed_program_leaves_nothing(profile, left, folder):
    with python(HOST, profile, TREE) as host:
        assert any("grown" in line for line in host.stdout)
        assert len(left(0)) >= 41
        host.kill()
        host.wait()
        assert orphans_end(left) == []
    # What it could not clean is cleaned by the next.
    with PythonRunner(profile=profile) as runner:
        assert runner.run("pass").ok
    assert files(folder) == []


def test_an_interrupted_program_leaves_nothing(profile, left, folder):
    with python(HOST, profile, TREE, stderr=subprocess.PIPE) as host:
        assert any("grown" in line for line in host.stdout)
        host.send_signal(signal.SIGINT)
        _, error = host.communicate(timeout=100)
        assert "KeyboardInterrupt" in error
        assert left(0) == []
    assert files(folder) == []


FORK = """
import json, os, sys, warnings
from callslip import PythonRunner
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of forks beside threads
runner = PythonRunner(profile=sys.argv[1])
assert runner.run("print(1)").stdout == "1\\n"
forked = []
def fork(event):
    if event.kind == "stdout" and not forked:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        forked.append(os.waitpid(pid, 0)[1])
watched = PythonRunner(profile=sys.argv[1], on_event=fork)
result = watched.run("import time; print('on', flush=True); time.sleep(.2); print('still')")
pid = os.fork()
if pid == 0:
    try:
        came = PythonRunner(profile=sys.argv[1]).run("print(2)").stdout
    except Exception as error:
        came = type(error).__name__
    os._exit(0 if came in ("2\\n", "UsageError", "SandboxError") else 1)
print(json.dumps({"during": forked, "stdout": result.stdout,
                  "child": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
                  "after": runner.run("print(3)").stdout}))
"""


def test_a_fork_of_the_program_harms_no_script(profile):
    told = said(python(FORK, profile))
    assert told == {"during": [0], "stdout": "on\nstill\n", "child": 0, "after": "3\n"}


NEIGHBOUR = """
import os, signal, time
signal.signal(signal.SIGURG, lambda *_: print("signalled", flush=True))
open("mine", "w").write("x")
for folder in ("/tmp", "/dev/shm", "/var/tmp"):
    try:
        open(folder + "/callslip-neighbour", "w").write("x")
    except OSError:
        pass
print("there", flush=True)
time.sleep(1.5)
print("still there")
"""
# A signal that harms nobody, should it get through to all of this machine.
LOOK = """
import os, signal
seen = []
for folder in (".", "..", "/tmp", "/dev/shm", "/var/tmp"):
    try:
        seen += [name for name in os.listdir(folder) if name in ("mine", "callslip-neighbour")]
    except OSError:
        pass
try:
    os.kill(-1, signal.SIGURG)
except OSError:
    pass
print(seen)
"""


def test_scripts_side_by_side_do_not_see_each_other(box, left):
    async def both():
        there = Signalled("there")
        first = asyncio.create_task(PythonRunner(profile=box, on_event=there).arun(NEIGHBOUR))
        await asyncio.wait_for(there.seen.wait(), 60)
        second = await PythonRunner(profile=box).arun(LOOK)
        return await first, second

    first, second = asyncio.run(both())
    assert (first.status, first.stdout) == ("ok", "there\nstill there\n")
    assert (second.status, second.stdout) == ("ok", "[]\n")
    assert left() == []
    assert not Path("/dev/shm/callslip-neighbour").exists()


def test_scripts_run_in_8_threads(profile, left):
    runner = PythonRunner(profile=profile)
    barrier = threading.Barrier(8)

    def some(number):
        barrier.wait()
        return [runner.run(f"print({number * 100 + one})").stdout for one in range(4)]

    with ThreadPoolExecutor(8) as pool:
        came = list(pool.map(some, range(8)))
    assert came == [[f"{number * 100 + one}\n" for one in range(4)] for number in range(8)]
    assert left() == []


def test_scripts_run_side_by_side_on_one_loop(profile, left):
    async def all_of_them():
        runner = PythonRunner(profile=profile)
        code = "import time; time.sleep(3); print({})"
        return await asyncio.gather(*(runner.arun(code.format(number)) for number in range(8)))

    began = time.monotonic()
    results = asyncio.run(all_of_them())
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(8)]
    assert time.monotonic() - began < 8 * 3
    assert left() == []


BUSY = """
import subprocess, sys
from callslip import PythonRunner
others = [subprocess.Popen(["sleep", "30"]) for _ in range(80)]
try:
    code = "import subprocess; print(subprocess.run(['echo', 'x'], capture_output=True).stdout)"
    print(repr(PythonRunner(profile=sys.argv[1]).run(code).stdout))
finally:
    for other in others:
        other.kill()
"""


def test_scripts_of_a_busy_user_may_start_processes(box):
    """How many processes there may be is counted by the user, not by the script."""
    try:
        with ordinary_user() as user:
            done = subprocess.run(
                **user.of_lane(0).command("-c", BUSY, box, cwd="/"),
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
    except NotHere as why:
        pytest.skip(str(why))
    assert done.stdout == repr("b'x\\n'\n") + "\n", done.stderr


def test_a_slow_listener_holds_up_no_limit(box, left):
    from callslip import ScriptLimits

    heard = []

    def slow(event):
        heard.append(event.kind)
        if event.kind == "stdout" and heard.count("stdout") <= 5:
            time.sleep(0.4)

    limits = ScriptLimits(wall_seconds=1.0)
    code = "import time\nwhile True: print('x' * 100, flush=True); time.sleep(.01)"
    result = PythonRunner(profile=box, on_event=slow, limits=limits).run(code)
    assert result.status == "timeout"
    assert 900 < result.duration_ms < 20_000
    assert left() == []
