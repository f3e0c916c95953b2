"""The reference is complete, its tables are those of the code, and links lead somewhere."""

import json
import re
import tomllib
from pathlib import Path
from typing import get_args

import griffe
import pytest

import build_site
from callslip import TicketStore
from callslip.events import Event, EventKind

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
# Returned by a public method, and never made by a program.
RETURNED = {
    "callslip._runtime.stream.RunStream",
    "callslip._runtime.sync_stream.SyncStream",
    "callslip.runs._watch.RunWatch",
}


def public_names():
    """The shortest path of each public object, by the object."""
    package = griffe.load("callslip", search_paths=[ROOT / "python"], allow_inspection=False)
    found = {}
    modules = [package]
    for module in modules:
        for name in map(str, module.exports or ()):
            member = module.members[name]
            target = member.final_target.path if member.is_alias else member.path
            found.setdefault(target, f"{module.path}.{name}")
        modules += [
            one
            for one in module.members.values()
            if not one.is_alias and one.is_module and not one.name.startswith("_")
        ]
    return set(found.values()) - {"callslip.__version__"}


def sections(text):
    """The anchors of a page of Markdown, as the generator and GitHub make them."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def table(page, section):
    """The first and last cells of the first table below a heading."""
    below = (DOCS / page).read_text("utf-8").partition(f"\n{section}\n")[2]
    _, _, *rows = re.search(r"^\|.*\n(?:\|.*\n)+", below, flags=re.MULTILINE)[0].splitlines()
    return [(row.split("|")[1], row.split("|")[-2]) for row in rows]


def names(cell):
    return re.findall(r"`(\w+)`", cell)


def test_the_reference_has_every_public_name_once():
    shown = [
        name
        for page in (DOCS / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), flags=re.MULTILINE)
    ]
    assert sorted(shown) == sorted(public_names() | RETURNED)


def test_every_page_is_in_the_navigation():
    settings = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    listed = re.findall(r"'([^']+\.md)'", str(settings["project"]["nav"]))
    assert sorted(listed) == [str(page.relative_to(DOCS)) for page in PAGES]


def test_the_table_of_events_has_every_kind_and_its_class():
    text = (DOCS / "reference/events.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| \[`(\w+)`\]\(#callslip\.events\.\2\) \|", text, re.MULTILINE)
    assert dict(rows) == {one.kind: one.__name__ for one in Event.__subclasses__() if one.__doc__}
    assert sorted(dict(rows)) == sorted(get_args(EventKind))


def test_the_table_of_events_has_every_field():
    fields = {
        name: set(names(last))
        for first, last in table("reference/events.md", "## Kinds")
        for name in names(first)
    }
    core = "".join(file.read_text("utf-8") for file in (ROOT / "src/run").rglob("*.rs"))
    assert [
        one for some in fields.values() for one in some if not re.search(rf"\b{one}\b", core)
    ] == []

    logs = [file.read_text("utf-8") for file in (ROOT / "tests/data/logs").rglob("*.jsonl")]
    lines = map(json.loads, filter(None, "\n".join(logs).split("\n")))
    for event in (line["event"] for line in lines if "content" not in line):
        ((kind, data),) = event.items()
        assert set(data) <= fields[kind], kind


@pytest.mark.parametrize("view", ["runs", "tickets", "events"])
def test_the_tables_of_views_have_every_column(tmp_path, view):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        columns = [
            one["name"] for one in store.query(f"SELECT name FROM pragma_table_info('{view}')")
        ]
    text = (DOCS / "reference/store-file.md").read_text("utf-8")
    (heading,) = re.findall(rf"^### `{view}`.*$", text, flags=re.MULTILINE)
    described = [
        name for first, _ in table("reference/store-file.md", heading) for name in names(first)
    ]
    assert described == columns


def test_the_versions_of_the_file_and_of_the_log_are_those_of_the_code():
    text = (DOCS / "reference/store-file.md").read_text("utf-8")
    tables = len(list((ROOT / "src/store/sqlite").glob("version_*.sql")))
    (log,) = re.findall(
        r"pub const VERSION: u32 = (\d+);", (ROOT / "src/run/event.rs").read_text("utf-8")
    )
    assert re.findall(r"version of the tables, now (\d+)", text) == [str(tables)]
    assert re.findall(r"a version of their own, now (\d+)", text) == [log]


@pytest.mark.parametrize("page", [*TOP, *PAGES], ids=lambda page: page.name)
def test_links_lead_to_files_and_sections(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        if anchor and not anchor.startswith("callslip."):
            assert anchor in sections(target.read_text("utf-8")), link


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_example_evaluates_text_as_code(page):
    snippets = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    assert [one for one in snippets if re.search(r"\b(eval|exec)\(", one)] == []


def test_faults_of_a_site_are_found(tmp_path):
    (tmp_path / "other.html").write_text('<h1 id="here">Here</h1>')
    (tmp_path / "index.html").write_text(
        '<script src="https://example.com/a.js"></script><a href="other.html#here">right</a>'
        '<a href="https://example.com">elsewhere</a><a href="gone.html">a</a>'
        '<a href="other.html#gone">b</a><a href="#top" id="top">c</a>'
    )
    assert build_site.faults(tmp_path) == [
        "index.html: fetched from another site: https://example.com/a.js",
        "index.html: no such page: gone.html",
        "index.html: no such anchor: other.html#gone",
    ]
