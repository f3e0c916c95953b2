"""The version of the project, where tag, Cargo.toml and changelog must agree.

`version.py v1.2.3` checks them; with `--notes` it prints the changelog of that version, and
`--set 1.2.3` writes a version into the project's files.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def stated(root: Path = ROOT) -> str:
    """Return the version in Cargo.toml, which the wheels have."""
    return str(tomllib.loads((root / "Cargo.toml").read_text("utf-8"))["package"]["version"])


def notes(version: str, root: Path = ROOT) -> str:
    """Return what the changelog says of a version, without its heading.

    Raises:
        LookupError: It has no section of that version, or one without a date.
    """
    text = (root / "CHANGELOG.md").read_text("utf-8")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n"
    found = re.search(heading + r"(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(
            f"expected a section `## [{version}] - YYYY-MM-DD` in CHANGELOG.md: got none; call "
            f"version.py --set {version}"
        )
    return found[1].strip() + "\n"


def of_tag(tag: str, root: Path = ROOT) -> str:
    """Return what the changelog says of the version of a tag.

    Raises:
        LookupError: The tag is another version's, or the changelog has no section for it.
    """
    if tag != f"v{stated(root)}":
        raise LookupError(f"expected the tag v{stated(root)}, as in Cargo.toml: got {tag}")
    return notes(stated(root), root)


def write(version: str, root: Path = ROOT) -> None:
    """Write a version: into Cargo.toml and the locks, and as today's into the changelog."""
    old = stated(root)
    locked = f'name = "callslip"\nversion = "{old}"', f'name = "callslip"\nversion = "{version}"'
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    for name, before, after in (
        ("Cargo.toml", f'\nversion = "{old}"\n', f'\nversion = "{version}"\n'),
        ("Cargo.lock", *locked),
        ("fuzz/Cargo.lock", *locked),
        ("CHANGELOG.md", "## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {today}\n"),
    ):
        path = root / name
        text = path.read_text("utf-8")
        if before not in text:
            raise LookupError(f"expected {before.strip()!r} in {name}: got none")
        path.write_text(text.replace(before, after, 1), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag", nargs="?")
    parser.add_argument("--notes", action="store_true")
    parser.add_argument("--set", metavar="VERSION")
    arguments = parser.parse_args()
    try:
        if arguments.set:
            write(arguments.set)
        elif arguments.tag:
            text = of_tag(arguments.tag)
            print(text if arguments.notes else f"{arguments.tag} agrees with its changelog")
        else:
            print(stated())
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
