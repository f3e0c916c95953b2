"""What a release is made with, short of making one: `make wheels` and `make rehearse` do."""

import json
import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from release import install, licences, parts, pythons, rehearse, version

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def copy(tmp_path):
    """The files that have the version in them."""
    (tmp_path / "fuzz").mkdir()
    for name in ("Cargo.toml", "Cargo.lock", "fuzz/Cargo.lock", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_tag_agrees_with_the_version_and_the_changelog():
    assert version.of_tag(f"v{version.stated()}").startswith("The first version on an index.")


def test_another_tag_is_refused():
    with pytest.raises(LookupError, match=r"expected the tag v\S+, as in Cargo\.toml: got v9"):
        version.of_tag("v9")


def test_a_version_is_written_into_all_files(copy):
    raised = rehearse._next(version.stated(copy))
    changelog = copy / "CHANGELOG.md"
    begun = "## [Unreleased]\n\n### Fixed\n\n- All of it.\n\n## [0.2.0]"
    _, _, released = changelog.read_text("utf-8").partition("## [0.2.0]")
    changelog.write_text(begun + released, "utf-8")
    version.write(raised, copy)
    assert version.stated(copy) == raised
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        assert f'name = "callslip"\nversion = "{raised}"' in (copy / lock).read_text("utf-8")
    assert version.of_tag(f"v{raised}", copy).strip() == "### Fixed\n\n- All of it."


def test_a_version_without_a_section_says_what_to_call(copy):
    with pytest.raises(LookupError, match=r"got none; call version\.py --set 7\.0\.0"):
        version.notes("7.0.0", copy)


def test_the_licences_are_those_of_the_locked_crates():
    locked = {
        (crate["name"], crate["version"])
        for lock in (ROOT / "Cargo.lock", ROOT / "src" / "launcher" / "Cargo.lock")
        for crate in tomllib.loads(lock.read_text("utf-8"))["package"]
    }
    listed = licences.listed(licences.FILE.read_text("utf-8"))
    assert {"pyo3", "serde_json", "rustls", "seccompiler"} <= {name for name, _ in listed}
    assert listed - locked == set(), "call make licences"


def test_the_parts_of_the_launcher_are_those_of_its_locked_crates():
    lock = (ROOT / "src" / "launcher" / "Cargo.lock").read_text("utf-8")
    locked = {(crate["name"], crate["version"]) for crate in tomllib.loads(lock)["package"]}
    listed = parts.listed(parts.FILE.read_text("utf-8"))
    assert {"landlock", "rustix", "seccompiler"} <= {name for name, _ in listed}
    assert listed - locked == set(), "call make licences"
    sbom = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["maturin"]["sbom"]
    assert sbom["include"] == [parts.FILE.relative_to(ROOT).as_posix()]


WHEELS = sorted((ROOT / "dist").glob("callslip-*.whl"))


@pytest.mark.skipif(not WHEELS, reason="make wheel has built none")
@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)
def test_a_wheel_lists_the_crates_of_the_extension_and_of_the_launcher(wheel):
    assert parts.wrong_parts(wheel) == []


def lists(**changed):
    """The lists of parts of a wheel, by their names; `None` leaves one out."""
    texts = {
        "callslip.cyclonedx.json": sorted(licences.here(licences.MANIFESTS[0])),
        parts.FILE.name: sorted(parts.listed(parts.FILE.read_text("utf-8"))),
    }
    for at, name in enumerate(list(texts)):
        crates = changed.get(("extension", "launcher")[at], lambda crates: crates)(texts[name])
        texts[name] = crates and [{"name": one, "version": number} for one, number in crates]
    return {name: json.dumps({"components": crates}) for name, crates in texts.items() if crates}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, []),
        ({"extension": lambda _: None}, ["expected callslip.cyclonedx.json in"]),
        ({"launcher": lambda _: None}, [f"expected {parts.FILE.name} in"]),
        ({"extension": lambda crates: crates[1:]}, ["expected callslip.cyclonedx.json in"]),
        ({"launcher": lambda crates: [*crates, ("pyo3", "1")]}, [f"expected {parts.FILE.name} in"]),
    ],
)
def test_a_wheel_without_a_crate_is_told(tmp_path, changed, told):
    wheel = tmp_path / "callslip-1-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in lists(**changed).items():
            archive.writestr(f"callslip-1.dist-info/sboms/{name}", text)
    wrong = parts.wrong_parts(wheel)
    assert [one[: len(text)] for one, text in zip(wrong, told, strict=True)] == told


def test_this_interpreter_is_among_those_of_the_machine():
    found = pythons.find()
    assert sys.version_info[:2] in [python.version for python in found]
    assert len({python.name for python in found}) == len(found)


@pytest.mark.parametrize(
    ("wheel", "fits"),
    [
        ("callslip-1-cp311-abi3-{own}_x86_64.whl", True),
        ("callslip-1-cp311-abi3-{own}_riscv64.whl", False),
        ("callslip-1-cp313-cp313t-{own}_x86_64.whl", False),
        ("callslip-1-cp313-cp313-{own}_x86_64.whl", True),
        ("callslip-1-cp312-cp312-{own}_x86_64.whl", False),
        ("callslip-1-cp311-abi3-other_x86_64.whl", False),
    ],
)
def test_a_wheel_is_for_some_interpreters(monkeypatch, wheel, fits):
    monkeypatch.setattr(install.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(install.sys, "platform", "linux")
    name = wheel.format(own="manylinux_2_17")
    python = pythons.Python(Path("python"), (3, 13), free_threaded=False)
    assert install.suits(Path(name), python) is fits


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_what_is_there_and_pin_what_they_take(workflow):
    text = workflow.read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= set(targets)
    for module in re.findall(r"python -m release\.(\w+)", text):
        assert (ROOT / "tests" / "support" / "release" / f"{module}.py").is_file()
    for action in re.findall(r"uses: (\S+)", text):
        if action.startswith("./"):
            called = ROOT / action
            assert re.search(r"^  workflow_call:$", called.read_text("utf-8"), re.MULTILINE)
            continue
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
