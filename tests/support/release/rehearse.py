"""Rehearse a release in a copy of what is committed, without publishing anything.

The version is raised and dated in the changelog; the source distribution is built, and a wheel is
built from it without a network, from crates that lie beside it; the wheel of the tree must be the
same, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from release import version

ROOT = Path(__file__).parents[3]

# cargo takes all crates from a folder.
_VENDORED = """[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "{folder}"
"""


class Rehearsal:
    """A release that is built in a folder of its own.

    Both wheels are built at one place, one after the other, since the place is in what is built.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tree = folder / "tree"
        self._place = folder / "build" / "callslip"
        self._crates = folder / "crates"
        self._target = folder / "target"

    def run(self) -> str:
        """Return what was built, in a sentence.

        Raises:
            LookupError: Version and changelog do not agree.
            ValueError: The two wheels differ.
            subprocess.CalledProcessError: A step has failed; its own output says how.
        """
        self._call("git", "clone", "--quiet", str(ROOT), str(self._tree), at=ROOT)
        raised = _next(version.stated(self._tree))
        version.write(raised, self._tree)
        version.of_tag(f"v{raised}", self._tree)
        print(f"== version {raised}, with a section in the changelog", flush=True)
        self._vendor()
        self._maturin("sdist", "--out", str(self._folder), at=self._tree)
        sources = self._folder / f"callslip-{raised}.tar.gz"
        print(f"== {sources.name}; now its wheel, without a network", flush=True)
        self._place.parent.mkdir()
        with tarfile.open(sources) as archive:
            archive.extractall(self._place.parent, filter="data")
        (self._place.parent / f"callslip-{raised}").rename(self._place)
        from_sources = self._wheel("from-sources")
        shutil.rmtree(self._place)
        shutil.move(self._tree, self._place)
        print("== the wheel of the tree", flush=True)
        from_tree = self._wheel("from-tree")
        if changed := _differences(from_sources, from_tree):
            raise ValueError(f"expected equal wheels: got other {', '.join(changed)}")
        return f"{from_tree.name}: {len(_files(from_tree))} files, equal from tree and from sources"

    def _vendor(self) -> None:
        command = ["cargo", "vendor", "--locked", "--quiet", "--versioned-dirs"]
        command += ["--sync", "src/launcher/Cargo.toml", str(self._crates)]
        self._call(*command, at=self._tree)

    def _wheel(self, name: str) -> Path:
        # What was built of the other tree at this place may look up to date.
        for built in self._target.rglob(".fingerprint/callslip*"):
            shutil.rmtree(built)
        configuration = self._place / ".cargo" / "config.toml"
        configuration.parent.mkdir(exist_ok=True)
        configuration.write_text(_VENDORED.format(folder=self._crates), "utf-8")
        out = self._folder / name
        self._maturin("build", "--release", "--locked", "--out", str(out), at=self._place)
        (wheel,) = out.glob("*.whl")
        return wheel

    def _maturin(self, *arguments: str, at: Path) -> None:
        self._call(sys.executable, "-m", "maturin", *arguments, at=at)

    def _call(self, *command: str, at: Path) -> None:
        environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(self._target),
            # Wheels have the times of their files.
            "SOURCE_DATE_EPOCH": "1700000000",
        }
        if "build" in command:
            environment["CARGO_NET_OFFLINE"] = "true"
            # An empty home: nothing that was downloaded before is used.
            environment["CARGO_HOME"] = str(self._folder / "home")
        subprocess.run(command, cwd=at, env=environment, check=True)


def _next(stated: str) -> str:
    major, minor, patch = stated.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def _files(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def _differences(one: Path, other: Path) -> list[str]:
    left, right = _files(one), _files(other)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="callslip-release-") as folder:
        try:
            print(f"== {Rehearsal(Path(folder)).run()}")
        except (LookupError, ValueError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
