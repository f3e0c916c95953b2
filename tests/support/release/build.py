"""Build what a release uploads from a machine with Linux: the source distribution and wheels.

One wheel with the stable ABI serves all versions of Python on a platform; a free-threaded Python
needs its own. Zig is the C compiler and the linker, so that a wheel runs on systems far older than
this one, and on another processor.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from release import pythons

ROOT = Path(__file__).parents[3]

# What `rustc` calls a platform, and the oldest system that its wheel is for.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_17",
    "aarch64-unknown-linux-gnu": "manylinux_2_17",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-musl": "musllinux_1_2",
}


def build(out: Path, platforms: list[str]) -> list[str]:
    """Build into `out`, and return what can't be built here, a sentence each."""
    missing = []
    _maturin("sdist", "--out", str(out))
    installed = _installed_targets()
    found = pythons.find()
    for platform in platforms:
        if platform not in installed:
            missing.append(f"{platform}: its standard library is missing, use `rustup target add`")
            continue
        _wheel(out, platform, found[0])
    native = f"{os.uname().machine}-unknown-linux-gnu"
    free_threaded = [python for python in found if python.free_threaded]
    for python in free_threaded if native in platforms else []:
        _wheel(out, native, python)
    if not free_threaded:
        missing.append("wheels for free-threaded Python: there is none on this machine")
    return missing


def _wheel(out: Path, platform: str, python: pythons.Python) -> None:
    oldest = PLATFORMS[platform]
    _maturin(
        "build", "--release", "--locked", "--zig", "--target", platform, "--compatibility", oldest,
        "--interpreter", str(python.path), "--out", str(out),
    )  # fmt: skip


def _maturin(*arguments: str) -> None:
    print("maturin", *arguments, flush=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYO3_PYTHON"}
    # Zig is a package of this Python, whose folder need not be in PATH.
    environment["CARGO_ZIGBUILD_PYTHON_PATH"] = sys.executable
    command = [sys.executable, "-m", "maturin", *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def _installed_targets() -> list[str]:
    if shutil.which("rustup") is None:
        print("there is no rustup: only this machine's own platform is built")
        return [f"{os.uname().machine}-unknown-linux-gnu"]
    command = ["rustup", "target", "list", "--installed"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--platform", action="append", choices=PLATFORMS, help="build only these")
    arguments = parser.parse_args()
    missing = build(arguments.out, arguments.platform or list(PLATFORMS))
    for sentence in missing:
        print(f"not built: {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
