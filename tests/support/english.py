"""Counts the clauses of README and docs that have to be decoded.

    python tests/support/english.py [FILE ...]

"What is sent is checked" names nothing until the reader has solved it; "Each message is checked"
does. Counted are "what", "where", "who" and their like outside of code, quotations and questions,
whatever their part of speech: in plain technical prose they are rare in any of them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WORDS = re.compile(r"\b(what|whatever|where|wherever|who|whoever|whose)\b", re.IGNORECASE)
_CODE = re.compile(r"```.*?```|~~~.*?~~~|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{1,120}\"|“[^”]*”|\*[^*\n]+\*")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|$)")


def sentences(text: str) -> list[str]:
    """Return the sentences of a page of Markdown, without code and quotations."""
    text = _QUOTED.sub(" x ", _CODE.sub(" x ", text))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    blocks = re.split(r"\n\s*\n|\n(?=[#|*-])", text)
    found = [
        one.strip()
        for block in blocks
        for one in re.findall(r".+?(?:[.!?](?=\s|$)|$)", " ".join(block.split()))
    ]
    return [one for one in found if len(one.split()) > 2]


def clauses(text: str) -> list[str]:
    """Return the sentences that have such a clause, once for each."""
    return [one for one in sentences(text) if not one.endswith("?") for _ in WORDS.findall(one)]


def main() -> None:
    """Print the figure of each page, and the sentences of those that were named."""
    pages = [Path(name) for name in sys.argv[1:]] or PAGES
    total = all_sentences = 0
    for page in pages:
        text = page.read_text("utf-8")
        counted, number = clauses(text), len(sentences(text))
        total, all_sentences = total + len(counted), all_sentences + number
        print(f"{page.name:20} {len(counted):4} in {number:4}: {len(counted) / max(number, 1):.2f}")
        if sys.argv[1:]:
            print("\n".join(f"  {one}" for one in dict.fromkeys(counted)))
    print(
        f"{'all':20} {total:4} in {all_sentences:4} sentences: {total / max(all_sentences, 1):.2f}"
    )


if __name__ == "__main__":
    main()
