"""`import callslip` stays cheap: nothing heavy is loaded, started or touched before its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = """
import json, os, sys

events = []
sys.addaudithook(lambda event, args: events.append([event, str(args[0]) if args else ""]))
before = set(sys.modules)
import callslip
seen = list(events)
modules = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
threads = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else None
print(json.dumps({"modules": modules, "events": seen, "threads": threads}))
"""


@pytest.fixture(scope="module")
def report() -> dict:
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", REPORT],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    return json.loads(done.stdout)


def test_only_the_standard_library_and_callslip_are_loaded(report):
    roots = {name.partition(".")[0] for name in report["modules"]}
    assert roots - set(sys.stdlib_module_names) == {"callslip"}


@pytest.mark.parametrize(
    "heavy",
    [
        "asyncio",
        "concurrent.futures",
        "http",
        "logging",
        "socket",
        "ssl",
        "sqlite3",
        "typing_extensions",
    ],
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
    assert report["threads"] in (1, None)


def test_no_socket_process_or_file_is_touched(report):
    code = (".py", ".pyc", ".so", ".pyd")
    touched = [
        (event, subject)
        for event, subject in report["events"]
        if event.partition(".")[0] in {"socket", "subprocess", "shutil", "tempfile", "sqlite3"}
        or event in {"os.fork", "os.exec", "os.mkdir", "os.remove", "os.rename", "os.system"}
        or (event == "open" and not subject.endswith(code))
    ]
    assert touched == []


def test_every_public_name_is_there():
    import callslip

    assert sorted(callslip.__all__) == [name for name in dir(callslip) if name in callslip.__all__]
    for name in callslip.__all__:
        assert getattr(callslip, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = callslip.nothing


def test_every_public_module_is_an_attribute():
    import callslip

    package = Path(callslip.__file__).parent
    public = {path.stem for path in package.glob("[a-z]*.py")}
    public |= {path.parent.name for path in package.glob("[a-z]*/__init__.py")}
    assert public == set(callslip._MODULES)
    for name in public:
        assert callslip.__getattr__(name).__name__ == f"callslip.{name}"
