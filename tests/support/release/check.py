"""Check what a release uploads: that an index takes it, and that it is what it says."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from release import parts
from release.licences import licences_of_now

# Megabytes. What it consists of is in docs/explanation/benchmarks.md.
LARGEST = 8.5


def check(folder: Path, *, wheels_only: bool = False) -> list[str]:
    """Check the files in a folder, print a line each, and return what is wrong with them."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if not wheels or not (sources or wheels_only):
        return [f"expected wheels and a source distribution in {folder}: got {wheels + sources}"]
    files = wheels + sources
    wrong = _run("twine", "check", "--strict", *map(str, files))
    for file in files:
        size = file.stat().st_size / 1e6
        print(f"{size:5.2f} MB  {file.name}")
        if size > LARGEST:
            wrong.append(f"expected at most {LARGEST} MB: got {size:.2f} MB in {file.name}")
        wrong += _check_wheel(file) if file.suffix == ".whl" else _check_source(file)
    return wrong


def _check_wheel(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licences = _licences_in(archive)
    wrong = [
        f"expected {what} in {wheel.name}: got none"
        for what, pattern in (
            ("licences", r".*\.dist-info/licenses/LICENSE-MIT"),
            ("py.typed", r"callslip/py\.typed"),
            *((("the launcher", r"callslip/callslip-launcher"),) if "linux" in wheel.name else ()),
        )
        if not any(re.fullmatch(pattern, name) for name in names)
    ]
    wrong += parts.wrong_parts(wheel)
    if licences != licences_of_now().splitlines():
        wrong.append(
            f"expected the licences of the crates of now in {wheel.name}: call make licences"
        )
    if "-abi3-" in wheel.name:
        wrong += _run("abi3audit", "--strict", str(wheel))
    if "linux" in wheel.name:
        wrong += _check_platform(wheel)
    return wrong


def _licences_in(wheel: zipfile.ZipFile) -> list[str]:
    names = [name for name in wheel.namelist() if name.endswith("/LICENSE-CRATES")]
    return [line for name in names for line in wheel.read(name).decode().splitlines()]


def _check_platform(wheel: Path) -> list[str]:
    """Check that the wheel needs no newer system than its name says."""
    promised = re.search(r"(many|musl)linux_\d+_\d+_\w+?(?=\.|$)", wheel.stem)
    command = [sys.executable, "-m", "auditwheel", "show"]
    if promised is not None and promised[1] == "musl":
        # Symbols of musl have no versions, and this machine may have another libc: the build has
        # compared them with those of the version, and here it is that nothing else is needed.
        expected = 'required by the wheel: { "libc.so": null }'
        with tempfile.TemporaryDirectory() as empty:
            shown = _shown([*command, "--ldpaths", empty, str(wheel)])
    else:
        expected = "" if promised is None else f'platform tag: "{promised[0]}"'
        shown = _shown([*command, str(wheel)])
    if not expected or expected not in shown:
        return [f"expected {wheel.name} to be what it says: got {shown}"]
    return []


def _shown(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return " ".join((done.stdout or done.stderr).split())


def _check_source(source: Path) -> list[str]:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Cargo.lock", "pyproject.toml", "src/lib.rs", "src/launcher/Cargo.lock", "LICENSE"}
    return [f"expected {name} in {source.name}: got none" for name in sorted(needed - names)]


def _run(module: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [f"{module}: {done.stdout}{done.stderr}"] if done.returncode else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheels-only", action="store_true", help="the sources are elsewhere")
    arguments = parser.parse_args()
    wrong = check(arguments.folder, wheels_only=arguments.wheels_only)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
