"""An environment for each peer, with pinned versions: their needs contradict one another."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from comparison.peers import Peer

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".venv" / "compare"


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
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python_of(peer)]
    subprocess.run([*uv, *needs], check=True)
    site = site_of(peer)
    (folder / "size.json").write_text(json.dumps(size(site, peer)))
    if keeps:
        subprocess.run([*uv, *keeps], check=True)
    if peer.folder == "callslip":
        (site / "callslip.pth").write_text(f"{ROOT / 'python'}\n")
    stamp.write_text(wanted, "utf-8")


def site_of(peer: Peer) -> Path:
    return next((CACHE / peer.folder).glob("lib/python*/site-packages"))


def size(site: Path, peer: Peer) -> dict[str, float]:
    """Megabytes and distributions of an environment, without what Python compiles at a start."""
    total, count = weigh(site), len([*site.glob("*.dist-info")])
    if peer.folder == "callslip":
        total += weigh(ROOT / "python" / "callslip")
        count += 1
    return {"mb": round(total / 1e6, 1), "distributions": count}


def weigh(folder: Path) -> int:
    files = (file for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc")


def version() -> str:
    """Return the version of this repository."""
    settings = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    return str(settings["package"]["version"])


def installed(peer: Peer) -> dict[str, object]:
    """Return the versions and the size of an environment."""
    found = importlib.metadata.distributions(path=[str(site_of(peer))])
    versions = {one.name: one.version for one in found}
    weight = json.loads((CACHE / peer.folder / "size.json").read_text("utf-8"))
    return {"versions": dict(sorted(versions.items())), **weight}
