"""`import callslip` stays cheap: nothing heavy is loaded, started or touched before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

REPORT = """
import json, sys, threading

seen = []
sys.addaudithook(lambda event, args: seen.append([event, repr(args[:2])]))
before = set(sys.modules)
import callslip
events = list(seen)
modules = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
try:
    import os
    threads = len(os.listdir("/proc/self/task"))
except OSError:
    threads = threading.active_count()
print(json.dumps({"modules": modules, "events": events, "threads": threads}))
"""


@pytest.fixture(scope="module")
def report() -> dict:
    done = subprocess.run(
        [sys.executable, "-I", "-c", REPORT], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_only_the_standard_library_and_callslip_are_loaded(report):
    roots = {name.partition(".")[0] for name in report["modules"]}
    assert roots - set(sys.stdlib_module_names) == {"callslip"}


@pytest.mark.parametrize(
    "heavy",
    ["asyncio", "concurrent.futures", "http", "inspect", "logging", "socket", "ssl", "sqlite3", "typing_extensions"],
)
def test_heavy_modules_wait_until_they_are_needed(report, heavy):
    assert heavy not in report["modules"]


def test_only_the_core_is_native(report):
    native = [
        name
        for name, file in report["modules"].items()
        if name.startswith("callslip") and not str(file).endswith(".py")
    ]
    assert native == ["callslip._core"]


def test_no_thread_is_started(report):
    assert report["threads"] == 1


def test_no_socket_process_or_file_is_touched(report):
    def is_code(args: str) -> bool:
        return any(end in args for end in (".py'", ".pyc'", ".so'", ".pyd'", ".pth'"))

    touched = [
        (event, args)
        for event, args in report["events"]
        if event.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.remove", "os.mkdir"))
        or (event == "open" and not is_code(args) and not event.startswith("import"))
    ]
    assert touched == []
