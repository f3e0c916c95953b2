"""The demonstration for people: three workers, and one of them is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[3] / "examples" / "fleet" / "demo.py"


@pytest.mark.timeout(120)
def test_the_demonstration_ends_well_and_leaves_nothing_running(database):
    command = [sys.executable, str(DEMO), database]
    # A worker that stayed would keep the pipe open, and this would not return.
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert "50 of 50 runs ended, each with exactly 2 calls: 100 in all" in done.stdout
    assert "killed with -9" in done.stdout
