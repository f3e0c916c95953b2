"""Kills calls in every way on a busy machine, and looks for what is left of them.

PYTHONPATH=tests/support python -m sandbox.killed 500 [--profiles isolated restricted] [--user]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

from sandbox.hostile import User, ordinary_user
from sandbox.scene import gone, processes_below

PR_SET_CHILD_SUBREAPER = 36
LANES = 4
WAYS = ("cancel", "limit", "launcher", "program", "both")
# Processes beyond the limit of a user whom other tests are using too are not missed.
TREE = """
import os, time
for number in range(40):
    try:
        if os.fork() == 0:
            if number % 2:
                os.setsid()
            time.sleep(60)
            os._exit(0)
    except OSError:
        pass
print("grown", flush=True)
time.sleep(60)
"""
PROGRAM = """
import sys, threading
from callslip import PythonRunner, ScriptLimits
from callslip.errors import SandboxError

TREE = '''
import os, time
x = bytearray(b"x") * (20 << 20)
for number in range(24):
    try:
        if os.fork() == 0:
            if number % 2:
                os.setsid()
            if number % 3 == 0 and os.fork():
                os._exit(0)
            while number % 4 == 0:
                pass
            time.sleep(60)
            os._exit(0)
    except OSError:
        pass
print("grown", flush=True)
time.sleep(60)
'''
profile, way = sys.argv[1:]
runner = PythonRunner(
    profile=profile,
    limits=ScriptLimits(wall_seconds=1.0 if way == "limit" else 30),
    on_event=lambda event: print(event.kind, event.data.get("text", ""), flush=True),
)
if way == "cancel":
    threading.Timer(1.0, runner.close).start()
try:
    print("ended", runner.run(TREE).status)
except SandboxError as error:
    print("ended", error)
"""


def kill_one(profile: str, way: str, user: User) -> None:
    """Run a call and kill it; with `both`, the launcher and at once the program."""
    command = user.command("-c", PROGRAM, profile, way, cwd="/")
    with subprocess.Popen(
        **command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        assert program.stdout is not None
        if way in {"launcher", "program", "both"}:
            for line in program.stdout:
                if "grown" in line or "ended" in line:
                    break
            if way != "program":
                _signal(_launchers(program.pid))
            if way != "launcher":
                program.kill()
        program.stdout.read()


def _launchers(pid: int) -> list[int]:
    """The programs that a program has started itself: the launcher, or what starts it."""
    children = (Path("/proc") / str(pid) / "task").glob("*/children")
    found = []
    for listed in children:
        with suppress(OSError):
            found += [int(one) for one in listed.read_text().split()]
    return found


def _signal(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_many(count: int, profiles: list[str], ways: list[str], user: User, busy: int) -> list[str]:
    """What is left of so many calls, in words."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = set(processes_below(os.getpid()))
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    choice = random.Random(count)  # the same calls each time
    calls = [(choice.choice(profiles), ways[number % len(ways)]) for number in range(count)]
    try:
        with ThreadPoolExecutor(LANES) as lanes:
            list(lanes.map(lambda call: kill_one(*call, user), calls))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    # What has lost its parent came to this process, and is waited for below.
    left = gone(os.getpid(), before, 15.0, but_dead=True)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    _signal(int(name.split()[0]) for name in left)
    prctl(PR_SET_CHILD_SUBREAPER, 0)
    return left


def main() -> int:
    parser = argparse.ArgumentParser(prog="sandbox.killed", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--profiles", nargs="+", default=["isolated", "restricted", "unconfined"])
    parser.add_argument("--ways", nargs="+", default=["cancel", "limit", "launcher", "program"])
    parser.add_argument("--busy", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--user", action="store_true", help="as an ordinary user")
    options = parser.parse_args()
    began = time.monotonic()
    with ordinary_user() if options.user else nullcontext(User()) as user:
        left = kill_many(options.count, options.profiles, options.ways, user, options.busy)
    for name in left:
        print("left:", name)
    print(f"{options.count} calls, {len(left)} processes left, {time.monotonic() - began:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
