"""The map in CONTRIBUTING.md names files that there are, with the names that stand in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_most_asked_questions_lead_to_their_files():
    table = PAGE.partition("Where the most asked questions are answered:")[2].partition("\n\nThe")[
        0
    ]
    rows = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("| ")]
    questions = [row for row in rows if row[0].strip() != "question"]
    assert len(questions) > 5
    for question, files, names in questions:
        texts = [(ROOT / path).read_text("utf-8") for path in re.findall(r"`([^`]+)`", files)]
        assert texts, question
        for name in re.findall(r"`([^`]+)`", names):
            assert any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts), (
                question,
                name,
            )


def test_every_package_has_its_row():
    package = ROOT / "python" / "callslip"
    rows = PAGE.partition("The Python package, from")[2].partition("\n\nNames")[0]
    named = set(re.findall(r"`([a-z_]+(?:/|\.py))`", rows))
    there = {f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()}
    there |= {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    assert there <= named
