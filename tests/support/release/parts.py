"""The list of the launcher's parts (SBOM): maturin lists those of the extension alone."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from release.licences import MANIFESTS, compiled, here

LAUNCHER = MANIFESTS[1]
FILE = LAUNCHER.parent / "callslip-launcher.cyclonedx.json"


def parts_of_now() -> str:
    """Return the text for the crates of now, in the form CycloneDX 1.5."""
    crates = sorted(compiled(LAUNCHER), key=lambda crate: (crate["name"], crate["version"]))
    about = tomllib.loads(LAUNCHER.read_text(encoding="utf-8"))["package"]
    component = {"type": "application", "name": about["name"], "version": about["version"]}
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"bom-ref": about["name"], **component}},
        "components": [_component(crate) for crate in crates],
    }
    return json.dumps(bom, indent=1) + "\n"


def _component(crate: dict[str, Any]) -> dict[str, Any]:
    purl = f"pkg:cargo/{crate['name']}@{crate['version']}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": crate["name"],
        "version": crate["version"],
        "licenses": [{"expression": crate["license"].replace("/", " OR ")}],
        "purl": purl,
    }


def listed(text: str) -> set[tuple[str, str]]:
    """Return the names and versions that such a text lists."""
    return {(one["name"], one["version"]) for one in json.loads(text)["components"]}


def wrong_parts(wheel: Path) -> list[str]:
    """Return what is wrong with the lists of parts in a wheel, against the two lock files of now.

    That of the extension may list crates of its build too; both list crates of all systems.
    """
    wrong = []
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            name.rpartition("/")[2]: archive.read(name).decode()
            for name in archive.namelist()
            if re.fullmatch(r"[^/]+\.dist-info/sboms/[^/]+\.cyclonedx\.json", name)
        }
    for file, manifest in zip(("callslip.cyclonedx.json", FILE.name), MANIFESTS, strict=True):
        if file not in texts:
            wrong.append(f"expected {file} in {wheel.name}: got {sorted(texts) or 'none'}")
            continue
        found = listed(texts[file])
        lock = tomllib.loads(manifest.with_name("Cargo.lock").read_text(encoding="utf-8"))
        locked = {(crate["name"], crate["version"]) for crate in lock["package"]}
        missing = here(manifest) - found
        if missing or found - locked:
            wrong.append(
                f"expected {file} in {wheel.name} to list the crates of {manifest.parent.name}'s "
                f"Cargo.lock: without {sorted(missing)}, and with {sorted(found - locked)}"
            )
    return wrong


def main() -> None:
    FILE.write_text(parts_of_now(), encoding="utf-8")
    print(f"{FILE.name}: {len(listed(FILE.read_text(encoding='utf-8')))} crates")


if __name__ == "__main__":
    main()
