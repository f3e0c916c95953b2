"""The project of `examples/orders`, tested with the plugin as one of somebody else's would be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3] / "examples" / "orders"


@pytest.fixture
def project(tmp_path):
    shutil.copytree(
        PROJECT, tmp_path / "orders", ignore=shutil.ignore_patterns("__pycache__", ".*_cache")
    )
    return tmp_path / "orders"


def pytest_in(project, *options):
    # Neither this project's settings nor its PYTHONPATH for tests.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ |= {"CI": "true", "CALLSLIP_NO_MODELS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_its_tests_pass_without_a_model_and_side_by_side(project):
    done = pytest_in(project, "-n", "2")
    assert done.returncode == 0, done.stdout
    assert "38 passed" in done.stdout


def test_a_changed_prompt_fails_with_the_difference_and_the_way_to_record_anew(project):
    desk = project / "orders" / "desk.py"
    text = desk.read_text("utf-8")
    desk.write_text(text.replace("at the desk of a shop", "at the counter of a shop"), "utf-8")
    done = pytest_in(project, "tests/test_recorded.py")
    assert done.returncode == 1, done.stdout
    assert "-You work at the desk of a shop." in done.stdout
    assert "+You work at the counter of a shop." in done.stdout
    assert "--callslip=rewrite" in done.stdout


def test_a_changed_tool_fails_too(project):
    desk = project / "orders" / "desk.py"
    text = desk.read_text("utf-8")
    desk.write_text(text.replace("{context.deps.orders[number]:.2f} euros", "paid"), "utf-8")
    done = pytest_in(project, "tests/test_recorded.py")
    assert done.returncode == 1, done.stdout
    assert "order 7: paid" in done.stdout
