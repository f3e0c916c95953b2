"""What `make` builds, and what `make test-quick` covers."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Makefile").read_text("utf-8")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(*goals):
    """What make would do if nothing was built."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    kept.pop("BUILD_PROFILE", None)
    command = ["make", "--dry-run", "--always-make", *goals]
    done = subprocess.run(
        command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout


@pytest.mark.parametrize(
    ("goal", "profile"),
    [
        ("dev", "quick"),
        ("demo", "quick"),
        ("test-py", "quick"),
        ("wheel", "release"),
        ("bench-parse", "release"),
        ("compare", "release"),
    ],
)
def test_contributors_build_fast_and_users_get_what_is_measured(goal, profile):
    built = re.findall(r"maturin develop --profile (\w+)", planned(goal))
    assert set(built) == {profile}


def test_a_profile_can_be_chosen():
    assert "maturin develop --profile release" in planned("dev", "BUILD_PROFILE=release")


def test_the_quick_tests_have_files_of_every_area():
    part = re.search(r"QUICK_TESTS := .*?\)\n", TEXT, re.DOTALL)
    files = re.findall(r"[\w/]+\.py", part[0])
    folder = ROOT / "tests" / "python"
    assert [name for name in files if not (folder / name).is_file()] == []
    areas = {path.name for path in folder.iterdir() if any(path.glob("test_*.py"))}
    # These need services or PostgreSQL for nearly all that they do.
    areas -= {"console", "fleet", "gateway", "mcp", "otel"}
    assert areas - {name.partition("/")[0] for name in files} == set()


def test_pip_and_maturin_install_nothing_at_the_same_time():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = set(settings["project"]["dependencies"])
    assert needed <= set(settings["dependency-groups"]["build"])
