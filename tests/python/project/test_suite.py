"""The suite itself: what hangs is ended, and nothing hangs on who starts it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

CASES = """
import signal, threading, time
import os, pytest, subprocess, sys

@pytest.mark.timeout(2)
@pytest.mark.parametrize("where", ["here", "thread", "program"])
def test_hangs(where):
    wait_for_ever(where)

def wait_for_ever(where):
    if where == "here":
        time.sleep(600)
    elif where == "thread":
        thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)
        thread.start()
        thread.join()
    else:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])

def test_is_interrupted():
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)

def test_its_programs_are_interrupted():
    code = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(600)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "KeyboardInterrupt" in done.stderr
"""


@pytest.fixture
def suite(tmp_path):
    """Runs these tests as a background job without a terminal, with the settings of all tests."""

    def run(*arguments):
        cases = tmp_path / "test_cases.py"
        cases.write_text(CASES)
        settings = ["-c", TESTS.parent / "pyproject.toml", "--rootdir", tmp_path]
        command = [sys.executable, "-m", "pytest", *settings, "-p", "conftest", cases, *arguments]
        # What a shell does to its background jobs.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process = subprocess.Popen(
                [*command, "-p", "no:cacheprovider"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
            )
        finally:
            signal.signal(signal.SIGINT, before)
        with process:
            return process.communicate(timeout=200)[0]

    return run


def test_a_test_that_hangs_fails_with_its_stack_and_the_others_go_on(suite):
    said = suite("-k", "hangs or interrupted")
    assert said.count("Timeout (>2.0s)") >= 3
    assert "in wait_for_ever" in said
    assert "3 failed, 2 passed" in said.splitlines()[-1]


def test_every_test_has_a_bound(pytestconfig):
    assert 0 < float(pytestconfig.getini("timeout")) <= 600
    assert pytestconfig.getini("timeout_method") == "signal"
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True
