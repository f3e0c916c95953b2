"""Builds the documentation into target/site and checks it: `make docs`.

A warning of the generator is an error, and so is a link to a page or anchor that does not exist, or
anything that a browser would fetch from another site.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"
# Zensical counts its own warnings only; these are printed by the reader of docstrings.
_WARNINGS = ("griffe:", "mkdocstrings:")
# The page for addresses that do not exist may be shown at any depth, so its links are absolute.
_UNCHECKED = {"404.html"}


@dataclass
class Page(HTMLParser):
    """The anchors, links and resources of a page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") != "canonical":
            self.resources.append(values.get("href", ""))
        elif "src" in values:
            self.resources.append(values["src"])


def read(path: Path) -> Page:
    """Read a built page."""
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def faults(site: Path) -> list[str]:
    """Return the dead links and foreign resources of a built site."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name in _UNCHECKED:
            continue
        name = path.relative_to(site)
        found += [
            f"{name}: fetched from another site: {one}" for one in page.resources if _host(one)
        ]
        local = [one for one in (*page.links, *page.resources) if not _host(one)]
        for link in local:
            target, anchor = _target(path, link)
            if not target.is_file():
                found.append(f"{name}: no such page: {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{name}: no such anchor: {link}")
    return found


def _host(address: str) -> str:
    parts = urlsplit(address)
    return parts.netloc or (parts.scheme if parts.scheme not in {"data", "javascript"} else "")


def _target(page: Path, link: str) -> tuple[Path, str]:
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return (target / "index.html" if target.is_dir() else target), unquote(parts.fragment)


def build() -> list[str]:
    """Build the site. Returns the warnings."""
    shutil.rmtree(SITE, ignore_errors=True)
    generator = Path(sys.executable).with_name("zensical")
    command = [generator, "build", "--strict", "--clean"]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout, end="")
    warnings = [line for line in done.stdout.splitlines() if line.startswith(_WARNINGS)]
    return warnings or ["zensical failed"] * (done.returncode != 0)


def main() -> None:
    """Build and check."""
    found = build() or faults(SITE)
    if found:
        sys.exit("\n".join(found))
    print(f"{SITE.relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
