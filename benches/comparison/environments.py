"""An environment for each peer, with pinned versions: their needs contradict one another."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from comparison.peers import Peer

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "compare"
TOOLS = ("pip", "setuptools")
"""What each environment has to begin with."""


def pins() -> dict[str, str]:
    """Return the requirement of each distribution in the dependency group."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    group = settings["dependency-groups"]["compare"]
    return {line.partition("==")[0].partition("[")[0]: line for line in group}


def python_of(peer: Peer) -> Path:
    return CACHE / peer.folder / "bin" / "python"


def prepare(peer: Peer) -> None:
    """Make the environment, unless it is there with these versions."""
    pinned = pins()
    needs, keeps = ([pinned[name] for name in names] for names in (peer.needs, peer.keeps))
    folder = CACHE / peer.folder
    stamp = folder / "pinned.txt"
    wanted = "\n".join([*needs, "", *keeps])
    if stamp.is_file() and stamp.read_text("utf-8") == wanted:
        return
    print(f"{peer.title}: installing {', '.join([*needs, *keeps])}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [python_of(peer), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, *needs], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (folder / "size.json").write_text(json.dumps(size(site, peer)))
    if keeps:
        subprocess.run([*pip, *keeps], check=True)
    if peer.folder == "callslip":
        (site / "callslip.pth").write_text(f"{ROOT / 'python'}\n")
    stamp.write_text(wanted, "utf-8")


def size(site: Path, peer: Peer) -> dict[str, float]:
    """Megabytes and distributions of an environment, without what Python compiles at a start."""
    own = [*site.glob("*.dist-info")]
    found = [one for one in own if one.name.partition("-")[0] not in TOOLS]
    skipped = {"pip", "setuptools", "pkg_resources", "_distutils_hack", "__pycache__"}
    total = weigh(site, skipped)
    if peer.folder == "callslip":
        total += weigh(ROOT / "python" / "callslip", skipped)
    count = len(found) + (peer.folder == "callslip")
    return {"mb": round(total / 1e6, 1), "distributions": count}


def weigh(folder: Path, skipped: set[str]) -> int:
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and not skipped.intersection(file.relative_to(folder).parts[:-1])
    )


def version() -> str:
    """Return the version of this repository."""
    settings = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    return str(settings["package"]["version"])


def installed(peer: Peer) -> dict[str, object]:
    """Return the versions and the size of an environment."""
    command = [python_of(peer), "-m", "pip", "--disable-pip-version-check", "list", "--format=json"]
    listed = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    versions = {one["name"]: one["version"] for one in listed if one["name"] not in TOOLS}
    weight = json.loads((CACHE / peer.folder / "size.json").read_text("utf-8"))
    return {"versions": versions, **weight}
