"""The licences of the crates that are compiled into the extension and the launcher."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
FILE = ROOT / "LICENSE-CRATES"
MANIFESTS = (ROOT / "Cargo.toml", ROOT / "src" / "launcher" / "Cargo.toml")

BEGIN = (
    "The extension module of callslip and its launcher are compiled from these crates, too, which\n"
    "differ between systems. Their licences follow.\n"
)
_TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
_LISTED = re.compile(r"^- (\S+) (\S+): ", re.MULTILINE)


def listed(text: str) -> set[tuple[str, str]]:
    """Return the names and versions that such a text lists."""
    return set(_LISTED.findall(text))


@functools.cache
def licences_of_now() -> str:
    """Return the text for the crates of now."""
    crates = sorted(
        {
            (crate["name"], crate["version"]): crate
            for manifest in MANIFESTS
            for crate in compiled(manifest)
        }.items()
    )
    lines = [BEGIN]
    users: defaultdict[str, list[str]] = defaultdict(list)
    for (name, version), crate in crates:
        texts = _texts(Path(crate["manifest_path"]).parent)
        for text in texts:
            users[text].append(f"{name} {version}")
        lines.append(f"- {name} {version}: {crate['license']}{_source(crate, texts)}")
    for text, names in users.items():
        lines += ["", "-" * 80, ", ".join(names), "", text]
    return "\n".join(lines) + "\n"


def compiled(manifest: Path) -> list[dict[str, Any]]:
    """Return what Cargo says of the crates that end up in the binary, on any system."""
    tree = _cargo("tree", manifest, "--edges=normal", "--prefix=none", "--target=all")
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    packages = json.loads(_cargo("metadata", manifest, "--format-version=1"))["packages"]
    return [
        crate
        for crate in packages
        if crate["source"] is not None and (crate["name"], f"v{crate['version']}") in names
    ]


def here(manifest: Path) -> set[tuple[str, str]]:
    """Return the names and versions of the crates that are compiled on this system, from indexes.

    The crate itself is not among them.
    """
    tree = _cargo("tree", manifest, "--edges=normal", "--prefix=none", "--format={p}")
    words = (line.split() for line in tree.splitlines() if line)
    # A folder stands behind those that are not from an index.
    return {(name, number[1:]) for name, number, *more in words if not any("/" in w for w in more)}


def _cargo(command: str, manifest: Path, *options: str) -> str:
    words = ["cargo", command, "--locked", f"--manifest-path={manifest}", *options]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _texts(folder: Path) -> list[str]:
    """Return the licence texts of a crate. Of two to choose from, MIT is the shorter one."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and _TEXT.match(file.name))
    if any("MIT" in file.name.upper() for file in files):
        files = [file for file in files if "APACHE" not in file.name.upper()]
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in texts]


def _source(crate: dict[str, Any], texts: list[str]) -> str:
    """Return who wrote a crate that comes without a text, or whose licence asks for its source."""
    if texts:
        return f", {crate['repository']}" if "MPL" in crate["license"] else ""
    authors = ", ".join(re.sub(r" <.*?>", "", author) for author in crate["authors"])
    return f", by {authors or 'its authors'}, {crate['repository']}"


def main() -> None:
    FILE.write_text(licences_of_now(), encoding="utf-8")
    print(f"{FILE.name}: {len(listed(FILE.read_text(encoding='utf-8')))} crates")


if __name__ == "__main__":
    sys.exit(main())
