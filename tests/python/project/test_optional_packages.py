"""Tests without the packages of the dependency groups that only some of them need."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from optional import GROUPS, why_missing

ROOT = Path(__file__).parents[3]

# Without any of these packages, wherever they are installed.
BLOCKED = """
import json, sys
from optional import GROUPS

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

blocked = {name for names in GROUPS.values() for name in names}
sys.meta_path.insert(0, Blocker())

import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def run_without(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment["PYTHONPATH"] = str(ROOT / "tests" / "support")
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *arguments, "-p", "no:cacheprovider", "-p", "no:xdist"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=240,
        check=False,
    )


def test_every_folder_is_collected_without_them_and_skips_name_the_group():
    done = run_without("tests/python", "--collect-only", "-q")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    said = re.findall(r"SKIPPED \[\d+\] (\S+?):\d+: (.*)", done.stdout)
    assert len(said) > 50
    known = {name for names in GROUPS.values() for name in names}
    for path, reason in said:
        found = re.fullmatch(
            r"(\w+) is not installed: use pip install --group (\w+)", reason
        ) or pytest.fail(f"{path}: {reason}")
        assert found[1] in known
        assert found[1] in GROUPS[found[2]]
    folders = {path.name for path in (ROOT / "tests" / "python").iterdir() if path.is_dir()}
    collected = set(re.findall(r"^tests/python/(\w+)/", done.stdout, re.MULTILINE))
    # All that these three do needs a service.
    assert folders - collected - {"__pycache__"} <= {"otel", "console", "gateway"}


def test_a_test_and_a_fixture_that_need_one_are_skipped():
    file = "tests/python/store/test_store.py"
    done = run_without(file, "-q", "-k", "postgres or database", "--maxfail=1")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "psycopg is not installed: use pip install --group postgres" in done.stdout
    assert re.search(r"\d+ skipped", done.stdout.splitlines()[-1])


def test_in_ci_a_missing_package_fails(monkeypatch):
    error = ModuleNotFoundError("No module named 'openai.none'", name="openai.none")
    monkeypatch.delenv("CI", raising=False)
    assert why_missing(error) == "openai is not installed: use pip install --group services"
    monkeypatch.setenv("CI", "true")
    assert why_missing(error) is None


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("openai"),
        ImportError("cannot import name 'OpenAI'", name="openai"),
        ModuleNotFoundError("No module named 'unheard_of'", name="unheard_of"),
        ModuleNotFoundError("No module named 'pytest.none'", name="pytest.none"),
        # It is installed: the error is of another kind.
        ModuleNotFoundError("No module named 'openai'", name="openai"),
    ],
)
def test_other_errors_skip_nothing(error, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert why_missing(error) is None


def test_the_groups_are_those_of_the_project_file():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    parts = ["core", *GROUPS]
    assert groups["test"] == [{"include-group": name} for name in parts]
    names = {}
    for package, distributions in metadata.packages_distributions().items():
        for distribution in distributions:
            names.setdefault(normal(distribution), set()).add(package)
    for group, packages in GROUPS.items():
        assert list(packages) == sorted(packages)
        for requirement in groups[group]:
            own = names.get(normal(re.match(r"[\w.-]+", requirement)[0]), set())
            # Some have programs or data alone.
            assert not own or own & set(packages), requirement


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()
